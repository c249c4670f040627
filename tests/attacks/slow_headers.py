"""Requests whose headers come letter by letter and never end."""

import asyncio
import time

from tests.attacks.strangers import Streams, keeps_open
from tests.attacks.target import Attack, Target

CONNECTIONS = 300
PACE_S = 1.0


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await keeps_open(target, seconds, CONNECTIONS, spells)


async def spells(streams: Streams, until: float) -> None:
    """A letter a second."""
    reader, writer = streams
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Letters: ")
    while time.monotonic() < until and not reader.at_eof():
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(min(PACE_S, max(0.0, until - time.monotonic())))


ATTACK = Attack("slow_headers", "300 requests whose headers come a letter a second", run, by_stranger=True)

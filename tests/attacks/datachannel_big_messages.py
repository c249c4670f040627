"""A client that fills its data channel: the largest messages that are allowed, as fast as SCTP takes them, then one
that is too long."""

import asyncio
import json
from contextlib import suppress

from tests.attacks.rogue import calling, paced
from tests.attacks.target import Attack, Target

ALLOWED, FORBIDDEN = 250_000, 3_000_000
WAITING = 1_000_000
"""Bytes that the channel may hold back here."""
TOLD_S = 10.0
"""So long it waits to be told."""


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    async with calling(target) as placed:
        if placed:
            async for _ in paced(seconds):
                if placed.channel.readyState == "open" and placed.channel.bufferedAmount < WAITING:
                    placed.channel.send(_words(ALLOWED))
    async with calling(target) as placed:
        if placed:
            placed.transport.sctp._remote_max_message_size = 0
            placed.channel.send(_words(FORBIDDEN))
            with suppress(TimeoutError):
                await asyncio.wait_for(placed.transport.gone(), TOLD_S)


def _words(size: int) -> str:
    return json.dumps({"type": "session.update", "session": {"type": "realtime", "instructions": "x" * size}})


ATTACK = Attack("datachannel_big_messages", "messages of 250 kB over a data channel, and one of 3 MB", run)

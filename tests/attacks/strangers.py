"""What attacks of strangers share: sockets from many addresses of this machine, and nothing that outlives them."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.attacks.connections import one_after_another
from tests.attacks.target import Target

ADDRESSES = tuple(f"127.0.0.{number}" for number in range(2, 52))
"""Not 127.0.0.1, by which a PoP expects its own machine's proxies."""

PAUSE_S = 0.05
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def keeps_open(
    target: Target, seconds: float, connections: int, holds: Callable[[Streams, float], Awaitable[None]]
) -> None:
    """So many connections at a time from all addresses; what the server ends is opened again, 20 times a second at
    most. `holds(streams, until)` returns when a connection has ended, or at `until`, a monotonic second."""
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as tasks:
        for number in range(connections):
            tasks.create_task(_again(target, ADDRESSES[number % len(ADDRESSES)], until, holds))


async def _again(target: Target, source: str, until: float, holds: Callable[[Streams, float], Awaitable[None]]) -> None:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await holds((reader, writer), until)
        await asyncio.sleep(PAUSE_S)

    await one_after_another(target, until, hold, source=source, pause_s=PAUSE_S)


async def answered(reader: asyncio.StreamReader, until: float) -> bytes:
    """What the server says until it ends the connection; empty: nothing until then, or until `until`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, until - time.monotonic())):
            return await reader.read()
    return b""

"""What attacks of strangers share: sockets from many addresses of this machine, and nothing that outlives them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

from tests.attacks.target import Target

ADDRESSES = tuple(f"127.0.0.{number}" for number in range(2, 52))
"""Not 127.0.0.1, by which a PoP expects its own machine's proxies."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def dialled(target: Target, source: str) -> Streams:
    """A TCP connection to the target's HTTP port from `source`. Raises OSError."""
    return await asyncio.open_connection(target.host, target.port, local_addr=(source, 0))


@contextmanager
def hung_up(streams: Streams) -> Iterator[Streams]:
    """Whatever happens to it, the connection is dropped in the end."""
    try:
        with suppress(OSError, EOFError, RuntimeError):  # the last by uvloop, for a connection that is closed
            yield streams
    finally:
        streams[1].transport.abort()


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
    while time.monotonic() < until:
        with suppress(OSError):
            with hung_up(await dialled(target, source)) as streams:
                await holds(streams, until)
        await asyncio.sleep(0.05)


async def answered(reader: asyncio.StreamReader, until: float) -> bytes:
    """What the server says until it ends the connection; empty: nothing until then, or until `until`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, until - time.monotonic())):
            return await reader.read()
    return b""

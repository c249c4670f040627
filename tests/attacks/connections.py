"""What attacks by connections share: another one each time that the server refuses or ends one, for a while."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import websockets

from tests.attacks.target import Target

PAUSE_S = 0.1
"""After a connection that the server did not take, or ended."""
ENDED = (
    OSError, EOFError, TimeoutError, RuntimeError, asyncio.LimitOverrunError, websockets.WebSocketException
)  # fmt: skip
"""What such an end is to us; RuntimeError is uvloop's."""
Behave = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def again(target: Target, until: float, once: Callable[[], Awaitable[None]], pause_s: float = PAUSE_S) -> None:
    """Do it `once` after another until the monotonic second `until`; what the server ends is counted, and no error."""
    while time.monotonic() < until:
        try:
            await once()
        except ENDED as error:
            target.told[_end(error)] += 1
            await asyncio.sleep(pause_s)


def _end(error: Exception) -> str:
    """As the server put it, where it did."""
    if isinstance(error, websockets.ConnectionClosed) and error.rcvd:
        return f"closed: {error.rcvd.code} {error.rcvd.reason}".rstrip()
    return "closed"


async def one_after_another(
    target: Target, until: float, behave: Behave, *, source: str = "", limit: int = 2**16, pause_s: float = PAUSE_S
) -> None:
    """Connect (from the address `source`, where one is named) and `behave`, and `again`. At most `limit` bytes that
    the server says wait to be read."""

    async def once() -> None:
        reader, writer = await asyncio.open_connection(
            target.host, target.port, limit=limit, local_addr=(source, 0) if source else None
        )
        try:
            await behave(reader, writer)
        finally:
            writer.transport.abort()

    await again(target, until, once, pause_s)

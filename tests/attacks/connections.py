"""What attacks by plain HTTP share: one connection after another, for a while."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from tests.attacks.target import Target

PAUSE_S = 0.1
"""After a connection that the server did not take, or ended."""
Behave = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def one_after_another(target: Target, until: float, behave: Behave) -> None:
    """Connect and `behave` until the monotonic second `until`; what the server ends is no error."""
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection(target.host, target.port)
        except OSError:
            target.told["not connected"] += 1
            await asyncio.sleep(PAUSE_S)
            continue
        try:
            await behave(reader, writer)
        except (OSError, EOFError, TimeoutError):
            target.told["closed"] += 1
            await asyncio.sleep(PAUSE_S)
        finally:
            writer.close()

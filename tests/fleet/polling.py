"""Waiting for what other processes do."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float, every_s: float = 0.05) -> None:
    """`condition()` holds. Raises TimeoutError: not within `seconds`."""
    async with asyncio.timeout(seconds):
        while True:
            held = condition()
            if await held if inspect.isawaitable(held) else held:
                return
            await asyncio.sleep(every_s)

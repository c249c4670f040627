"""Waiting for what happens elsewhere."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """`condition()` holds. Raises TimeoutError: not within `seconds`, more than the slowest machine needs."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

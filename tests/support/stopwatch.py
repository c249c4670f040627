"""For how long the event loop is kept from others, or would be: processor time, so that a busy machine does no harm."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import inf
from time import thread_time


def spent(work: Callable[[], object], enough_s: float = 0.0) -> float:
    """Seconds that it takes, the least of three times: a round of the garbage collector is not its doing. Less than
    `enough_s` is not tried again."""
    least_s = inf
    for _ in range(3):
        began = thread_time()
        work()
        least_s = min(least_s, thread_time() - began)
        if least_s < enough_s:
            break
    return least_s


class Longest:
    """Step so far, in seconds of this thread's processor time: a machine that is busy makes it no longer."""

    step_s = 0.0


@asynccontextmanager
async def watched() -> AsyncIterator[Longest]:
    """What is done within this context, and beside it."""
    longest, began = Longest(), thread_time()

    async def others() -> None:
        nonlocal began
        while True:
            now = thread_time()
            longest.step_s, began = max(longest.step_s, now - began), now
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    try:
        yield longest
        await asyncio.sleep(0)  # The last step counts, too.
    finally:
        beside.cancel()

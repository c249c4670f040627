"""Background jobs that no error may end: neither a missing folder, nor a mistake of ours.

A PoP has jobs beside its calls: it measures itself, reads agents again, keeps the clock of all media. Each hangs on a
task group, and an exception in one would end the others, the calls among them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

FIRST_S = 0.05
"""Seconds before a job that failed is started again; twice as long after every failure that follows at once."""
LONGEST_S = 60.0
"""Seconds of the longest pause. After a job that has run for as long, the next failure waits for `FIRST_S` again."""


async def supervised(name: str, job: Callable[[], Awaitable[None]]) -> None:
    """Run `job` until it returns or is cancelled. Its errors are logged, and it is started again. The pauses in between
    grow, so a job that always fails writes no more than a line a minute in the long run."""
    loop = asyncio.get_running_loop()
    pause_s = FIRST_S
    while True:
        began = loop.time()
        try:
            return await job()
        except Exception as error:
            if loop.time() - began >= LONGEST_S:
                pause_s = FIRST_S
            logger.error("%s failed and is begun again in %g s: %r", name, pause_s, error, exc_info=error)
        await asyncio.sleep(pause_s)
        pause_s = min(LONGEST_S, 2 * pause_s)

"""Tasks, and groups of them, that leave no reference cycles behind; and background jobs that no error may end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context
from types import TracebackType
from typing import Any, TypeVar

from voicepipe.base.cpu_metering import charged

T = TypeVar("T")
logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.05
"""Seconds before a job that failed is started again; twice as long after every failure that follows at once."""
LONGEST_PAUSE_S = 60.0
"""Seconds of the longest pause. After a job that has run for as long, the next failure waits for the first pause
again."""


def forget_how_it_was_cancelled(task: "asyncio.Task[Any]") -> None:
    """To be called once a cancelled task is over. A task keeps the CancelledError, and by its traceback the frames of
    its function and all that they refer to, until the error is read. These mostly refer to the owner of the task: a
    reference cycle."""
    if task.cancelled():
        with suppress(asyncio.CancelledError):
            task.exception()


async def ended(task: "asyncio.Task[Any] | None") -> None:
    """Cancel the task, if there is one, and wait until it is over."""
    if task:
        task.cancel()
        await asyncio.wait({task})


class TaskGroup(asyncio.TaskGroup):
    """asyncio's TaskGroup for the tasks of one call, without reference cycles. A task that is cancelled leaves two of
    them in Python 3.11, and in 3.12 and 3.13 until CPython's issue 124958 was fixed: the exception leads by its
    traceback to a frame that holds it, and to the group, which holds the task that holds the exception. All that the
    cancelled function refers to, such as a call and its sound, would stay until the collector's next full round.

    The loop's time of its tasks is paid for as that of their creator (`cpu_metering.py`)."""

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = super().create_task(charged(coro), name=name, context=context)
        task.add_done_callback(forget_how_it_was_cancelled)
        return task

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await super().__aexit__(kind, error, traceback)
        except asyncio.CancelledError as cancelled:
            cancelled.__traceback__ = None  # It led into asyncio; our own frames are added while it goes on.
            raise
        finally:
            self._parent_task = None
            del error, traceback


async def supervised(name: str, job: Callable[[], Awaitable[None]]) -> None:
    """Run `job` until it returns or is cancelled. Its errors are logged, and it is started again. The pauses in between
    grow, so a job that always fails writes no more than a line a minute in the long run.

    For what a PoP does beside its calls: it measures itself, reads agents again, keeps the clock of all media. Each job
    hangs on a task group, and an exception in one (a missing folder, a mistake of ours) would end the calls, too."""
    loop = asyncio.get_running_loop()
    pause_s = FIRST_PAUSE_S
    while True:
        began = loop.time()
        try:
            return await job()
        except Exception as error:
            if loop.time() - began >= LONGEST_PAUSE_S:
                pause_s = FIRST_PAUSE_S
            logger.error("%s failed and is begun again in %g s: %r", name, pause_s, error, exc_info=error)
        await asyncio.sleep(pause_s)
        pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

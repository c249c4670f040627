"""Tasks, and groups of them, that leave nothing behind."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import suppress
from contextvars import Context
from types import TracebackType
from typing import Any, TypeVar

from voicepipe.base.cpu_metering import charged

T = TypeVar("T")


def forget_how_it_was_cancelled(task: "asyncio.Task[Any]") -> None:
    """To be called once it is over. A task keeps the CancelledError, and by its traceback the frames of its function
    and all that these know, until somebody asks for it. These mostly know whoever holds the task: a circle."""
    if task.cancelled():
        with suppress(asyncio.CancelledError):
            task.exception()


async def ended(task: "asyncio.Task[Any] | None") -> None:
    """Cancel it, if there is one, and wait until it is over."""
    if task:
        task.cancel()
        await asyncio.wait({task})


class TaskGroup(asyncio.TaskGroup):
    """asyncio's, for what belongs to one call. One that is cancelled leaves two circles in Python 3.11, and in 3.12 and
    3.13 until CPython's issue 124958 was mended: the exception leads by its traceback to a frame that holds it, and to
    the group, which holds the task that holds the exception. In them all that the cancelled function knows, such as a
    call and its sound, would stay until the collector's next full round.

    What its tasks take of the loop is paid for by whoever has them begun (`cpu_metering.py`)."""

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

"""The tasks of one call: they end with it, and if one fails, the call does."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from voicepipe.base.round_robin import owned_by
from voicepipe.base.tasks import TaskGroup

T = TypeVar("T")
log = logging.getLogger(__name__)


class Spawn(Protocol):
    """A function that runs a job as a task of one call. It returns the task, or an already cancelled future if the call
    is over. Implemented by `CallTasks.spawn`.
    """

    def __call__(self, job: Coroutine[Any, Any, T], /) -> "asyncio.Future[T]": ...


class CallTasks(TaskGroup):
    """The tasks of one call, as a context manager.

    Leaving it waits for all tasks. If one failed, the others are cancelled and an ExceptionGroup is raised.
    """

    def __init__(self, call_id: str) -> None:
        super().__init__()
        self.over = False
        """The call ends: no task is started any more."""
        self._call_id = call_id

    @property
    def running(self) -> bool:
        """Whether any task is running."""
        return bool(self._tasks)

    def spawn(self, job: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        """Run `job` as a task of the call. Raises RuntimeError if the context was not entered yet."""
        if not self.over:
            try:
                with owned_by(self._call_id):
                    return self.create_task(job)
            except RuntimeError:  # A task of this call has failed, and the group is ending.
                if not self._entered:  # type: ignore[attr-defined]
                    job.close()
                    raise
        job.close()
        never: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        never.cancel()
        return never

    def fail(self, error: Exception) -> None:
        """End the call by an error that no task of its own has met."""
        if self.spawn(_failing(error)).cancelled():
            log.warning("%s: %s", self._call_id, error)

    def cancel(self) -> None:
        """Cancel all tasks, and start no more."""
        self.over = True
        for task in self._tasks:
            task.cancel()


async def _failing(error: Exception) -> None:
    """Fail a group of tasks, which only a failing task can do."""
    try:
        raise error
    finally:
        del error  # It refers to this frame: the cycle would keep the call until the collector ran.

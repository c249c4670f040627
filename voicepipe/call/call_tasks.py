"""The tasks of one call: they end with it, and if one fails, the call does."""

import asyncio
import logging
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from voicepipe.base.round_robin import owned_by
from voicepipe.base.tasks import TaskGroup

T = TypeVar("T")
log = logging.getLogger(__name__)


class Spawn(Protocol):
    """Runs a job as a task of a call's; what it returns is cancelled already where the call is over."""

    def __call__(self, job: Coroutine[Any, Any, T], /) -> "asyncio.Future[T]": ...


class CallTasks:
    """Enter it to run them; leaving waits for all, and raises what failed, in a group."""

    def __init__(self, call_id: str) -> None:
        self.over = False
        """The call ends: nothing is begun any more."""
        self._call_id = call_id
        self._group = TaskGroup()
        self._begun = False
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._begun = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._group.__aexit__(kind, error, traceback)
        finally:
            del error, traceback

    @property
    def running(self) -> bool:
        """There are some."""
        return bool(self._tasks)

    def spawn(self, job: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        """Run `job` as a task of the call's. Raises RuntimeError: they are not run yet."""
        if task := None if self.over else self._task(job):
            return task
        job.close()
        never: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        never.cancel()
        return never

    def _task(self, job: Coroutine[Any, Any, T]) -> "asyncio.Task[T] | None":
        """None: something of this call has failed, and its group is ending."""
        try:
            with owned_by(self._call_id):
                task = self._group.create_task(job)
        except RuntimeError:
            if self._begun:
                return None
            job.close()
            raise
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def fail(self, error: Exception) -> None:
        """End the call by an error that no task of its own has met."""
        failing = _failing(error)
        if self.over or self._task(failing) is None:
            failing.close()
            log.warning("%s: %s", self._call_id, error)

    def cancel(self) -> None:
        """End them all, and begin none any more."""
        self.over = True
        for task in self._tasks:
            task.cancel()


async def _failing(error: Exception) -> None:
    """A group of tasks fails by a task that fails."""
    try:
        raise error
    finally:
        del error  # It knows this frame: in a circle, the call would stay until the collector came.

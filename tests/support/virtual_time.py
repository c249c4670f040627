"""An event loop whose clock jumps to the next timer when nothing is left to do: a minute of call takes no time.

Deterministic, and for scripted engines only: threads and sockets live by the real clock. So a job for a worker's thread
is done at once, on the loop, and other threads are refused. `@pytest.mark.virtual_time` gives an async test such a
loop; `run` is for everything else.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple
from unittest import mock

from voicepipe.base.worker import Job, Worker

T = TypeVar("T")
Args = TypeVarTuple("Args")

START = 1000.0
"""The clock at the beginning: not 0, which code may take for "never"."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` stands still while anything runs, and jumps when all wait."""

    def __init__(self) -> None:
        self._jumps = _JumpingSelector()
        super().__init__(self._jumps)

    def time(self) -> float:
        """Virtual monotonic seconds."""
        return self._jumps.now

    def stand_still(self, seconds: float) -> None:
        """The step that calls this takes so long: nothing else runs meanwhile."""
        self._jumps.now += seconds

    def run_forever(self) -> None:
        with mock.patch.object(Worker, "ask", _at_once):
            super().run_forever()

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Args], T], *args: *Args
    ) -> "asyncio.Future[T]":
        """Refused: a thread does not see this clock."""
        raise RuntimeError(f"virtual time has no threads, but {func} was to run in one")


def _at_once(
    worker: Worker, fn: Callable[[], T], *, urgent: bool = False, within_s: float | None = None
) -> "asyncio.Future[T]":
    """The clock would jump on while a thread works: by how much, the machine would decide. No job ever waits, so none
    is too many, and none is urgent."""
    if worker._closed:
        raise worker._over()
    job = Job(fn, urgent, within_s)
    job.run(lambda: 0.0)
    return asyncio.wrap_future(job.done)


class _JumpingSelector(selectors.BaseSelector):
    """Never blocks: instead of waiting for `timeout` seconds it moves the clock by as much."""

    def __init__(self) -> None:
        self._inner = selectors.SelectSelector()
        self.now = START

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._inner.select(0)
        if not ready and timeout is None:
            raise RuntimeError("every task waits for something that will never happen: no timer is set")
        if not ready and timeout:
            # Whole nanoseconds, within the loop's own resolution: sums of floats would differ from run to run's sleeps.
            # At least one: who sleeps until a moment that is nearer wakes before it, and would do so for ever.
            self.now = round(self.now + max(timeout, 1e-9), 9)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)

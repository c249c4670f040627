"""What a piece of work takes of the event loop, and who pays for it: also for the tasks that it begins in a `TaskGroup`
of ours, which may be the greater part."""

from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Payer(NamedTuple):
    """`used` is told what each step took, in seconds by the clock `busy`: the processor's time of this thread."""

    used: Callable[[float], None]
    busy: Callable[[], float]


_payer: ContextVar[Payer | None] = ContextVar("payer", default=None)


@contextmanager
def paid_by(payer: Payer) -> Iterator[None]:
    """Tasks that begin within this context are paid for by `payer`, as long as they last."""
    before = _payer.set(payer)
    try:
        yield
    finally:
        _payer.reset(before)


Job = Generator[Any, None, T] | Coroutine[Any, Any, T]
"""What a task can be made of."""


def charged(job: Job[T]) -> Job[T]:
    """`job`, whose steps are told to whoever pays in this context; as it is if nobody does."""
    payer = _payer.get()
    return Metered(job, payer) if payer else job


class Metered(Coroutine[Any, Any, T], Generator[Any, Any, T]):
    """A coroutine that tells what each of its steps took of the loop: not what it waited. Await it, or make a task of
    it."""

    def __init__(self, job: Job[T], payer: Payer) -> None:
        self._job = job
        self._payer = payer

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def send(self, value: Any) -> Any:
        """One step."""
        return self._step(partial(self._job.send, value))

    def throw(self, *error: Any) -> Any:
        """One step, which begins with an exception: a cancellation, say."""
        return self._step(partial(self._job.throw, *error))

    def close(self) -> None:
        """As the coroutine's."""
        self._job.close()

    def _step(self, step: Callable[[], Any]) -> Any:
        used, busy = self._payer
        began = busy()
        try:
            return step()
        finally:
            used(busy() - began)

"""What a piece of work takes of the event loop, and who pays for it: also for the tasks that it begins in a `TaskGroup`
of ours, which may be the greater part."""

from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, NamedTuple, TypeVar

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
    return _charged(job, payer) if payer else job


async def _charged(job: Job[T], payer: Payer) -> T:
    return await Metered(job, payer)


class Metered(Generic[T]):
    """Awaits a coroutine, and tells what each of its steps took of the loop: not what it waited."""

    def __init__(self, job: Job[T], payer: Payer) -> None:
        self._job = job
        self._payer = payer

    def __await__(self) -> Generator[Any, Any, T]:
        used, busy = self._payer
        thrown: BaseException | None = None
        while True:
            began = busy()
            try:
                waits_for = self._job.throw(thrown) if thrown else self._job.send(None)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                thrown = None
                used(busy() - began)
            try:
                yield waits_for
            except BaseException as error:  # A cancellation, which is the coroutine's to hear of.
                thrown = error

"""What a piece of work takes of the event loop, and who pays for it: also for the tasks that it begins in a `TaskGroup`
of ours, which may be the greater part."""

from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar, Token
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Payer(msgspec.Struct, frozen=True):
    """`used` is told what each step took, in seconds by the clock `busy`: the processor's time of this thread."""

    used: Callable[[float], None]
    busy: Callable[[], float]


_payer: ContextVar[Payer | None] = ContextVar("payer", default=None)


class PaidBy:
    """Tasks that begin within this context are paid for by `payer`, as long as they last."""

    __slots__ = ("_before", "_payer")

    def __init__(self, payer: Payer) -> None:
        self._payer = payer

    def __enter__(self) -> None:
        self._before: Token[Payer | None] = _payer.set(self._payer)

    def __exit__(self, *_: object) -> None:
        _payer.reset(self._before)


Job = Generator[Any, None, T] | Coroutine[Any, Any, T]
"""What a task can be made of."""


def charged(job: Job[T]) -> Job[T]:
    """`job`, whose steps are told to whoever pays in this context; as it is if nobody does."""
    payer = _payer.get()
    return Metered(job, payer) if payer else job


class Metered(Coroutine[Any, Any, T], Generator[Any, Any, T]):
    """A coroutine that tells what each of its steps took of the loop: not what it waited. Await it, or make a task of
    it. It is in the way of every message, so nothing is called here that can be spared."""

    def __init__(self, job: Job[T], payer: Payer) -> None:
        self._job = job
        self._payer = payer

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """One step."""
        payer = self._payer
        began = payer.busy()
        try:
            return self._job.send(value)
        finally:
            payer.used(payer.busy() - began)

    def throw(self, *error: Any) -> Any:
        """One step, which begins with an exception: a cancellation, say."""
        payer = self._payer
        began = payer.busy()
        try:
            return self._job.throw(*error)
        finally:
            payer.used(payer.busy() - began)

    def close(self) -> None:
        """As the coroutine's."""
        self._job.close()

"""Measures how much of the event loop a piece of work takes, and who pays for it: also for the tasks that it begins in
a `TaskGroup` of ours, which may be the greater part."""

from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar, Token
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Payer(msgspec.Struct, frozen=True):
    """Pays for pieces of work. `used` is called after each step, with the seconds that it took by the clock `busy`: the
    processor's time of this thread."""

    used: Callable[[float], None]
    busy: Callable[[], float]


_payer: ContextVar[Payer | None] = ContextVar("payer", default=None)


class PaidBy:
    """A context: tasks that begin within it are paid for by `payer`, as long as they last."""

    __slots__ = ("_before", "_payer")

    def __init__(self, payer: Payer) -> None:
        self._payer = payer

    def __enter__(self) -> None:
        self._before: Token[Payer | None] = _payer.set(self._payer)

    def __exit__(self, *_: object) -> None:
        _payer.reset(self._before)


Job = Generator[Any, None, T] | Coroutine[Any, Any, T]
"""The kinds of objects from which a task can be made."""


def charged(job: Job[T]) -> Job[T]:
    """`job`, whose steps are reported to the payer of this context; unchanged if there is none."""
    payer = _payer.get()
    return Metered(job, payer) if payer else job


class Metered(Coroutine[Any, Any, T], Generator[Any, Any, T]):
    """A coroutine that reports the loop's time of each of its steps, without its waits. Await it, or make a task of it.
    Every message passes through it, so it makes no call that can be spared."""

    def __init__(self, job: Job[T], payer: Payer) -> None:
        self._job = job
        self._payer = payer

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """Run one step."""
        payer = self._payer
        began = payer.busy()
        try:
            return self._job.send(value)
        finally:
            payer.used(payer.busy() - began)

    def throw(self, *error: Any) -> Any:
        """Run one step, which begins with an exception: a cancellation, say."""
        payer = self._payer
        began = payer.busy()
        try:
            return self._job.throw(*error)
        finally:
            payer.used(payer.busy() - began)

    def close(self) -> None:
        """Close the coroutine."""
        self._job.close()

"""Pieces of sound that were sent in order and come in any: put in order again. Pure."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

WAIT_S = 0.06
"""So long a piece that is missing is waited for, by the clock of those that come; then sound goes on without it."""
EARLY = 32
"""So many pieces wait at most: in that time an honest provider sends three."""


class Reorder(Generic[T]):
    """Pieces by their number; the first is 1. What comes in order goes on at once, what comes too late is dropped."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next = 1
        self._early: dict[int, tuple[float, T]] = {}
        """And when it came."""

    def __call__(self, number: int, piece: T) -> list[T]:
        """The pieces that may go on now that this one is here. Without a number (0) it goes on as it comes."""
        if not number:
            return [piece]
        if number < self._next:
            return []
        self._early[number] = self._clock(), piece
        ready = self._in_order()
        while self._early and (len(self._early) > EARLY or self._waited_s() >= WAIT_S):
            self._next = min(self._early)
            ready += self._in_order()
        return ready

    def _waited_s(self) -> float:
        return self._clock() - min(came for came, _ in self._early.values())

    def _in_order(self) -> list[T]:
        ready = []
        while self._next in self._early:
            ready.append(self._early.pop(self._next)[1])
            self._next += 1
        return ready

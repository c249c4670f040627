"""Calls take turns at an engine, one after the other, however much each of them has waiting. Pure.

A call is named by a context variable, which `call/call_tasks.py` sets around all that it starts. So the engines'
Protocols know nothing of calls, an adapter that has no queue of its own need not do anything, and what belongs to no
call (warming up) shares one turn. Work that is begun later, by a callback, must remember its `owner()`: callbacks have
another's.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

_owner: ContextVar[str] = ContextVar("owner", default="")
LATER = 4
"""One in so many jobs is taken from those that nobody waits for, if there is one: urgent jobs never stop for some
callers, and the rest of others' replies must be made, too."""

T = TypeVar("T")


def owner() -> str:
    """The call for which the present work is done; "": none."""
    return _owner.get()


@contextmanager
def owned_by(call: str) -> Iterator[None]:
    """A context: requests to engines within it, and by tasks that begin within it, are this call's."""
    before = _owner.set(call)
    try:
        yield
    finally:
        _owner.reset(before)


class Ring(Generic[T]):
    """Items of owners who take turns; those of one owner come in order. Each step takes the same time, however many
    items there are. Items are distinguished by hash: none is in it twice."""

    def __init__(self) -> None:
        self._items: OrderedDict[str, OrderedDict[T, None]] = OrderedDict()
        """Items by owner; the owner whose turn is next is first."""
        self._owners: dict[T, str] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def __contains__(self, item: T) -> bool:
        return item in self._owners

    def of(self, owner: str) -> int:
        """The number of this owner's items."""
        return len(self._items.get(owner, ()))

    def put(self, item: T, owner: str) -> None:
        """Add an item behind the owner's others. One that is in the ring already stays where it is."""
        if item not in self._owners:
            self._owners[item] = owner
            self._items.setdefault(owner, OrderedDict())[item] = None

    def remove(self, item: T) -> str | None:
        """Remove an item. Returns its owner; None: it was not in the ring."""
        owner = self._owners.pop(item, None)
        if owner is not None:
            del self._items[owner][item]
            if not self._items[owner]:
                del self._items[owner]
        return owner

    def pop(self, may: Callable[[str], bool] = lambda owner: True) -> T | None:
        """The next item, of the next owner who `may`; None: there is none."""
        owner = next((owner for owner in self._items if may(owner)), None)
        if owner is None:
            return None
        item = next(iter(self._items[owner]))
        self.remove(item)
        if owner in self._items:
            self._items.move_to_end(owner)
        return item


class RoundRobin(Generic[T]):
    """Two rings: urgent items go first, except for one in LATER."""

    def __init__(self) -> None:
        self._urgent: Ring[T] = Ring()
        self._other: Ring[T] = Ring()
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self._urgent) + len(self._other)

    def of(self, owner: str) -> int:
        """The number of this owner's items."""
        return self._urgent.of(owner) + self._other.of(owner)

    def put(self, item: T, owner: str, *, urgent: bool = False) -> None:
        """Add an item. One that waits already stays where it is, or becomes urgent."""
        if urgent:
            self._other.remove(item)
            self._urgent.put(item, owner)
        elif item not in self._urgent:
            self._other.put(item, owner)

    def remove(self, item: T) -> None:
        self._urgent.remove(item)
        self._other.remove(item)

    def pop(self) -> T | None:
        """The next item; None: there is none."""
        later = self._in_a_row >= LATER - 1 and len(self._other) > 0
        if later or not self._urgent:
            self._in_a_row = 0
            return self._other.pop()
        self._in_a_row += 1
        return self._urgent.pop()

"""Which utterance has which slot of the model's memory. Pure.

Each utterance needs one until it is over. Calls take turns for those that become free, and a call has two, for what it
says and what it said before, unless more than a quarter of them are free for others.
"""

from collections import Counter
from typing import Generic, TypeVar

from voicepipe.base.round_robin import Ring

EACH = 2
Who = TypeVar("Who")


class Slots(Generic[Who]):
    """Assigns a number of slots, numbered from 0, to utterances. Calls take turns."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = list(reversed(range(count)))
        self._slots: dict[Who, int] = {}
        self._owners: dict[Who, str] = {}
        self._has: Counter[str] = Counter()
        self._waiting: Ring[Who] = Ring()

    @property
    def in_use(self) -> int:
        return len(self._slots)

    @property
    def waiting(self) -> int:
        """Number of utterances that have no slot yet."""
        return len(self._waiting)

    def request(self, who: Who, owner: str) -> None:
        """Queue `who`, an utterance of the call `owner`, for a slot; `next` says who gets one. Once more changes
        nothing."""
        if who not in self._slots:
            self._owners[who] = owner
            self._waiting.put(who, owner)

    def leave(self, who: Who) -> None:
        """Release the slot of `who`, or take it out of the queue. Safe to call twice."""
        self._waiting.remove(who)
        owner, slot = self._owners.pop(who, ""), self._slots.pop(who, None)
        if slot is not None:
            self._free.append(slot)
            self._has -= Counter([owner])

    def turned_away(self) -> list[Who]:
        """Empty the queue; returns all who waited in it."""
        return list(iter(self._waiting.pop, None))

    def next(self) -> tuple[Who, int] | None:
        """Give a free slot to the next in the queue, and return who got which. None: nobody waits who may have one, or
        none is free."""
        if not self._free:
            return None
        who = self._waiting.pop(self._may)
        if who is None:
            return None
        self._has[self._owners[who]] += 1
        slot = self._slots[who] = self._free.pop()
        return who, slot

    def _may(self, owner: str) -> bool:
        return self._has[owner] < EACH or 4 * len(self._free) > self._count

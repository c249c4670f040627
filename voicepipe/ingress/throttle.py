"""Limits how often requests are accepted: a token bucket for each address, and one for all together. Pure."""

from collections import OrderedDict
from collections.abc import Callable
from math import exp, inf
from typing import Generic, TypeVar

from voicepipe.base.token_bucket import Bucket, Rate

SOURCES = 4096
"""Addresses that are remembered; the one that came longest ago is forgotten first."""
NEWS_S = 60.0

K = TypeVar("K")
T = TypeVar("T")
LATELY_S = 60.0
"""Seconds after which what was taken counts a third, and less and less."""


class RecentSources(Generic[K, T]):
    """A value for each source that came lately, made when it first comes."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._of: OrderedDict[K, T] = OrderedDict()

    def __getitem__(self, who: K) -> T:
        found = self._of.pop(who, None) or self._make()
        self._of[who] = found
        if len(self._of) > SOURCES:
            self._of.popitem(last=False)
        return found


class Throttle:
    """Limits how often each source and all of them together may come. `each`: for one address; `all`: for all of them,
    since addresses can be forged. Times are monotonic seconds."""

    def __init__(self, each: Rate, all: Rate) -> None:
        self._all = Bucket(all)
        self._sources = RecentSources[str, Bucket](lambda: Bucket(each))
        self._refused: dict[str, int] = {}
        """Refusals since the last news."""
        self._reported_at = float("-inf")

    def has_room(self, source: str, now: float) -> bool:
        """Whether one more may come from this source; counts nothing."""
        return self._sources[source].has(now) and self._all.has(now)

    def admits(self, source: str, now: float) -> bool:
        """Count one more from this source; returns whether it may come. One that comes too often takes nothing from the
        others."""
        if self.has_room(source, now):
            self._sources[source].take()
            self._all.take()
            return True
        self.refused(source)
        return False

    def refused(self, source: str) -> None:
        """Count one that was refused elsewhere, for `summary`; `admits` does so itself."""
        if len(self._refused) < SOURCES or source in self._refused:
            self._refused[source] = self._refused.get(source, 0) + 1

    def summary(self, now: float) -> str:
        """A summary of the refusals since the last one, at most once a minute; empty: there were none, or it is too
        early."""
        if not self._refused or now - self._reported_at < NEWS_S:
            return ""
        worst = max(self._refused, key=self._refused.__getitem__)
        most = self._refused[worst]
        others = sum(self._refused.values()) - most
        self._refused.clear()
        self._reported_at = now
        return f"{most} from {worst}{f', {others} from others' if others else ''}"


class _Source:
    """A source with the rest of its rate, and how much it has taken lately."""

    __slots__ = ("_at", "_taken", "own")

    def __init__(self, rate: Rate) -> None:
        self.own = Bucket(rate)
        self._taken = self._at = 0.0

    def lately(self, now: float) -> float:
        self._taken *= exp((self._at - now) / LATELY_S)
        self._at = now
        return self._taken

    def take(self) -> None:
        self.own.take()
        self._taken += 1


class FairRate:
    """Shares a limited rate: the source that has taken least lately goes first. `each`: for one source; `all`: for all
    of them. The less is left for all, the less may a source have taken lately to get more. For sources that cannot be
    forged, since made-up ones are all new. Times are monotonic seconds."""

    def __init__(self, each: Rate, all: Rate) -> None:
        self._each = each
        self._all = Bucket(all)
        self._ample = all.burst - each.burst
        """While so much is left, what a source has taken does not matter: one source alone never gets below it."""
        self._sources = RecentSources[str, _Source](lambda: _Source(each))

    def admits(self, name: str, now: float) -> bool:
        """Count one more from this source; returns whether it may come."""
        source = self._sources[name]
        if not (source.own.has(now) and self._all.has(now)) or source.lately(now) >= self._most():
            return False
        source.take()
        self._all.take()
        return True

    def _most(self) -> float:
        """The most that a source may have taken lately to get more now. Always above 0, so that new ones get in."""
        left = self._all.left / self._ample
        return inf if left >= 1 else self._each.burst * left * left

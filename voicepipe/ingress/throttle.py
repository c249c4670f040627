"""How often somebody is listened to: a token bucket for each address, and one for all together. Pure."""

from collections import OrderedDict
from dataclasses import dataclass

SOURCES = 4096
"""Addresses that are remembered; the one that was heard longest ago is forgotten first."""
NEWS_S = 60.0


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many a second in the long run."""

    burst: float
    per_s: float


class Bucket:
    """Tokens at a rate. What a thing costs may be known only afterwards: it may leave a debt, of a burst at most."""

    __slots__ = ("_rate", "_seen", "_tokens")

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate, self._tokens, self._seen = rate, rate.burst, now

    def fill(self, now: float) -> bool:
        """Whether there is a token."""
        self._tokens = min(self._rate.burst, self._tokens + (now - self._seen) * self._rate.per_s)
        self._seen = now
        return self._tokens >= 1

    @property
    def tokens(self) -> float:
        """What there was when it was last filled, without what was taken since."""
        return self._tokens

    def take(self, tokens: float = 1.0) -> None:
        self._tokens = max(-self._rate.burst, self._tokens - tokens)


class Throttle:
    """`each`: of one address; `all`: of all of them, since addresses can be forged. Times are monotonic seconds."""

    def __init__(self, each: Rate, all: Rate) -> None:
        self._each = each
        self._all = Bucket(all, 0.0)
        self._sources: OrderedDict[str, Bucket] = OrderedDict()
        self._refused: dict[str, int] = {}
        """Since the last news."""
        self._told = float("-inf")

    def has_room(self, source: str, now: float) -> bool:
        """Whether one more may come from there, without counting one."""
        bucket = self._sources.pop(source, None) or Bucket(self._each, now)
        self._sources[source] = bucket
        if len(self._sources) > SOURCES:
            self._sources.popitem(last=False)
        return bucket.fill(now) and self._all.fill(now)

    def admits(self, source: str, now: float) -> bool:
        """Whether one more may come from there. Who comes too often takes nothing from the others."""
        if self.has_room(source, now):
            self._sources[source].take()
            self._all.take()
            return True
        self.refused(source)
        return False

    def refused(self, source: str) -> None:
        """One that was turned away, for the news; `admits` does so itself."""
        if len(self._refused) < SOURCES or source in self._refused:
            self._refused[source] = self._refused.get(source, 0) + 1

    def news(self, now: float) -> str:
        """What was refused since the last news, at most once a minute; empty: nothing, or it is too early to say."""
        if not self._refused or now - self._told < NEWS_S:
            return ""
        worst = max(self._refused, key=self._refused.__getitem__)
        most = self._refused[worst]
        others = sum(self._refused.values()) - most
        self._refused.clear()
        self._told = now
        return f"{most} from {worst}{f', {others} from others' if others else ''}"

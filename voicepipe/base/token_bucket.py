"""Token buckets: how much of something one may have, in the long run and at once, such as messages, datagrams, the
processor's time; and shares of a common resource. Pure."""

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate with bursts: so much at once, and so much a second in the long run."""

    burst: float
    per_s: float


class Bucket:
    """A token bucket, full at first. The cost of a thing may be known only afterwards, so one may take more than is
    left and owes the rest: at most `owes`, a burst by default. Times are seconds of a clock that begins at 0 or
    later."""

    __slots__ = ("_burst", "_left", "_owes", "_per_s", "_seen")

    def __init__(self, rate: Rate, owes: float | None = None) -> None:
        self._burst = self._left = rate.burst
        self._per_s = rate.per_s
        self._owes = rate.burst if owes is None else owes
        self._seen = 0.0

    def has(self, now: float) -> bool:
        """Whether anything is left."""
        left = self._left + (now - self._seen) * self._per_s
        self._left = left if left < self._burst else self._burst  # Cheaper than `min`: asked for each packet.
        self._seen = now
        return self._left > 0

    @property
    def left(self) -> float:
        """The tokens that were left when `has` was last called, less those taken since."""
        return self._left

    def take(self, amount: float = 1.0) -> None:
        """Take tokens, after `has`."""
        left = self._left - amount
        self._left = left if left > -self._owes else -self._owes

    def admits(self, now: float) -> bool:
        """Take one if anything is left."""
        if not self.has(now):
            return False
        self._left -= 1
        return True

    def set_rate(self, per_s: float, now: float) -> None:
        """Change the rate of refilling."""
        self.has(now)
        self._per_s = per_s

    def wait_s(self, now: float) -> float:
        """Seconds until the whole debt is paid."""
        self.has(now)
        return max(0.0, -self._left / self._per_s)


class Allowance:
    """The share of one among many in a common resource, in the unit of its buckets.

    `commons` is what all may have together. A small need never depends on it: `sure` is each one's own. `own` is the
    most that one may have. The debt of each is in its bucket. All of `sure` together can be more than the commons have,
    so those should owe a burst at most: otherwise small needs would wait for minutes until more is paid."""

    __slots__ = ("_commons", "_own", "_sure")

    def __init__(self, commons: Bucket, own: Bucket, sure: Bucket) -> None:
        self._commons, self._own, self._sure = commons, own, sure

    def has(self, now: float) -> bool:
        """Whether this one may have more now."""
        sure, commons = self._sure.has(now), self._commons.has(now)
        return self._own.has(now) and (sure or commons)

    def take(self, amount: float) -> None:
        """Take so much."""
        for bucket in (self._own, self._commons, self._sure):
            bucket.take(amount)


class FairShare:
    """Divides a number of slots: each may have at most `times` as many as are free. The fewer are free, the fewer one
    may have, so that a newcomer finds some free, whatever any other does."""

    def __init__(self, all: int, times: int = 1) -> None:
        self.busy = 0
        self._all, self._times = all, times
        self._of = Counter[str]()

    def may(self, who: str) -> bool:
        """Whether this one may have one more."""
        return self._of[who] < self._times * (self._all - self.busy)

    def take(self, who: str) -> None:
        self.busy += 1
        self._of[who] += 1

    def give_back(self, who: str) -> None:
        self.busy -= 1
        self._of[who] -= 1
        if not self._of[who]:
            del self._of[who]

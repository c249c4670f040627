"""How much of something one may have, in the long run and at once: messages, datagrams, the processor's time; and of
what there is only so much. Pure."""

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """So much at once, and so much a second in the long run."""

    burst: float
    per_s: float


class Bucket:
    """A token bucket, full at first. What a thing costs may be known only afterwards, so one may take more than is left
    and owes the rest: `owes` at most, a burst unless told. Times are seconds of a clock that begins at 0 or later."""

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
        """As it was when somebody asked for the time last, less what was taken since."""
        return self._left

    def take(self, amount: float = 1.0) -> None:
        """Of what `has` told."""
        left = self._left - amount
        self._left = left if left > -self._owes else -self._owes

    def admits(self, now: float) -> bool:
        """Takes one if anything is left."""
        if not self.has(now):
            return False
        self._left -= 1
        return True

    def is_full(self, now: float) -> bool:
        """It is as it was when it was made."""
        self.has(now)
        return self._left >= self._burst

    def set_rate(self, per_s: float, now: float) -> None:
        """So much comes in from now on."""
        self.has(now)
        self._per_s = per_s

    def wait_s(self, now: float) -> float:
        """Seconds until all that is owed has come in."""
        self.has(now)
        return max(0.0, -self._left / self._per_s)


class Allowance:
    """What one of many may have of something that all of them share, in whatever unit its buckets count.

    `commons` is what all may have together. Who needs little never depends on it: `sure` is theirs alone. `own` is the
    most that they may have. How much is owed of each, its bucket says. What is `sure` to all can be more than the
    commons have, so those should owe a burst at most: who needs little would wait for minutes until more is paid.
    """

    __slots__ = ("_commons", "_own", "_sure")

    def __init__(self, commons: Bucket, own: Bucket, sure: Bucket) -> None:
        self._commons, self._own, self._sure = commons, own, sure

    def has(self, now: float) -> bool:
        """Whether they may have more now."""
        sure, commons = self._sure.has(now), self._commons.has(now)
        return self._own.has(now) and (sure or commons)

    def take(self, amount: float) -> None:
        """They had so much."""
        for bucket in (self._own, self._commons, self._sure):
            bucket.take(amount)


class FairShare:
    """So many in all, and how many of them each has: at most `times` as many as are free.

    So the fewer are free, the fewer one may have, and who has none finds some free, whatever any one other does."""

    def __init__(self, all: int, times: int = 1) -> None:
        self.busy = 0
        self._all, self._times = all, times
        self._of = Counter[str]()

    def may(self, who: str) -> bool:
        """They may have one more."""
        return self._of[who] < self._times * (self._all - self.busy)

    def take(self, who: str) -> None:
        self.busy += 1
        self._of[who] += 1

    def give_back(self, who: str) -> None:
        self.busy -= 1
        self._of[who] -= 1
        if not self._of[who]:
            del self._of[who]

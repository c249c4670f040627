"""How much of something one may have, in the long run and at once: messages, datagrams, the processor's time. Pure."""

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
        self._left = min(self._burst, self._left + (now - self._seen) * self._per_s)
        self._seen = now
        return self._left > 0

    @property
    def left(self) -> float:
        """As it was when somebody asked for the time last, less what was taken since."""
        return self._left

    def take(self, amount: float = 1.0) -> None:
        """Of what `has` told."""
        self._left = max(-self._owes, self._left - amount)

    def admits(self, now: float) -> bool:
        """Takes one if anything is left."""
        left = self._left + (now - self._seen) * self._per_s  # As `has`, at half the price.
        self._seen = now
        self._left = left = left if left < self._burst else self._burst
        if left <= 0:
            return False
        self._left = left - 1
        return True

    def set_rate(self, per_s: float, now: float) -> None:
        """So much comes in from now on."""
        self.has(now)
        self._per_s = per_s

    def wait_s(self, now: float) -> float:
        """Seconds until all that is owed has come in."""
        self.has(now)
        return max(0.0, -self._left / self._per_s)

"""How much of something one peer may have: datagrams, or the processor's time. Pure; times are monotonic seconds."""


class Bucket:
    """`burst` at once and `per_s` a second in the long run. What was not known beforehand may overdraw it."""

    __slots__ = ("_burst", "_left", "_per_s", "_seen")

    def __init__(self, burst: float, per_s: float) -> None:
        self._burst = self._left = burst
        self._per_s = per_s
        self._seen = float("-inf")

    def has(self, now: float) -> bool:
        """Whether anything is left."""
        self._left = min(self._burst, self._left + (now - self._seen) * self._per_s)
        self._seen = now
        return self._left > 0

    def take(self, amount: float = 1.0) -> None:
        self._left -= amount

    def take_in_bounds(self, amount: float) -> None:
        """As `take`, but no more than a burst is ever owed."""
        self._left = max(-self._burst, self._left - amount)

    def admits(self, now: float) -> bool:
        """Takes one if anything is left."""
        left = self._left + (now - self._seen) * self._per_s  # As `has`, at half the price.
        self._seen = now
        self._left = left = left if left < self._burst else self._burst
        if left <= 0:
            return False
        self._left = left - 1
        return True


class Share:
    """One peer's part of the processor's time, in seconds.

    `commons` is what all peers together may use. A peer that needs little never depends on it: `sure` is its own.
    A peer owes all that it had beyond `own`. Of the other two a burst at most is owed, since what is `sure` to all can
    be more than the commons have: honest peers would wait for minutes until the debt of others is paid.
    """

    __slots__ = ("_commons", "_own", "_sure")

    def __init__(self, commons: Bucket, own: Bucket, sure: Bucket) -> None:
        self._commons, self._own, self._sure = commons, own, sure

    def has(self, now: float) -> bool:
        """Whether the peer may be listened to now."""
        sure, commons = self._sure.has(now), self._commons.has(now)
        return self._own.has(now) and (sure or commons)

    def spent(self, seconds: float) -> None:
        """So much went into what the peer sent."""
        self._own.take(seconds)
        self._commons.take_in_bounds(seconds)
        self._sure.take_in_bounds(seconds)

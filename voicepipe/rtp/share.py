"""A peer's part of the processor's time. Pure; times are monotonic seconds."""

from voicepipe.bucket import Bucket


class Share:
    """One peer's part of the processor's time, in seconds.

    `commons` is what all peers together may use. A peer that needs little never depends on it: `sure` is its own.
    A peer owes all that it had beyond `own`, whose debts have no bound. Of the other two a burst at most is owed, since
    what is `sure` to all can be more than the commons have: honest peers would wait for minutes until that is paid.
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
        for bucket in (self._own, self._commons, self._sure):
            bucket.take(seconds)

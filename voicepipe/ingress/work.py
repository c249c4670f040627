"""What a key's HTTP requests may take of the event loop: to read what they bring, to begin its calls. Pure.

A WebSocket's messages wait for their turn (`realtime/share.py`). A request that comes too early is refused instead, and
says when it may come again: what waits would be held in memory, as many requests as there are connections.
"""

from voicepipe.bucket import Bucket, Rate
from voicepipe.errors import OverShare
from voicepipe.ingress.keys import Caller
from voicepipe.ingress.throttle import Remembered

AGAIN_S = 5
"""A debt that is as large as can be is paid after about so long."""
ONE_SAVED_MS, MANY_SAVED_MS = 250.0, 1000.0
"""Of the loop's time that one `ek_` key has saved up at most, and a tenant. A call by WebRTC is placed in 1 to 5 ms."""
MANY = 2
"""A tenant's own key has so many shares of a client, and so have all of its `ek_` keys together."""


class Work:
    """Of one PoP. `percent`: as `limits.client_percent`. Times are monotonic seconds."""

    def __init__(self, percent: int) -> None:
        each = 10.0 * percent
        one, many = Rate(ONE_SAVED_MS, each), Rate(MANY_SAVED_MS, MANY * each)
        self._one = Remembered[tuple[str, str], Bucket](lambda: Bucket(one))
        """Milliseconds, by tenant and `ek_` key."""
        self._many = Remembered[tuple[str, str], Bucket](lambda: Bucket(many))
        """By tenant, of its own key and of all of its `ek_` keys."""

    def check(self, who: Caller, now: float) -> None:
        """Raises OverShare: what this key has asked for took too much."""
        if not all(bucket.has(now) for bucket in self._buckets(who)):
            raise OverShare(
                "What is asked for with this key takes more of this server's time than its share: ask less often, or "
                f"with shorter sessions, and again in {AGAIN_S} s."
            )

    def took(self, who: Caller, seconds: float, now: float) -> None:
        """Of the processor's time, for what it has asked for."""
        for bucket in self._buckets(who):
            bucket.has(now)
            bucket.take(1000 * seconds)

    def _buckets(self, who: Caller) -> list[Bucket]:
        """An `ek_` key's own and the one of all of its tenant's, which takes nothing from the tenant's own key."""
        tenant = who.tenant.name
        if not who.secret:
            return [self._many[tenant, ""]]
        return [self._one[tenant, who.secret], self._many[tenant, "ek_"]]

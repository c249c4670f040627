"""What a key's requests may take of the event loop: to read what they bring, to begin its calls. Pure.

A call's messages wait for their turn (`share.py`). A request that comes too early is refused instead, and
says when it may come again: what waits would be held in memory, as many requests as there are connections.
"""

from voicepipe.bucket import Allowance, Bucket, Rate
from voicepipe.errors import OverShare
from voicepipe.ingress.keys import Caller
from voicepipe.ingress.throttle import Remembered

AGAIN_S = 5
"""A debt that is as large as can be is paid after about so long."""
ONE_SAVED_MS, MANY_SAVED_MS = 250.0, 1000.0
"""Of the loop's time that one `ek_` key has saved up at most, and a tenant. A call by WebRTC is placed in 1 to 5 ms."""
MANY = 2
"""A tenant's own key has so many shares of a client, and so have all of its `ek_` keys together."""
SURE = Rate(10.0, 2.0)
"""Milliseconds that an `ek_` key has at once, and a second, though all of its tenant's together have nothing left: who
has a few of them could otherwise keep every other browser out."""


class Work:
    """Of one PoP. `percent`: as `limits.client_percent`. Times are monotonic seconds."""

    def __init__(self, percent: int) -> None:
        each = 10.0 * percent
        one, many = Rate(ONE_SAVED_MS, each), Rate(MANY_SAVED_MS, MANY * each)
        self._tenants = Remembered[str, Bucket](lambda: Bucket(many))
        """Milliseconds, of its own key; in all of these by tenant."""
        self._commons = Remembered[str, Bucket](lambda: Bucket(many))
        """Of all its `ek_` keys, which take nothing from its own key."""
        self._own = Remembered[tuple[str, str], Bucket](lambda: Bucket(one))
        """By `ek_` key, too."""
        self._sure = Remembered[tuple[str, str], Bucket](lambda: Bucket(SURE))

    def check(self, who: Caller, now: float) -> None:
        """Raises OverShare: what this key has asked for took too much."""
        if not (self._allowance(who).has(now) if who.secret else self._tenants[who.tenant.name].has(now)):
            raise OverShare(
                "What is asked for with this key takes more of this server's time than its share: ask less often, or "
                f"with shorter sessions, and again in {AGAIN_S} s."
            )

    def took(self, who: Caller, seconds: float, now: float) -> None:
        """Of the processor's time, for what it has asked for."""
        if who.secret:
            allowance = self._allowance(who)
            allowance.has(now)
            allowance.take(1000 * seconds)
        else:
            bucket = self._tenants[who.tenant.name]
            bucket.has(now)
            bucket.take(1000 * seconds)

    def _allowance(self, who: Caller) -> Allowance:
        """Of an `ek_` key, in milliseconds."""
        key = who.tenant.name, who.secret
        return Allowance(self._commons[who.tenant.name], self._own[key], self._sure[key])

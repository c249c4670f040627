"""How often one source comes, where many share what there is: whoever has taken least lately goes first. Pure."""

from math import exp, inf

from voicepipe.bucket import Bucket, Rate
from voicepipe.ingress.throttle import Remembered

LATELY_S = 60.0
"""What was taken longer ago than this counts a third, and less and less."""


class _Source:
    """What one source may still take, and what it has taken lately."""

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
    """`each`: of one source; `all`: of all of them. The less there is left for all, the less may a source have taken
    lately to get more. Sources that cannot be forged, since those that are made up are all new. Times are monotonic
    seconds."""

    def __init__(self, each: Rate, all: Rate) -> None:
        self._each = each
        self._all = Bucket(all)
        self._ample = all.burst - each.burst
        """While so much is left nobody is asked what they have taken: one source alone never comes below it."""
        self._sources = Remembered[str, _Source](lambda: _Source(each))

    def admits(self, name: str, now: float) -> bool:
        """Whether one more may come from there."""
        source = self._sources[name]
        if not (source.own.has(now) and self._all.has(now)) or source.lately(now) >= self._most():
            return False
        source.take()
        self._all.take()
        return True

    def _most(self) -> float:
        """Who has taken as much lately has to wait until there is more. Always above 0, so that the new come in."""
        left = self._all.left / self._ample
        return inf if left >= 1 else self._each.burst * left * left

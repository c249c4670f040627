"""PoPs that are to get only a share of the calls: those of a version that is on trial, and those whose turns failed
lately. Not each call draws lots: by chance, one version in 40 that is to have a tenth would get ten of the first 50.

Each limit has a credit. It grows by the share with each call for which a PoP under this limit would do as well as
others, and a call that such a PoP gets costs 1. At a tenth that is one call of each ten. Which of the ten, a lot says:
if it were always the tenth, all could be those of a monitor that calls as regularly. So of n calls it has got less than
`share * n + 1` at any time. Each of several directories keeps the share by itself.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from voicepipe.config.directory_config import CanaryConfig
from voicepipe.directory.fleet_view import SeenPop

ROUNDING = 1e-9
"""Ten times 0.1 is a little less than 1."""


@dataclass(frozen=True, slots=True)
class ShareLimit:
    """The limit on a PoP's share of calls, as one choice has to observe it. PoPs of one version have it in common."""

    key: str
    share: float
    due: bool
    """The next call of the share is due."""


@dataclass(slots=True)
class _Credit:
    needed: float
    """Calls that must be earned before the next one, above 0 and up to 1, drawn at random."""
    earned: float = 0.0
    """Calls that were earned; below 0 after a call that came early."""
    competed: int = 0
    took: int = 0


@dataclass(frozen=True, slots=True)
class CanaryCount:
    """Counts of calls under one trial, for operators."""

    version: str
    pop: str
    share: float
    took: int
    """Calls that went there, since the directory began or the share changed, ..."""
    of: int
    """... out of so many for which it would have done as well as others."""


@dataclass(slots=True)
class CallShares:
    """Limits the share of calls of PoPs on trial, or whose turns failed, at one directory. A PoP may be under two
    limits, its version's and its own: it gets a call once both allow it."""

    canaries: Sequence[CanaryConfig] = ()
    lots: Random = field(default_factory=Random)
    _credits: dict[str, _Credit] = field(default_factory=dict)

    def change(self, canaries: Sequence[CanaryConfig]) -> None:
        """Replace the trials. One that is new, or has another share, is counted anew."""
        for canary in {*self.canaries, *canaries} - ({*self.canaries} & {*canaries}):
            self._credits.pop(_key(canary), None)
        self.canaries = canaries

    def limits(self, pops: Iterable[SeenPop]) -> dict[str, tuple[ShareLimit, ...]]:
        """The limits by PoP; PoPs under no limit are left out."""
        found = {seen.pop: tuple(self._of(seen)) for seen in pops}
        return {pop: limits for pop, limits in found.items() if limits}

    def settle(
        self, competed: Collection[str], spent: Collection[str], limits: Mapping[str, Sequence[ShareLimit]]
    ) -> None:
        """Count a call that was placed. `competed`: keys of the limits under which a PoP would have done as well;
        `spent`: those under which one got it."""
        by_key = {limit.key: limit for of_pop in limits.values() for limit in of_pop}
        for key in competed:
            credit = self._credit(key)
            credit.competed += 1
            credit.earned += by_key[key].share
            if key in spent:
                credit.earned -= 1
                credit.needed = self._lot()
                credit.took += 1
            credit.earned = min(1.0, credit.earned)  # What cannot be spent at present is not saved up for a crowd.

    def counts(self) -> list[CanaryCount]:
        """The counts of each trial."""
        return [
            CanaryCount(canary.version, canary.pop, canary.share, credit.took, credit.competed)
            for canary in self.canaries
            for credit in (self._credit(_key(canary)),)
        ]

    def _of(self, seen: SeenPop) -> Iterable[ShareLimit]:
        for canary in self.canaries:
            if seen.pop == canary.pop if canary.pop else seen.condition.version == canary.version:
                yield self._limit(_key(canary), canary.share)
                break  # The first that fits counts.
        if seen.condition.share < 1:
            yield self._limit(f"own {seen.pop}", seen.condition.share)

    def _limit(self, key: str, share: float) -> ShareLimit:
        credit = self._credit(key)
        return ShareLimit(key, share, due=share > 0 and credit.earned + share >= credit.needed - ROUNDING)

    def _credit(self, key: str) -> _Credit:
        if key not in self._credits:
            self._credits[key] = _Credit(self._lot())
        return self._credits[key]

    def _lot(self) -> float:
        return 1 - self.lots.random()


def _key(canary: CanaryConfig) -> str:
    return f"pop {canary.pop}" if canary.pop else f"version {canary.version}"

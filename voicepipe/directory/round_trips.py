"""Round trips by the callers' networks, learned from the reports of PoPs. Pure: seconds of one clock are passed in.

What one call tells is unsure until a second one agrees: its line may have been a bad one. A network may move: its
addresses are given to somebody else, or its traffic takes another way. Two calls in a row that agree with each other
and not with what is kept replace it, and all that is kept of this network's way to other PoPs is forgotten.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from voicepipe.base.token_bucket import Bucket, Rate

KEPT_S = 600.0
"""Seconds for which a round trip is kept after its last call."""
TRIPS = 50_000
"""Round trips that are kept; beyond that, the networks whose last calls are oldest are dropped. They take about 10
MB."""
NEWEST, SHORTER = 0.3, 0.8
"""Weight of the newest round trip in the average, and its weight if it is shorter: bad lines are longer."""
SURE = 2
"""Calls that have to agree before a round trip counts as sure."""
FAR_MS, FAR_SHARE = 20.0, 0.5
"""A round trip is far from the known one if it differs by more than both."""
TRIES = Rate(3, 1 / 1800)
"""Calls of a network that may be used to find out how far PoPs are, at first and a second. A caller with a slow line is
far from all of them, and would otherwise be sent around the world again and again."""
TRYING_S = 60.0
"""Seconds for which the outcome of such a call is waited for before there is another."""


class NetworkTrips(NamedTuple):
    """The round trips that were learned of one network."""

    ms: dict[str, float]
    """Milliseconds to each PoP with known ones."""
    unsure: frozenset[str]
    """The PoPs whose round trip only one call has measured."""


class LearnedTrip(NamedTuple):
    """A learned round trip from a network to a PoP."""

    network: str
    pop: str
    ms: float
    age_s: float
    """Seconds since its last call."""


@dataclass(slots=True)
class _KeptTrips:
    ms: float
    heard_at: float
    calls: int = 1
    """Calls that agree with one another."""
    doubt_ms: float | None = None
    """The last round trip in ms, if it was far from the known one."""


@dataclass(slots=True)
class _CallerNetwork:
    trips: dict[str, _KeptTrips] = field(default_factory=dict)
    """Round trips by PoP."""
    tries: Bucket = field(default_factory=lambda: Bucket(TRIES))
    trying: str = ""
    """The PoP to which a call was sent to find out how far it is."""
    until: float = 0.0
    """When that call is no longer waited for."""
    heard_at: float = 0.0
    """When the last call from there was reported."""


class RoundTrips:
    """Learns from calls how far callers' networks are from the PoPs. All directories get the same reports. Times are
    monotonic seconds."""

    def __init__(self) -> None:
        self._networks: OrderedDict[str, _CallerNetwork] = OrderedDict()
        """By network; the one whose last call is oldest comes first."""
        self._trips = 0

    def heard(self, network: str, pop: str, ms: float, now: float, *, again: bool = False) -> None:
        """A PoP has reported a call from this network; `again`: not for the first time, and no longer than before."""
        known = self._networks.setdefault(network, _CallerNetwork())
        self._networks.move_to_end(network)
        before, known.heard_at = len(known.trips), now
        if known.trying == pop:
            known.trying = ""
        self._take(known, pop, ms, now, again=again)
        self._trips += len(known.trips) - before
        self._forget(now)

    def _take(self, known: _CallerNetwork, pop: str, ms: float, now: float, *, again: bool) -> None:
        kept = known.trips.get(pop)
        if kept is None or now - kept.heard_at >= KEPT_S:
            known.trips[pop] = _KeptTrips(ms, now)
        elif kept.calls == 1 and _far(ms, kept.ms) and ms < kept.ms:  # A bad line makes it longer, never shorter.
            known.trips[pop] = _KeptTrips(ms, now)
        elif again:
            kept.heard_at = now
            if kept.calls == 1:  # It is the one that is kept, or as unsure.
                kept.ms = min(kept.ms, ms)
        elif not _far(ms, kept.ms):
            newest = SHORTER if ms < kept.ms else NEWEST
            kept.ms, kept.heard_at, kept.doubt_ms = (1 - newest) * kept.ms + newest * ms, now, None
            kept.calls += 1
        elif kept.doubt_ms is None or _far(ms, kept.doubt_ms):
            kept.doubt_ms = ms
        else:
            known.trips = {pop: _KeptTrips(ms, now, calls=2)}

    def _forget(self, now: float) -> None:
        """Forget round trips that are too old or too many, the oldest first."""
        while self._networks:
            oldest = next(iter(self._networks.values()))
            if now - oldest.heard_at < KEPT_S and self._trips <= TRIPS:
                return
            self._trips -= len(self._networks.popitem(last=False)[1].trips)

    def of(self, network: str, now: float) -> NetworkTrips:
        """The round trips learned of a network."""
        known = self._networks.get(network)
        trips = {pop: kept for pop, kept in known.trips.items() if now - kept.heard_at < KEPT_S} if known else {}
        unsure = frozenset(pop for pop, kept in trips.items() if kept.calls < SURE)
        return NetworkTrips({pop: kept.ms for pop, kept in trips.items()}, unsure)

    def may_try(self, network: str, now: float) -> bool:
        """Whether a call from there may go to a PoP that is only guessed to be near."""
        known = self._networks.get(network)
        if known is None or not known.tries.has(now) or known.tries.left < 1:
            return False
        if known.trying and now >= known.until:  # No call has come of it: somebody only asked.
            known.trying = ""
            known.tries.take(-1)
        return not known.trying

    def tries(self, network: str, pop: str, now: float) -> None:
        """A call is sent to this PoP to find out how far it is."""
        if known := self._networks.get(network):
            known.tries.take()
            known.trying, known.until = pop, now + TRYING_S

    def newest(self, now: float, networks: int) -> list[LearnedTrip]:
        """The round trips of so many networks at most, the ones with the latest calls first."""
        return [
            LearnedTrip(network, pop, round(kept.ms, 1), round(now - kept.heard_at, 1))
            for network in islice(reversed(self._networks), networks)
            for pop, kept in self._networks[network].trips.items()
            if now - kept.heard_at < KEPT_S
        ]


def _far(ms: float, kept_ms: float) -> bool:
    return abs(ms - kept_ms) > max(FAR_MS, FAR_SHARE * kept_ms)

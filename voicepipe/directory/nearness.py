"""How far PoPs are from a caller: by known round trips, and otherwise by possible ones. Pure.

What the caller has measured comes first, then what was learned from calls of their network, then the distance. A place
may be wrong: the caller gave another one, or is not where the directory stands. What was learned shows it: round trips
of two calls that are much longer than they should be from there, or shorter than light takes. (After one such call the
next one tries another PoP; a single bad line changes no more than that.) Then the place counts for nothing, and a PoP
that is not learned may be as near as the learned ones allow, by the triangle inequality: a caller who stood at its door
would be as far from the others as it is itself. Such a guess is mostly too good, so calls go there, and what is guessed
becomes known. For who is not to spend calls on that, such a PoP is as far as it can be instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from operator import itemgetter
from typing import Literal, NamedTuple

from voicepipe.base.places import ACCESS_MS, UNSURE_MS, Place, apart_ms, estimated_rtt_ms, least_rtt_ms
from voicepipe.directory.fleet_view import SeenPop

BELIEVED_MS = 30.0
"""Milliseconds by which a round trip may exceed the estimate for the caller's place: over cables it is 60 ms longer."""
SLOWEST_MS = 15.0
"""Milliseconds that a caller's own line may add besides, if it adds them at every PoP."""
WORTH_MS = 5.0
"""Milliseconds that are added to a guess: no call goes elsewhere for less."""
STRETCHES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
"""Factors by which all round trips between PoPs may be shorter or longer than estimated."""
ODD_MS = 100.0
"""Milliseconds by which a factor counts as a deviation, times its difference from 1, which makes it less likely."""

ENOUGH = 8
"""Learned round trips, the shortest ones, by which the others are guessed."""
PAIRS = 20_000
"""Pairs of PoPs whose distance is remembered."""
_apart_ms = lru_cache(PAIRS)(apart_ms)
_least_ms = lru_cache(PAIRS)(least_rtt_ms)

TripSource = Literal["probe", "learned", "distance", "guess", "unknown"]
"""How a round trip is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """The knowledge about where a caller is."""

    place: Place | None = None
    """The caller's place as it was given; None: it was not."""
    rtt_ms: Mapping[str, float] = field(default_factory=dict)
    """Round trips that they measured, in ms by PoP."""
    learned_ms: Mapping[str, float] = field(default_factory=dict)
    """Round trips of calls from their network, in ms by PoP."""
    unsure: frozenset[str] = frozenset()
    """PoPs whose round trip only one call has measured. Alone it does not prove a place wrong: its line may have been
    bad."""
    tries: bool = False
    """Where learned round trips contradict the place, the call may go to a PoP that is only guessed to be near."""


class Trip(NamedTuple):
    """The round trip between a caller and a PoP."""

    ms: float | None
    """None: it is unknown."""
    by: TripSource


def trips(pops: Sequence[SeenPop], caller: Whereabouts) -> Mapping[str, Trip]:
    """The round trips to all PoPs, by PoP."""
    places = {seen.pop: seen.condition.place for seen in pops}
    learned_ms, here = _of_one_place(caller.learned_ms, places), caller.place
    known = {pop: (place, learned_ms[pop]) for pop, place in places.items() if place and pop in learned_ms}
    against = _against(here, known) if here else set()
    witnesses = sum(1 if pop in caller.unsure else 2 for pop in against)
    doubted = against if witnesses == 1 else set()
    is_lost = bool(known) and (here is None or witnesses > 1 or (witnesses == 1 and caller.tries))
    found = {pop: Trip(ms, "learned") for pop, ms in learned_ms.items() if pop not in doubted}
    found |= {pop: Trip(ms, "probe") for pop, ms in caller.rtt_ms.items()}
    unknown = {pop: place for pop, place in places.items() if pop not in found}
    if is_lost:
        return found | {pop: _guess(pop, place, known, tries=caller.tries) for pop, place in unknown.items()}
    slower_ms = _slower_ms(here, [trip for pop, trip in known.items() if pop not in doubted])
    return found | {pop: _by_distance(place, here, slower_ms) for pop, place in unknown.items()}


def _of_one_place(learned_ms: Mapping[str, float], places: Mapping[str, Place | None]) -> Mapping[str, float]:
    """The learned round trips; none, if nobody can be as near to two PoPs as they say: then several callers share one
    address, or somebody reports lies."""
    placed = ((ms, place) for pop, ms in learned_ms.items() if (place := places.get(pop)))
    known = sorted(placed, key=itemgetter(0))[:ENOUGH]
    cannot_be = (one + other < _least_ms(here, there) for (one, here), (other, there) in combinations(known, 2))
    return {} if any(cannot_be) else learned_ms


def _against(here: Place, known: Mapping[str, tuple[Place, float]]) -> set[str]:
    """PoPs whose round trips contradict the caller's place: they are longer than cables explain, or shorter than light
    takes."""
    longer_ms = {pop: ms - estimated_rtt_ms(here, place) for pop, (place, ms) in known.items()}
    found = set()
    for pop, (place, ms) in known.items():
        at_others = min((longer for other, longer in longer_ms.items() if other != pop), default=0.0)
        own_line_ms = min(max(0.0, at_others), SLOWEST_MS)
        if ms < least_rtt_ms(here, place) or longer_ms[pop] > own_line_ms + BELIEVED_MS:
            found.add(pop)
    return found


def _slower_ms(here: Place | None, learned: Sequence[tuple[Place, float]]) -> float:
    """Milliseconds that the caller's own line adds to the estimate at every PoP; below 0 where the estimate is too
    high."""
    slower = (ms - estimated_rtt_ms(here, place) for place, ms in learned) if here else ()
    return max(-(ACCESS_MS + UNSURE_MS), min(slower, default=0.0))


def _by_distance(place: Place | None, here: Place | None, slower_ms: float) -> Trip:
    if not (place and here):
        return Trip(None, "unknown")
    return Trip(estimated_rtt_ms(here, place) + slower_ms, "distance")


def _guess(pop: str, place: Place | None, known: Mapping[str, tuple[Place, float]], *, tries: bool) -> Trip:
    """A guess by the known round trips, without the PoP's own, if it is one of them."""
    if place is None:
        return Trip(None, "unknown")
    others = sorted((trip for other, trip in known.items() if other != pop), key=itemgetter(1))[:ENOUGH]
    if not others:
        return Trip(known[pop][1], "learned")
    if not tries:
        return Trip(min(ms + _apart_ms(other, place) for other, ms in others) + UNSURE_MS, "guess")
    ways = [(max(0.0, ms - ACCESS_MS), _apart_ms(other, place)) for other, ms in others]
    misfits = (
        max(abs(ms - stretch * apart) for ms, apart in ways) + ODD_MS * abs(1 - stretch) for stretch in STRETCHES
    )
    return Trip(ACCESS_MS + min(misfits) + WORTH_MS, "guess")

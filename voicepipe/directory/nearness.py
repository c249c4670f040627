"""How far PoPs are from a caller: by what is known, and where nothing is, by what can be. Pure.

What the caller has measured comes first, then what was learned from calls of their network, then the distance. A place
may be wrong: the caller gave another one, or is not where the directory stands. What was learned shows it: a round trip
that is much longer than it should be from there, or shorter than light takes. Then the place counts for nothing, and a
PoP that is not learned may be as near as the learned ones allow, by the triangle inequality: a caller who stood at its
door would be as far from the others as it is itself. Such a guess is mostly too good, so calls go there, and what is
guessed becomes known. For who is not to spend calls on that, such a PoP is as far as it can be instead.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from voicepipe.directory.view import SeenPop
from voicepipe.places import ACCESS_MS, UNSURE_MS, Place, apart_ms, least_rtt_ms, reckoned_rtt_ms

BELIEVED_MS = 30.0
"""So much longer than reckoned a round trip may be from where the caller is said to be: over cables 60 ms longer."""
WORTH_MS = 5.0
"""A guess counts as so much longer: nobody is sent anywhere for less."""
STRETCHES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
"""Round trips between PoPs may be shorter or longer than reckoned, all by about the same factor,"""
ODD_MS = 100.0
"""which is the less likely the more it differs from 1: by so many ms for all of it."""

By = Literal["probe", "learned", "distance", "guess", "unknown"]
"""How a round trip is known."""


class Whereabouts(NamedTuple):
    """What is known of where a caller is."""

    place: Place | None
    """As is said; None: nobody says."""
    probed_ms: Mapping[str, float]
    """Round trips that they measured, by PoP."""
    learned_ms: Mapping[str, float]
    """Those of calls from their network."""
    tries: bool
    """Their call may go where it is only guessed that it is near."""


class Trip(NamedTuple):
    """Between a caller and a PoP."""

    ms: float | None
    """None: nobody knows."""
    by: By


def trips(pops: Sequence[SeenPop], caller: Whereabouts) -> Mapping[str, Trip]:
    """By PoP, to all of them."""
    places = {seen.pop: seen.condition.place for seen in pops}
    learned = [(place, caller.learned_ms[pop]) for pop, place in places.items() if place and pop in caller.learned_ms]
    if learned and not (caller.place and _believed(caller.place, learned)):
        unknown = {pop: _guess(place, learned, tries=caller.tries) for pop, place in places.items()}
    else:
        slower_ms = _slower_ms(caller.place, learned)
        unknown = {pop: _by_distance(place, caller.place, slower_ms) for pop, place in places.items()}
    found = {pop: Trip(ms, "learned") for pop, ms in caller.learned_ms.items()}
    probed = {pop: Trip(ms, "probe") for pop, ms in caller.probed_ms.items()}
    return {**unknown, **found, **probed}


def _believed(here: Place, learned: Sequence[tuple[Place, float]]) -> bool:
    """Whether the caller may be here."""
    return all(least_rtt_ms(here, place) <= ms <= reckoned_rtt_ms(here, place) + BELIEVED_MS for place, ms in learned)


def _slower_ms(here: Place | None, learned: Sequence[tuple[Place, float]]) -> float:
    """What the caller's own line adds, at every PoP."""
    slower = (ms - reckoned_rtt_ms(here, place) for place, ms in learned) if here else ()
    return max(0.0, min(slower, default=0.0))


def _by_distance(place: Place | None, here: Place | None, slower_ms: float) -> Trip:
    if not (place and here):
        return Trip(None, "unknown")
    return Trip(reckoned_rtt_ms(here, place) + slower_ms, "distance")


def _guess(place: Place | None, learned: Sequence[tuple[Place, float]], *, tries: bool) -> Trip:
    if place is None:
        return Trip(None, "unknown")
    if not tries:
        return Trip(min(ms + apart_ms(other, place) for other, ms in learned) + UNSURE_MS, "guess")
    ways = [(max(0.0, ms - ACCESS_MS), apart_ms(other, place)) for other, ms in learned]
    misfits = (
        max(abs(ms - stretch * apart) for ms, apart in ways) + ODD_MS * abs(1 - stretch) for stretch in STRETCHES
    )
    return Trip(ACCESS_MS + min(misfits) + WORTH_MS, "guess")

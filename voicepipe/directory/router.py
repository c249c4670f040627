"""Chooses the PoP for a call. A pure function of the view of the PoPs, of the request, and of random draws.

First the requirements: the zone that the law asks for, an agent and a language, a free slot. Of these PoPs those are in
time that are near enough and would answer this call within their budget. The nearest takes it. Where that one has begun
to fill, others that are nearly as near share: two are drawn, and the emptier one wins. Figures are up to a second old,
and the one that seems the emptiest of all would be overrun; a choice of two is hardly worse on old figures than on new
ones (Mitzenmacher, "How useful is old information?", 2000). If none is in time, the nearest with a free slot takes the
call, and the answer says so. A PoP has the last word: it may refuse, and the caller goes on to the next candidate.

An agent's hook may have another agent answer. PoPs that cannot have all of them answer come behind those that can.

Some PoPs are to get only a share of the calls (`call_shares.py`). Of calls for which they would do as well they get
that share, and of others none while another PoP is in time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from voicepipe.base.errors import NoPop
from voicepipe.directory.call_shares import ShareLimit
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.directory.nearness import Trip, TripSource, Whereabouts, trips
from voicepipe.directory.report import Condition
from voicepipe.sizing.prediction import with_more

PLAYOUT_MS = {"websocket": 40.0, "webrtc": 40.0, "sip": 60.0, "twilio": 60.0, "telnyx": 60.0}
"""Milliseconds of delay at a caller's own end, by kind of call."""
FARTHEST_MS = 150.0
"""Round trip and playout in ms; from farther away no answer is in time, however quick the PoP."""
STALE_S = 2.5
STALE_MS_PER_S = 10.0
"""Milliseconds by which a PoP counts as later for each second of its report's age beyond this."""
FILLING = 0.75
"""Part of a PoP's slots, with this call; with more of them taken, the nearest shares with others. Of four slots that is
the last: to share from the third on sent one call in twelve up to 25 ms farther, and prevented no refusal."""
BAND_MS = 25.0
"""Milliseconds by which a PoP may be farther than the nearest to share its calls."""
MUCH_SHORTER_MS = 60.0
CANDIDATES = 3
"""Candidates in an answer to a client that can ask again."""
ALTERNATES = 2
"""Other PoPs that a PoP names to callers that it refuses."""
TAKES = ("ok", "late")
"""Statuses of PoPs that may take a call. One that is late may be in time again when the caller comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCall(Whereabouts):
    """The requirements and wishes of a call for which a PoP is chosen, and where its caller is."""

    kind: str
    """ "websocket", "webrtc", "sip", "twilio" or "telnyx"."""
    zone: str = ""
    """The call may not leave this zone."""
    region: str = ""
    """The call goes to a PoP of this region while one has room; empty: to any."""
    agents: tuple[str, ...] = ()
    """Names of agents: the PoP has to have one of them; empty: the default one will do."""
    language: str = ""
    model: str = ""
    tried: frozenset[str] = frozenset()
    """PoPs that refused the call or did not answer."""
    most: int = CANDIDATES
    """Candidates that the caller will try at most."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A PoP that could take the call."""

    seen: SeenPop
    near_ms: float
    """Round trip and playout, in ms."""
    predicted_ms: float
    """Turn latency with this call, calls on their way and the report's age included."""
    load: float
    """Part of its slots in use, with this call."""
    by: TripSource
    """How the round trip is known."""

    @property
    def doubtful(self) -> bool:
        """Whether it will probably refuse, since it is late, or not answer at all, or its turns fail. It is still worth
        a try after all others."""
        return self.seen.condition.status != "ok" or self.seen.silent or not self.seen.condition.share

    @property
    def in_time(self) -> bool:
        """Whether its answers would come in time."""
        in_budget = self.predicted_ms <= self.seen.condition.budget_ms
        return in_budget and self.near_ms <= FARTHEST_MS and not self.doubtful

    @property
    def turn_ms(self) -> float:
        """From the caller's last word to what they hear of the answer."""
        return self.near_ms + self.predicted_ms


ShareLimits = Mapping[str, Sequence[ShareLimit]]
"""Limits by PoP, of those that are to get only a share of the calls."""
ChoiceReason = Literal["nearest", "shares", "limited", "least late"]
"""Why the first candidate was chosen: it is the nearest in time; the nearest fills, and this one is nearly as near; it
is due a share of the calls; no PoP is in time."""


@dataclass(frozen=True, slots=True)
class _Allotment:
    due: Candidate | None = None
    """PoPs whose share is due: one of them gets the call."""
    held: frozenset[str] = frozenset()
    """PoPs that come behind all others in time."""
    competed: frozenset[str] = frozenset()
    """Keys of limits under which a PoP would have done as well."""
    spent: frozenset[str] = frozenset()
    """Keys of limits under which a PoP gets the call."""


@dataclass(frozen=True, slots=True)
class RankedPops:
    """The candidates for a call, the best first, `WantedCall.most` of them at most."""

    candidates: tuple[Candidate, ...]
    why: ChoiceReason
    """Why the first one is first."""
    competed: frozenset[str] = frozenset()
    spent: frozenset[str] = frozenset()
    """Keys of limits, for `CallShares.settle`."""

    @property
    def degraded(self) -> bool:
        """The first one is not in time."""
        return self.why == "least late"


def choose(pops: Sequence[SeenPop], wanted: WantedCall, lots: Random, limits: ShareLimits | None = None) -> RankedPops:
    """Choose the PoPs for a call. Raises NoPop: none can take it."""
    near = trips(pops, wanted)
    able = eligible(pops, wanted)
    # A silent one's last report keeps nobody out: it may have room by now, and if not it says so.
    room = [seen for seen in able if _has_room(seen)] or [seen for seen in able if _may_have_room(seen)]
    possible = [_candidate(seen, wanted.kind, near[seen.pop]) for seen in room]
    if not possible:
        raise NoPop(f"No PoP{_in_zone(wanted)} has room for this call at present; try again later.", "no_room")
    complete = _complete(possible, wanted)
    pinned = [candidate for candidate in complete if candidate.seen.condition.region == wanted.region]
    allotted = _allotted(complete, pinned or complete, limits) if limits else _Allotment()
    pinned = [one for one in pinned if one.seen.condition.share and one.seen.pop not in allotted.held]
    first = pinned or complete
    choice = _choice(first, lots, wanted.most, allotted)
    candidates = choice.candidates
    for pool in (complete, possible):
        if rest := [candidate for candidate in pool if candidate not in first]:
            candidates = (*candidates, *_choice(rest, lots, wanted.most, allotted).candidates)
        first = pool
    return RankedPops(candidates[: wanted.most], choice.why, allotted.competed, allotted.spent)


def _complete(possible: Sequence[Candidate], wanted: WantedCall) -> Sequence[Candidate]:
    """The PoPs at which all agents can answer that the hooks of the agents asked for may name; all of them where none
    is, or only such as will probably refuse."""
    asked = wanted.agents or ("",)
    complete = [one for one in possible if not any(name in one.seen.condition.incomplete for name in asked)]
    return complete if any(not one.doubtful for one in complete) else possible


def _choice(possible: Sequence[Candidate], lots: Random, most: int, allotted: _Allotment) -> RankedPops:
    near = sorted(possible, key=lambda candidate: (candidate.doubtful, candidate.near_ms, candidate.seen.pop))
    due = allotted.due if allotted.due in near else None
    in_time = [candidate for candidate in near if candidate.in_time and candidate.seen.pop not in allotted.held]
    first, why = _first(due, in_time, near, lots)
    # It keeps the order of equal ones.
    others = sorted(near, key=lambda candidate: (not candidate.in_time, candidate.seen.pop in allotted.held))
    ranked = (first, *(candidate for candidate in others if candidate is not first))
    return RankedPops(ranked[:most], why)


def _allotted(possible: Sequence[Candidate], pool: Sequence[Candidate], limits: ShareLimits) -> _Allotment:
    """The effect of limits; `pool`: the PoPs to which the call would go without them. PoPs in time with the
    greatest share are not held back; where every PoP in time is under a limit, this share is below 1."""
    in_time = [candidate for candidate in possible if candidate.in_time]
    shares = {
        one.seen.pop: min((limit.share for limit in limits.get(one.seen.pop, ())), default=1.0) for one in in_time
    }
    most = max(shares.values(), default=1.0)
    held = {pop for pop, share in shares.items() if share < most}
    near = [candidate for candidate in pool if candidate.in_time]
    nearest_ms = min((candidate.near_ms for candidate in near), default=0.0)
    rivals = [one for one in near if one.seen.pop in held and one.near_ms <= nearest_ms + BAND_MS]
    tight = {one.seen.pop: [limit for limit in limits[one.seen.pop] if limit.share < most] for one in rivals}
    due = min(
        (one for one in rivals if all(limit.due for limit in tight[one.seen.pop])),
        key=lambda one: (one.near_ms, one.seen.pop),
        default=None,
    )
    return _Allotment(
        due,
        frozenset(held - {due.seen.pop} if due else held),
        competed=frozenset(limit.key for of_pop in tight.values() for limit in of_pop),
        spent=frozenset(limit.key for limit in tight[due.seen.pop]) if due else frozenset(),
    )


def alternates(pops: Sequence[SeenPop], here: Condition) -> list[SeenPop]:
    """PoPs to which a PoP may send callers that it refuses: the nearest two that have room, within its own zone. PoPs
    of its own version come first: only directories know which version is on trial."""
    wanted = WantedCall(kind="", place=here.place, zone=here.zone)
    in_zone = [seen for seen in pops if seen.condition.zone == here.zone or not here.zone]
    near = trips(pops, wanted)
    able = [_candidate(seen, "", near[seen.pop]) for seen in in_zone if _has_room(seen) and seen.condition.share == 1]
    able = [candidate for candidate in able if not candidate.doubtful]
    able.sort(key=lambda one: (one.seen.condition.version != here.version, one.near_ms, one.seen.pop))
    return [one.seen for one in able[:ALTERNATES]]


def eligible(pops: Sequence[SeenPop], wanted: WantedCall) -> list[SeenPop]:
    """PoPs that may take such a call at all. Raises NoPop with the requirement that none meets."""
    left, agents = [seen for seen in pops if seen.pop not in wanted.tried], frozenset(wanted.agents)
    if wanted.zone:
        left = [seen for seen in left if seen.condition.zone == wanted.zone]
        if all(seen.silent for seen in left) and not all(seen.silent for seen in pops):
            left = []  # Others report, so it is rather this zone that is gone than the directory that is cut off.
    if not left:
        untried = " that has not been tried" if wanted.tried else ""
        raise NoPop(f"No PoP{_in_zone(wanted)}{untried} answers at present; try again later.")
    for what, asked, able in (
        ("takes calls by", wanted.kind, lambda seen: wanted.kind in seen.condition.kinds),
        ("has the agent", " or ".join(wanted.agents), lambda seen: not agents.isdisjoint(seen.condition.agents)),
        ("speaks", wanted.language, lambda seen: wanted.language in _languages(seen, agents)),
        ("has the model", wanted.model, lambda seen: seen.condition.model == wanted.model),
    ):
        if asked:
            left = [seen for seen in left if able(seen)]
        if not left:
            text = f"No PoP{_in_zone(wanted)} {what} {asked!r}; correct the request, or try again later."
            if asked == "sip":
                text = f"No PoP{_in_zone(wanted)} says where telephones reach it: set fleet.sip at each PoP."
            raise NoPop(text, "no_match")
    return left


def _languages(seen: SeenPop, agents: frozenset[str]) -> set[str]:
    """The languages of the agents that were asked for; of all where none was."""
    return {language for name, language in seen.condition.agents.items() if not agents or name in agents}


def _in_zone(wanted: WantedCall) -> str:
    return f" of zone {wanted.zone!r}" if wanted.zone else ""


def _has_room(seen: SeenPop) -> bool:
    condition = seen.condition
    return condition.status in TAKES and condition.calls + seen.pending < condition.slots


def _may_have_room(seen: SeenPop) -> bool:
    return seen.silent and seen.condition.status in (*TAKES, "full")


def _candidate(seen: SeenPop, kind: str, trip: Trip) -> Candidate:
    condition = seen.condition
    predicted_ms = with_more(
        condition.predicted_ms, (condition.calls + 1) / condition.slots, seen.pending / condition.slots
    )
    predicted_ms += STALE_MS_PER_S * max(0.0, seen.age_s - STALE_S)
    load = (condition.calls + seen.pending + 1) / condition.slots
    return Candidate(seen, _near_ms(trip, kind), predicted_ms, load, trip.by)


def _near_ms(trip: Trip, kind: str) -> float:
    """A PoP at an unknown distance counts as just near enough, behind all that are known to be."""
    return FARTHEST_MS if trip.ms is None else trip.ms + PLAYOUT_MS.get(kind, 0.0)


def _first(
    due: Candidate | None, in_time: Sequence[Candidate], near: Sequence[Candidate], lots: Random
) -> tuple[Candidate, ChoiceReason]:
    if due:
        return due, "limited"
    if not in_time:
        return _shared(_least_bad(near), near, lots), "least late"
    first = _shared(in_time[0], in_time, lots)
    return first, "nearest" if first is in_time[0] else "shares"


def _shared(nearest: Candidate, near: Sequence[Candidate], lots: Random) -> Candidate:
    """The nearest PoP, or where it fills, one of those of the same kind that are nearly as near."""
    if nearest.load <= FILLING:
        return nearest
    band = [candidate for candidate in near if candidate.doubtful == nearest.doubtful
            and abs(candidate.near_ms - nearest.near_ms) <= BAND_MS]  # fmt: skip
    drawn = lots.choices(band, [_pull(candidate) for candidate in band], k=2)
    return min(drawn, key=lambda candidate: candidate.load)


def _pull(candidate: Candidate) -> float:
    """A PoP's weight in the drawing: its free slots, this call's included. A silent one without any counts as if it
    had one."""
    condition = candidate.seen.condition
    return condition.weight * max(1, condition.slots - condition.calls - candidate.seen.pending)


def _least_bad(near: Sequence[Candidate]) -> Candidate:
    """The nearest PoP, unless the whole turn of another, which is no more doubtful, would be much shorter."""
    nearest = near[0]
    alike = (candidate for candidate in near if candidate.doubtful == nearest.doubtful)
    quickest = min(alike, key=lambda candidate: candidate.turn_ms)
    return quickest if quickest.turn_ms <= nearest.turn_ms - MUCH_SHORTER_MS else nearest

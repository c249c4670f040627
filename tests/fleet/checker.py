"""Reads a history, and says which promises of a fleet were broken in it. Pure.

Bounds are held against what surely was: a question counts by when it was asked, so that no answer breaks a promise for
having been on its way for long.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.fleet.history import HUNG_UP, LET_IN, LOST, REFUSED, Call, Happened, History, Placement

INFINITY = float("inf")


class Bounds(NamedTuple):
    """In seconds."""

    died_s: float = 5.5
    """So long after a PoP died or was paused a directory may still name it."""
    drained_s: float = 1.5
    """The same of one that began to drain,"""
    cut_s: float = 10.0
    """and of one in a region that is cut off from the directory, which may have to find another NATS server first."""


class Span(NamedTuple):
    """A time in which something was so."""

    began: float
    ended: float


def violations(history: History, bounds: Bounds) -> list[str]:
    """A line for each promise that was broken."""
    return [line for check in CHECKS for line in check(history, bounds)]


def _dead(history: History, bounds: Bounds) -> Iterator[str]:
    for pop in history.pops:
        for span in (*spans(history, pop, "killed", "started"), *spans(history, pop, "paused", "resumed", "killed")):
            yield from _named(history, pop, Span(span.began + bounds.died_s, span.ended), "died", span.began)


def _draining(history: History, bounds: Bounds) -> Iterator[str]:
    for pop in history.pops:
        for span in spans(history, pop, "drained", "started"):
            yield from _named(history, pop, Span(span.began + bounds.drained_s, span.ended), "was drained", span.began)


def _cut_off(history: History, bounds: Bounds) -> Iterator[str]:
    for region in {pop.region for pop in history.pops.values()}:
        for span in spans(history, region, "cut", "healed"):
            late = Span(span.began + bounds.cut_s, span.ended)
            for pop, its in history.pops.items():
                if its.region == region:
                    outside = [name for name, where in history.regions.items() if where != region]
                    yield from _named(history, pop, late, "was cut off", span.began, outside)


def _named(
    history: History, pop: str, late: Span, what: str, since: float, directories: list[str] | None = None
) -> Iterator[str]:
    """Placements within `late` that name this PoP; `directories`: only theirs."""
    for call, placement in placements(history):
        within = late.began <= placement.asked and placement.answered <= late.ended
        of_one = directories is None or placement.directory in directories
        if within and of_one and any(candidate.pop == pop for candidate in placement.candidates):
            yield (f"call {call.number}: {placement.directory} named {pop} {placement.asked - since:.1f} s after it "
                   f"{what}")  # fmt: skip


def _over_capacity(history: History, bounds: Bounds) -> Iterator[str]:
    for seen in history.health:
        if seen.calls > history.pops[seen.pop].slots:
            yield f"{seen.pop} says that it has {seen.calls} calls on {history.pops[seen.pop].slots} slots"
    for pop, its in history.pops.items():
        most = most_at_once([Span(call.began, call.ended) for call in history.calls if call.began and call.pop == pop])
        if most > its.slots:
            yield f"{pop} had {most} callers at once on {its.slots} slots"


def _lost(history: History, bounds: Bounds) -> Iterator[str]:
    for call in history.calls:
        if call.began and call.end != HUNG_UP and not (call.pop and call.end == LOST and _excused(history, call)):
            yield f"call {call.number}: {call.end} at {call.pop or 'a relay'} after {call.ended - call.began:.1f} s"


def _excused(history: History, call: Call) -> bool:
    """Its own PoP died, or had drained for as long as it may, or the network between them was cut."""
    its, let_in = history.pops[call.pop], call.placements[-1].tries[-1].began
    while_it_lasted = [event for event in history.happened if let_in <= event.at <= call.ended]
    if any(event.what == "killed" and event.whom == call.pop for event in while_it_lasted):
        return True
    if any(span.began + its.drain_s <= call.ended for span in spans(history, call.pop, "drained", "started")):
        return True
    ways = {call.region, its.region} if call.region != its.region else set()
    cuts = [span for region in ways for span in spans(history, region, "cut", "healed")]
    return any(span.began <= call.ended and let_in <= span.ended for span in cuts)


def _out_of_zone(history: History, bounds: Bounds) -> Iterator[str]:
    for call, placement in placements(history):
        for candidate in placement.candidates:
            if call.zone and candidate.pop in history.pops and history.pops[candidate.pop].zone != call.zone:
                yield f"call {call.number} of zone {call.zone}: {placement.directory} named {candidate.pop}"


def _stranger(history: History, bounds: Bounds) -> Iterator[str]:
    for call, placement in placements(history):
        for candidate in placement.candidates:
            known = history.pops.get(candidate.pop)
            if known is None or candidate.url not in (known.url, known.phone, urlsplit(known.url).netloc):
                yield f"call {call.number}: {placement.directory} named a stranger: {candidate.pop}, {candidate.url}"


def _endless(history: History, bounds: Bounds) -> Iterator[str]:
    if history.placed != len(history.calls):
        yield f"of {history.placed} set-ups {history.placed - len(history.calls)} never ended"
    for call in history.calls:
        if call.end == REFUSED and not call.placements[-1].retry_after:
            yield f"call {call.number} was refused without Retry-After"
        elif not call.began and call.end != REFUSED and not _died_with_it(history, call):
            yield f"call {call.number} ended without an answer: {call.end or 'it says nothing'}"


def _died_with_it(history: History, call: Call) -> bool:
    """A PoP had taken a call that then was bound to it, and was killed before the caller heard anything."""
    taken = {one.pop: placement.asked for placement in call.placements for one in placement.candidates}
    return call.bound and any(
        event.what == "killed" and taken.get(event.whom, INFINITY) <= event.at <= call.ended
        for event in history.happened
    )


def _token_refused(history: History, bounds: Bounds) -> Iterator[str]:
    """A token is good where a directory says, unless the PoP began anew meanwhile."""
    for call, placement in placements(history):
        for one in placement.tries:
            since = placement.asked - bounds.died_s
            began = [event.at for event in history.happened if (event.what, event.whom) == ("started", one.pop)]
            if one.status in (401, 403) and not any(since <= at <= one.ended for at in began):
                yield f"call {call.number}: {one.pop} refused a token of {placement.directory} ({one.why})"


def _view_wrong(history: History, bounds: Bounds) -> Iterator[str]:
    for views in history.views:
        for directory, said in sorted(views.of.items()):
            wrong = sorted(pop for pop in said.keys() | views.should.keys() if said.get(pop) != views.should.get(pop))
            if wrong:
                told = ", ".join(f"{pop} {said.get(pop, 'gone')}, not {views.should.get(pop, 'gone')}" for pop in wrong)
                yield f"{directory} takes PoPs for what they are not: {told}"


CHECKS: tuple[Callable[[History, Bounds], Iterator[str]], ...] = (
    _dead, _draining, _cut_off, _over_capacity, _lost, _out_of_zone, _stranger, _endless, _token_refused, _view_wrong,
)  # fmt: skip


def placements(history: History) -> Iterator[tuple[Call, Placement]]:
    """All of them, and whose they are."""
    return ((call, placement) for call in history.calls for placement in call.placements)


def spans(history: History, whom: str, begins: str, *ends: str) -> list[Span]:
    """From each time when something of the kind `begins` happened to the next of one of the kinds `ends`."""
    found: list[Span] = []
    began: Happened | None = None
    for event in sorted(history.happened, key=lambda event: event.at):
        if event.whom != whom:
            continue
        if event.what == begins and began is None:
            began = event
        elif event.what in ends and began:
            found.append(Span(began.at, event.at))
            began = None
    return [*found, Span(began.at, INFINITY)] if began else found


def most_at_once(calls: list[Span]) -> int:
    """How many of these went on at one time. One that ends when another begins is over."""
    steps = sorted([(span.began, 1) for span in calls] + [(span.ended, -1) for span in calls])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def refused_beside_room(history: History) -> int:
    """How often a PoP turned a caller away while another had room, by the calls that had begun by then."""
    begun = {pop: [Span(call.began, call.ended) for call in history.calls if call.began and call.pop == pop]
             for pop in history.pops}  # fmt: skip
    refusals = [one for _, placement in placements(history) for one in placement.tries if one.status not in (0, LET_IN)]
    return sum(
        any(pop != one.pop and sum(span.began <= one.ended < span.ended for span in begun[pop]) < its.slots
            for pop, its in history.pops.items())
        for one in refusals
    )  # fmt: skip

"""The turns and calls of a PoP's last hour, small enough for each report; versions are compared by it. Latencies are
counted in buckets, each 5 % wider than the one before. As in `recent_turns.py`, calls are counted as they go on, and
added up every few seconds only."""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from voicepipe.base.errors import Reason
from voicepipe.call_api import Refusal
from voicepipe.observe.call_followers import CallFacts, CallFollower
from voicepipe.observe.last_turns import FullTurn

WIDER = math.log(1.05)
SLICE_S = 300.0
SLICES = 12
KEPT_S = 5.0
"""Seconds for which a tally is kept before it is added up again."""
COUNTED: frozenset[Reason] = frozenset(
    ("full", "late", "tenant_full", "engine_down", "no_port", "not_briefed", "not_acceptable", "refused", "error")
)
"""Refusals that the tally counts, since they depend on the PoP. Attempts of strangers reach every PoP, and a PoP that
drains was ordered to."""


class PerCallSums(msgspec.Struct, frozen=True, array_like=True):
    """Sums over calls that show how similar the turns of one call are: n turns of a call were counted, and x is their
    sum. From these follows how far a mean of turns may be off (`observe/version_comparison.py`)."""

    calls: int = 0
    """Calls that had such a turn."""
    nn: int = 0
    nx: int = 0
    xx: int = 0


def grown(turns: int, x: int, more_turns: int, more_x: int) -> PerCallSums:
    """The growth of the sums where a call had so many `turns` and `x`, and gets more."""
    n, y = turns + more_turns, x + more_x
    return PerCallSums(int(not turns and more_turns > 0), n * n - turns * turns, n * y - turns * x, y * y - x * x)


def sum_of(parts: Iterable[PerCallSums]) -> PerCallSums:
    """The sum of parts that count different calls, or growth of the same ones."""
    return PerCallSums(*(sum(column) for column in zip(*map(msgspec.structs.astuple, parts), strict=True)))


class Tally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The turns and calls of a PoP's last hour, of all tenants, small enough for each report."""

    turns: int = 0
    cut_ins: int = 0
    """Replies that began before the caller had finished."""
    missed: int = 0
    """Turns whose reply failed, or was the fallback."""
    calls: int = 0
    """Calls that began."""
    refused: int = 0
    """Calls that were refused for want of room or by a fault of the PoP's. Draining and wrong keys do not count."""
    latencies: dict[int, int] = {}
    """Turns by the number of their latency's bucket; those for which the client said how long to wait are left out."""
    latency_by_call: PerCallSums = PerCallSums()
    """The same turns by call: x in ms."""
    missed_by_call: PerCallSums = PerCallSums()
    cut_ins_by_call: PerCallSums = PerCallSums()
    """All turns by call."""


def bucket_of(ms: float) -> int:
    """The number of a latency's bucket. Below 1 ms: the one of 1 ms."""
    return math.floor(math.log(max(1.0, ms)) / WIDER)


def middle_ms(bucket: int) -> float:
    return math.exp((bucket + 0.5) * WIDER)


def added(tallies: Sequence[Tally]) -> Tally:
    """The sum of these tallies."""
    latencies = Counter[int]()
    for tally in tallies:
        latencies.update(tally.latencies)
    return Tally(
        turns=sum(tally.turns for tally in tallies),
        cut_ins=sum(tally.cut_ins for tally in tallies),
        missed=sum(tally.missed for tally in tallies),
        calls=sum(tally.calls for tally in tallies),
        refused=sum(tally.refused for tally in tallies),
        latencies=dict(sorted(latencies.items())),
        latency_by_call=sum_of(tally.latency_by_call for tally in tallies),
        missed_by_call=sum_of(tally.missed_by_call for tally in tallies),
        cut_ins_by_call=sum_of(tally.cut_ins_by_call for tally in tallies),
    )


@dataclass(slots=True)
class _Slice:
    number: int
    counts: Counter[str] = field(default_factory=Counter)
    latencies: Counter[int] = field(default_factory=Counter)
    by_call: dict[str, PerCallSums] = field(default_factory=dict)
    """By the names of a tally's fields."""

    def tally(self) -> Tally:
        return replace(Tally(latencies=dict(self.latencies)), **self.counts, **self.by_call)


class HourlyTally(CallFollower):
    """Counts the turns and calls of a PoP's last hour, for its reports to directories. `clock` gives monotonic
    seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._slices: deque[_Slice] = deque(maxlen=SLICES)
        self._calls: dict[str, dict[str, tuple[int, int]]] = {}
        """Counted turns and sums of each call in progress, by the names of a tally's fields. They include those that
        are an hour old by now."""
        self._tally = Tally()
        self._until = clock()
        """The tally is added up again after this moment."""

    def began(self, call: CallFacts) -> None:
        self._slice().counts["calls"] += 1

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        now, turn = self._slice(), full.turn
        now.counts.update(turns=1, cut_ins=turn.cut_in, missed=turn.missed)
        self._of_call(call, "missed_by_call", 1, int(turn.missed))
        self._of_call(call, "cut_ins_by_call", 1, int(turn.cut_in))
        if turn.latency_ms is not None and not turn.by_request:
            bucket = bucket_of(turn.latency_ms)
            now.latencies[bucket] += 1
            self._of_call(call, "latency_by_call", 1, round(middle_ms(bucket)))

    def cut_in(self, call: CallFacts, full: FullTurn) -> None:
        self._slice().counts["cut_ins"] += 1
        self._of_call(call, "cut_ins_by_call", 0, 1)

    def left(self, call: CallFacts) -> None:
        self._calls.pop(call.id, None)

    def refused(self, refusal: Refusal) -> None:
        """A call was refused."""
        if refusal.reason in COUNTED:
            self._slice().counts["refused"] += 1

    def tally(self) -> Tally:
        """The tally, at most `KEPT_S` old."""
        now = self._clock()
        if now >= self._until:
            self._until = now + KEPT_S
            first = int(now // SLICE_S) - SLICES
            self._tally = added([one.tally() for one in self._slices if one.number > first])
        return self._tally

    def _of_call(self, call: CallFacts, what: str, more_turns: int, more: int) -> None:
        of_call, sums = self._calls.setdefault(call.id, {}), self._slice().by_call
        turns, so_far = of_call.get(what, (0, 0))
        sums[what] = sum_of([sums.get(what, PerCallSums()), grown(turns, so_far, more_turns, more)])
        of_call[what] = (turns + more_turns, so_far + more)

    def _slice(self) -> _Slice:
        number = int(self._clock() // SLICE_S)
        if not self._slices or self._slices[-1].number != number:
            self._slices.append(_Slice(number))
        return self._slices[-1]

"""The turns and calls of a PoP's last hour, small enough for each report; versions are compared by it. Latencies are
counted in buckets, each 5 % wider than the one before."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

WIDER = math.log(1.05)


class ByCall(msgspec.Struct, frozen=True, array_like=True):
    """Sums over calls that show how similar the turns of one call are: n turns of a call were counted, and x is their
    sum. From these follows how far a mean of turns may be off (`observe/version_comparison.py`)."""

    calls: int = 0
    """Calls that had such a turn."""
    nn: int = 0
    nx: int = 0
    xx: int = 0


def grown(turns: int, x: int, more_turns: int, more_x: int) -> ByCall:
    """The growth of the sums where a call had so many `turns` and `x`, and gets more."""
    n, y = turns + more_turns, x + more_x
    return ByCall(int(not turns and more_turns > 0), n * n - turns * turns, n * y - turns * x, y * y - x * x)


def sum_of(parts: Iterable[ByCall]) -> ByCall:
    """The sum of parts that count different calls, or growth of the same ones."""
    return ByCall(*(sum(column) for column in zip(*map(msgspec.structs.astuple, parts), strict=True)))


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
    latency_by_call: ByCall = ByCall()
    """The same turns by call: x in ms."""
    missed_by_call: ByCall = ByCall()
    cut_ins_by_call: ByCall = ByCall()
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

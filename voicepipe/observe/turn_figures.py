"""Figures of turns: percentiles, counts and medians, in total and over time. Pure."""

import math
from collections.abc import Iterable, Sequence

import msgspec

from voicepipe.base.figures import percentile
from voicepipe.observe.last_turns import ListedTurn, Stages, TurnWithStages

BUCKETS = 30
"""Points of the time axis, whatever its length."""
NORMAL_95 = 1.6449
"""95 % of a normal distribution lie below so many standard deviations."""


class Figures(msgspec.Struct, kw_only=True):
    """Percentiles, counts and medians of some turns. Milliseconds; None where there are no turns for it."""

    turns: int
    timed: int
    """Turns with a latency."""
    by_request: int
    """Timed turns for which the client said how long to wait: never late."""
    p50: float | None
    p95: float | None
    p99: float | None
    late: int
    missed: int
    cut_ins: int
    hits: int
    """Replies that were prepared before the turn was confirmed."""
    misses: int
    discarded: int
    """Drafts that were dropped."""


class TimeBucket(msgspec.Struct, kw_only=True):
    """One bucket of the time axis."""

    at: float
    """Unix seconds at which it begins."""
    figures: Figures
    stages: Stages
    """Median of each stage."""


def figures(turns: Sequence[ListedTurn]) -> Figures:
    """The figures of these turns."""
    latencies = sorted([turn.latency_ms for turn in turns if turn.latency_ms is not None])
    speculations = [turn.speculation for turn in turns]
    return Figures(
        turns=len(turns),
        timed=len(latencies),
        by_request=len([turn for turn in turns if turn.by_request and turn.latency_ms is not None]),
        p50=percentile_ms(latencies, 50),
        p95=percentile_ms(latencies, 95),
        p99=percentile_ms(latencies, 99),
        late=sum([turn.late for turn in turns]),
        missed=sum([turn.missed for turn in turns]),
        cut_ins=sum([turn.cut_in for turn in turns]),
        hits=speculations.count("hit"),
        misses=speculations.count("miss"),
        discarded=sum([turn.discarded for turn in turns]),
    )


def over_time(turns: Iterable[TurnWithStages], start: float, width_s: float) -> list[TimeBucket]:
    """`BUCKETS` times `width_s` from `start` on; turns outside of that are left out."""
    buckets: list[list[TurnWithStages]] = [[] for _ in range(BUCKETS)]
    for listed in turns:
        number = int((listed.turn.at - start) // width_s)
        if 0 <= number < BUCKETS:
            buckets[number].append(listed)
    return [
        TimeBucket(
            at=start + number * width_s,
            figures=figures([listed.turn for listed in bucket]),
            stages=medians([listed.stages for listed in bucket]),
        )
        for number, bucket in enumerate(buckets)
    ]


def axis(now: float, minutes: int) -> tuple[float, float]:
    """Where the time axis of the last `minutes` begins, and the seconds of a bucket.

    Its buckets begin at whole multiples of their width, so that a turn never wanders from one to the next.
    """
    width_s = minutes * 60 / BUCKETS
    return (math.floor(now / width_s) + 1 - BUCKETS) * width_s, width_s


def medians(turns: Sequence[Stages]) -> Stages:
    """The median of each stage by itself, over the turns in which it happened."""
    columns = zip(*map(msgspec.structs.astuple, turns), strict=True) if turns else ()
    return Stages(*(percentile_ms([ms for ms in column if ms is not None], 50) for column in columns))


def percentile_ms(times: Sequence[float], percent: float) -> float | None:
    """A percentile, rounded to 0.1 ms; None without times."""
    found = percentile(times, percent)
    return None if found is None else round(found, 1)


def share(count: int, total: int) -> float | None:
    """`count` of `total` as a number from 0 to 1; None of none."""
    return count / total if total else None


def upper_bound(count: int, total: int) -> float | None:
    """One-sided upper 95 % bound of a rate, of which `count` of `total` were seen (Wilson's score); None of none. The
    probes' exact bound would take too long every other second on the event loop of calls."""
    return min(1.0, wilson(count / total, total, NORMAL_95)[1]) if total else None


def wilson(rate: float, total: float, z: float) -> tuple[float, float]:
    """The bounds of a rate that was seen in so many cases (Wilson's score): of the rate itself, `z` standard deviations
    of a normal distribution."""
    middle = rate + z * z / (2 * total)
    spread = z * math.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return (middle - spread) / scale, (middle + spread) / scale

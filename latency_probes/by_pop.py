"""Where a directory has sent the calls of a run, and what they were like there: a row for each PoP."""

from collections.abc import Sequence

import msgspec
from rich.console import Console

from latency_probes.records import CallResult
from latency_probes.report import ANSWERED, milliseconds, table_of
from latency_probes.run import Run
from voicepipe.base.figures import percentile

ALL = "all"


class PopRow(msgspec.Struct):
    """The calls that one PoP took. Times in milliseconds; None without any."""

    pop: str
    calls: int
    degraded: int
    """Of which the directory said that no PoP would answer in time."""
    tried_others: int
    """Of which other PoPs were called before."""
    asked_twice: int
    """Of which every PoP that the directory named first was called in vain."""
    turn_ms_est: float | None
    """Median of what the directory reckoned."""
    created_p50: float | None
    """From asking the directory to `session.created`."""
    created_p95: float | None
    greeting_p50: float | None
    """From asking the directory to the greeting's first sound."""
    greeting_p95: float | None
    gap_p50: float | None
    """Heard gap: what the directory reckons also has the playout that the caller's own end holds back."""
    gap_p95: float | None


def rows(run: Run) -> list[PopRow]:
    """All calls first, where they went to more than one PoP."""
    pops = sorted({call.pop for call in run.routed})
    groups = [ALL, *pops] if len(pops) > 1 else pops
    return [row(run, pop) for pop in groups]


def row(run: Run, pop: str) -> PopRow:
    """Of one PoP, or of all."""
    calls = [call for call in run.routed if pop in (call.pop, ALL)]
    gaps = [
        turn.gap_ms
        for turn in run.turns
        if pop in (turn.pop, ALL) and turn.outcome in ANSWERED and turn.gap_ms is not None and not turn.cut_in
    ]
    created, greeted = times(calls, "created_ms"), times(calls, "greeting_ms")
    return PopRow(
        pop=pop,
        calls=len(calls),
        degraded=sum(call.degraded for call in calls),
        tried_others=sum(call.tries > 1 for call in calls),
        asked_twice=sum(call.asked > 1 for call in calls),
        turn_ms_est=percentile([call.turn_ms_est for call in calls], 50),
        created_p50=percentile(created, 50),
        created_p95=percentile(created, 95),
        greeting_p50=percentile(greeted, 50),
        greeting_p95=percentile(greeted, 95),
        gap_p50=percentile(gaps, 50),
        gap_p95=percentile(gaps, 95),
    )


def times(calls: Sequence[CallResult], name: str) -> list[float]:
    """This time of each call that has it."""
    found = [getattr(call, name) for call in calls]
    return [ms for ms in found if ms is not None]


def show(found: Sequence[PopRow], console: Console) -> None:
    """Print the table; nothing without a call that a directory has sent somewhere."""
    if not found:
        return
    table = table_of(
        "calls by PoP, ms p50/p95 from asking the directory", "PoP", "calls", "degraded", "others tried first",
        "asked twice", "turn_ms_est", "session.created", "greeting", "heard gap",
    )  # fmt: skip
    for one in found:
        pairs = ((one.created_p50, one.created_p95), (one.greeting_p50, one.greeting_p95), (one.gap_p50, one.gap_p95))
        table.add_row(
            one.pop, str(one.calls), str(one.degraded), str(one.tried_others), str(one.asked_twice),
            milliseconds(one.turn_ms_est), *(f"{milliseconds(p50)}/{milliseconds(p95)}" for p50, p95 in pairs),
        )  # fmt: skip
    console.print(table)

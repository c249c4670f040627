"""What the runs of every attack come to: a row each, of medians over the runs."""

from collections.abc import Callable, Sequence
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

from tests.attacks.bench.conditions import Result, Turns

COLUMNS = (
    "attack", "turns", "latency p50, p95 ms", "beside it", "p95 by", "gap p95 by", "cut", "fallback", "missed",
    "calls lost", "MB", "MB after 1, 5", "grown", "fds", "tasks", "threads", "PoP's CPU",
    "no core", "stolen",
)  # fmt: skip
WORST_MS = 50.0
"""Nobody's turns may be later by more."""
MOST_MB = 20.0
"""Nor may the PoP have grown by more from the first to the fifth of equal attacks."""
TOLD = 3
LEGEND = """Latency, memory, CPU: medians of the runs. a / b: without the attack / beside it; counts: of all runs.
MB: before the first attack. fds, tasks, threads: before the first → after the last.
no core: share of the time in which the PoP's loop could have run and had none; much of it, and the machine was busy.
stolen: share of all cores' time that a virtual machine's host kept for others; over 5 %, and latencies say little."""


def worse(results: Sequence[Result], figure: Callable[[Turns], float | None]) -> float | None:
    """Median over the runs of how much larger a figure is beside the attack; None where a run has none."""
    pairs = [(figure(result.without), figure(result.beside)) for result in results]
    differences = [beside - without for without, beside in pairs if without is not None and beside is not None]
    return median(differences) if len(differences) == len(pairs) and pairs else None


def breaches(results: Sequence[Result]) -> list[str]:
    """What must not be and is: sentences about one attack's runs."""
    name = results[0].attack
    found = [f"{name}: the attack itself failed: {error}" for result in results for error in result.errors]
    if ended := sum(result.ended for result in results):
        found.append(f"{name}: the PoP ended in {ended} of {len(results)} runs")
    later = worse(results, lambda turns: turns.latency_p95)
    if later is None or later > WORST_MS:
        found.append(f"{name}: turn latency p95 is worse by {number(later, 'ms')} (at most {WORST_MS:.0f} ms)")
    for what, count in (
        ("turns cut", sum(result.beside.cut for result in results)),
        ("turns answered by the fallback", sum(result.beside.fallback for result in results)),
        ("turns missed", sum(result.beside.missed for result in results)),
        ("calls that failed", sum(len(result.beside.failures) for result in results)),
    ):
        if count:
            found.append(f"{name}: {count} {what} beside it, in {len(results)} runs")
    grown = [result.growth_mb for result in results if result.growth_mb is not None]
    if grown and median(grown) > MOST_MB:
        found.append(
            f"{name}: memory grew by {median(grown):.0f} MB from the first to the fifth (at most {MOST_MB:.0f})"
        )
    return found


def table(by_attack: dict[str, list[Result]], *, markdown: bool = False) -> Table:
    """A row for each attack."""
    made = Table(*COLUMNS, box=box.MARKDOWN if markdown else box.SIMPLE_HEAD)
    for results in by_attack.values():
        made.add_row(*row(results))
    return made


def row(results: Sequence[Result]) -> list[str]:
    """The figures of one attack: medians over its runs, sums of what went wrong (without it / beside it)."""

    def middle(figure: Callable[[Result], float | None]) -> str:
        values = [value for result in results if (value := figure(result)) is not None]
        return f"{median(values):.0f}" if values else "-"

    def gone(figure: Callable[[Turns], int]) -> str:
        return f"{sum(figure(one.without) for one in results)} / {sum(figure(one.beside) for one in results)}"

    def percent(figure: Callable[[Turns], float]) -> str:
        return f"{middle(lambda one: 100 * figure(one.without))} / {middle(lambda one: 100 * figure(one.beside))} %"

    def change(figure: Callable[[Result], list[int | None]]) -> str:
        return f"{middle(lambda one: figure(one)[0])} → {middle(lambda one: figure(one)[-1])}"

    def latency(turns: Callable[[Result], Turns]) -> str:
        return f"{middle(lambda one: turns(one).latency_p50)}, {middle(lambda one: turns(one).latency_p95)}"

    return [
        results[0].attack + (" (ended the PoP)" if any(result.ended for result in results) else ""),
        gone(lambda turns: turns.turns),
        latency(lambda one: one.without),
        latency(lambda one: one.beside),
        number(worse(results, lambda turns: turns.latency_p95)),
        number(worse(results, lambda turns: turns.gap_p95)),
        gone(lambda turns: turns.cut),
        gone(lambda turns: turns.fallback),
        gone(lambda turns: turns.missed),
        gone(lambda turns: len(turns.failures)),
        middle(lambda one: one.held[0].rss_mb),
        f"{middle(lambda one: one.memory_after(1))}, {middle(lambda one: one.memory_after(5))}",
        number(median(grown) if (grown := [one.growth_mb for one in results if one.growth_mb is not None]) else None),
        change(lambda one: [held.descriptors for held in one.held]),
        change(lambda one: [held.tasks for held in one.held]),
        change(lambda one: [held.threads for held in one.held]),
        percent(lambda turns: turns.cpu),
        percent(lambda turns: turns.waited),
        percent(lambda turns: turns.stolen),
    ]


def show(by_attack: dict[str, list[Result]], console: Console, *, markdown: bool = False) -> list[str]:
    """Print the table, what attackers were told and what is not as it must be; returns the last."""
    console.print(table(by_attack, markdown=markdown), highlight=False)
    console.print(LEGEND, highlight=False)
    for name, results in by_attack.items():
        told: dict[str, int] = {}
        for result in results:
            for said, times in result.told.items():
                told[said] = told.get(said, 0) + times
        most = sorted(told.items(), key=lambda pair: -pair[1])[:TOLD]
        answers = "; ".join(f"{times} x {said}" for said, times in most) or "nothing that it kept"
        sent = median(result.sent_mbits for result in results)
        console.print(f"{name} sent {sent:.1f} Mbit/s and was told: {answers}", highlight=False)
    found = [breach for results in by_attack.values() for breach in breaches(results)]
    for breach in found:
        console.print(breach, style="red", highlight=False)
    return found


def number(value: float | None, unit: str = "") -> str:
    """A difference, or that there is none."""
    return "-" if value is None else f"{value:+.0f} {unit}".strip()

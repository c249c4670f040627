"""What the turns of both sides come to, row by row. Pure but for `table`."""

from collections.abc import Mapping, Sequence

import msgspec
from rich.table import Table

from latency_probes import report
from latency_probes.records import TurnResult
from latency_probes.report import Rate

BUDGET_MS = 300.0


class Figures(msgspec.Struct, frozen=True):
    """Of one side. Times in milliseconds; None without any."""

    turns: int
    answered: int
    """Within 4 s of the caller's last word, and by a reply that had not begun before it: those whose gap counts."""
    gap_p50: float | None
    gap_p95: float | None
    cut_ins: Rate
    words_wrong: float | None
    """The share, of what was transcribed."""


class Row(msgspec.Struct, frozen=True):
    """The same turns on both sides."""

    name: str
    sides: dict[str, Figures]
    ratios: dict[str, float | None]
    """Of the first side's "gap_p50" and "gap_p95" to the second's."""


def rows(turns: Mapping[str, Sequence[TurnResult]], kinds: Sequence[str]) -> list[Row]:
    """A row for each set, and for its quiet and noisy part where it has both. `turns`: by side, two of them."""
    made = []
    for kind in kinds:
        of_kind = {side: [turn for turn in its if turn.kind == kind] for side, its in turns.items()}
        quiet = {side: [turn for turn in its if turn.noise == "quiet"] for side, its in of_kind.items()}
        noisy = {side: [turn for turn in its if turn.noise != "quiet"] for side, its in of_kind.items()}
        if any(of_kind.values()):
            made.append(row(report.TITLES.get(kind, kind), of_kind))
        if any(quiet.values()) and any(noisy.values()):
            made += [row("  quiet", quiet), row("  noisy", noisy)]
    return made


def row(name: str, turns: Mapping[str, Sequence[TurnResult]]) -> Row:
    sides = {side: figures(its) for side, its in turns.items()}
    one, other = sides.values()
    ratios = {"gap_p50": ratio(one.gap_p50, other.gap_p50), "gap_p95": ratio(one.gap_p95, other.gap_p95)}
    return Row(name, sides, ratios)


def figures(turns: Sequence[TurnResult]) -> Figures:
    """By the rules of the probes' own report."""
    seen = report.row("", turns, BUDGET_MS)
    return Figures(seen.turns, seen.late.total, seen.gap_p50, seen.gap_p95, seen.cut_ins, seen.word_error_rate)


def ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def table(rows: Sequence[Row]) -> Table:
    """A line for each side of each row."""
    columns = ("side", "turns", "answered", "p50", "p95", "ratio p50", "ratio p95", "cut-ins", "words wrong")
    made = report.table_of("heard gap, ms; ratio: to the other side's", "set", *columns)
    for each in rows:
        for number, (side, seen) in enumerate(each.sides.items()):
            ratios = ["" if number else share(value) for value in each.ratios.values()]
            gaps = map(report.milliseconds, (seen.gap_p50, seen.gap_p95))
            wrong = "-" if seen.words_wrong is None else f"{100 * seen.words_wrong:.1f}%"
            counts = (str(seen.turns), str(seen.answered))
            made.add_row("" if number else each.name, side, *counts, *gaps, *ratios, str(seen.cut_ins), wrong)
    return made


def share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

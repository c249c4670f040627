"""The report of a run: rows of figures, tables, the verdict. Pure but for `show`."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec
from rich.console import Console
from rich.table import Table

from latency_probes.clips import FOREIGN, GERMAN, GERMAN_PAUSE, GUEST_KINDS, HARD, HUMAN, HUMAN_PAUSE, WITH_PAUSE
from latency_probes.guests import Visit
from latency_probes.plan import SETS
from latency_probes.records import OverResult, TurnResult
from latency_probes.run import Run
from latency_probes.stats import upper_bound
from latency_probes.transcripts import words
from voicepipe.base.figures import percentile

CUT_IN_LIMIT = 0.02
"""Most cut-ins at pauses inside a phrase."""
AFTER = "after "
TITLES = {
    HUMAN: "human prompts",
    HUMAN_PAUSE: "human prompts with a pause",
    "hard": "synthetic, hard",
    "hard_pause": "synthetic, hard, with a pause",
    GERMAN: "espeak-ng, German",
    GERMAN_PAUSE: "espeak-ng, German, with a pause",
}
TITLES |= {kind: f"{TITLES[HUMAN]}, {language}" for kind, language in FOREIGN.items() if kind not in TITLES}
TITLES |= {kind: f"{TITLES[HUMAN_PAUSE]}, {language}" for kind, language in WITH_PAUSE.items() if kind not in TITLES}
"""Rows of natural voices are called as their sets."""
ANSWERED = ("right", "wrong")
"""Outcomes whose gap counts: an acknowledgement or a fallback is not the answer."""


class Rate(msgspec.Struct):
    """`count` of `total`, with the one-sided 95 % upper bound of the rate."""

    count: int
    total: int
    upper: float | None

    def __str__(self) -> str:
        if not self.total or self.upper is None:
            return "-"
        return f"{self.count}/{self.total} {100 * self.count / self.total:.1f}% (≤{100 * self.upper:.1f}%)"


class Row(msgspec.Struct):
    """The figures of a group of turns. Times in milliseconds; None without any."""

    name: str
    turns: int
    gap_p50: float | None
    gap_p95: float | None
    gap_p99: float | None
    played_p95: float | None
    late: Rate
    cut_ins: Rate
    silenced: Rate
    repaired: Rate
    missed: Rate
    """No answer within 4 s, or nothing but an acknowledgement."""
    fallback: Rate
    wrong: Rate
    word_error_rate: float | None
    """Of all their words together; None where the server transcribes nothing."""
    speculation_hits: Rate
    stages: dict[str, float]
    """Medians of the server's own numbers."""


class OverRow(msgspec.Struct):
    """The figures of replies that something came over, from its first sample. Times in milliseconds."""

    name: str
    turns: int
    cut: Rate
    answered: Rate
    compared: int
    ducked_p50: float | None
    ducked_p95: float | None
    silent_p50: float | None
    silent_p95: float | None
    decided_p50: float | None
    decided_p95: float | None


class Summary(msgspec.Struct):
    """All rows, and what is over the limits; nothing over them is a pass."""

    rows: list[Row]
    over_rows: list[OverRow]
    breaches: list[str]


def summarise(run: Run, budget_ms: float, p95_ms: float) -> Summary:
    """Rows by set, and within each by the server's confidence and by noise."""
    rows, over_rows = [], []
    for kind in (*SETS, *GUEST_KINDS):
        turns = [turn for turn in run.turns if turn.kind == kind]
        if kind in ("barge_in", "overlay"):
            over_rows += [over_row(name, some) for name, some in over_groups(kind, turns)]
        else:
            rows += [row(name, some, budget_ms) for name, some in groups(kind, turns)]
    return Summary(rows, over_rows, breaches(rows, p95_ms))


def groups(kind: str, turns: Sequence[TurnResult]) -> Iterable[tuple[str, list[TurnResult]]]:
    """The rows of a set: all of it, then its parts, where there is more than one."""
    parts: list[tuple[str, Callable[[TurnResult], bool]]] = [
        ("confident", lambda turn: turn.flags.get("confident") is True),
        ("unsure", lambda turn: turn.flags.get("confident") is False),
        ("quiet", lambda turn: turn.noise == "quiet"),
        ("noisy", lambda turn: turn.noise != "quiet"),
    ]
    if turns:
        yield TITLES.get(kind, kind), list(turns)
    if kind in (*HARD, GERMAN, GERMAN_PAUSE):
        return
    for name, belongs in parts:
        some = [turn for turn in turns if belongs(turn)]
        if some and len(some) < len(turns):
            yield f"  {name}", some
    for place in sorted({turn.place for turn in turns if turn.place}):
        yield f"  {AFTER}{place}", [turn for turn in turns if turn.place == place]


def over_groups(kind: str, turns: Sequence[TurnResult]) -> Iterable[tuple[str, list[TurnResult]]]:
    """Interruptions in one row; overlays also by what they are."""
    if turns:
        yield kind, list(turns)
    if kind == "overlay":
        for sound in dict.fromkeys(turn.id.split("-")[1] for turn in turns):
            yield f"  {sound}", [turn for turn in turns if turn.id.split("-")[1] == sound]


def row(name: str, turns: Sequence[TurnResult], budget_ms: float) -> Row:
    """The figures of `turns`. The heard gap is that of answers, and of turns without a cut-in."""
    answers = [turn for turn in turns if turn.outcome in ANSWERED and turn.gap_ms is not None and not turn.cut_in]
    gaps = [turn.gap_ms for turn in answers if turn.gap_ms is not None]
    outcomes = Counter(turn.outcome for turn in turns)
    numbers = {key for turn in turns for key in turn.stages if not key.startswith("at_")} - {"discarded"}
    guesses = [turn.labels["speculation"] for turn in turns if turn.labels.get("speculation") in ("hit", "miss")]
    return Row(
        name=name,
        turns=len(turns),
        gap_p50=percentile(gaps, 50),
        gap_p95=percentile(gaps, 95),
        gap_p99=percentile(gaps, 99),
        played_p95=percentile([turn.played_ms for turn in answers if turn.played_ms is not None], 95),
        late=rate(sum(gap > budget_ms for gap in gaps), len(gaps)),
        cut_ins=rate(sum(turn.cut_in for turn in turns), len(turns)),
        silenced=share([turn.silenced for turn in turns]),
        repaired=share([turn.repaired for turn in turns]),
        missed=rate(outcomes["none"] + outcomes["acknowledged"], len(turns)),
        fallback=rate(outcomes["fallback"], len(turns)),
        wrong=rate(outcomes["wrong"], len(turns)),
        word_error_rate=words_wrong(turns),
        speculation_hits=rate(guesses.count("hit"), len(guesses)),
        stages={
            key: percentile([turn.stages[key] for turn in turns if key in turn.stages], 50) or 0.0
            for key in sorted(numbers)
        },
    )


def words_wrong(turns: Sequence[TurnResult]) -> float | None:
    """The share of their words that is wrong. Of a turn that was not heard all are, if any other was."""
    if all(turn.word_errors is None for turn in turns):
        return None
    spoken = [(len(words(turn.text)), 1.0 if turn.word_errors is None else turn.word_errors) for turn in turns]
    return sum(number * wrong for number, wrong in spoken) / sum(number for number, _ in spoken)


def over_row(name: str, turns: Sequence[TurnResult]) -> OverRow:
    """The figures of `turns` whose reply was still audible when something came over it."""
    overs = [turn.over for turn in turns if turn.over]

    def some(value: Callable[[OverResult], float | None], percent: float) -> float | None:
        return percentile([number for over in overs if (number := value(over)) is not None], percent)

    return OverRow(
        name=name,
        turns=len(turns),
        cut=rate(sum(over.cut for over in overs), len(overs)),
        answered=rate(sum(over.answered for over in overs), len(overs)),
        compared=sum(over.compared for over in overs),
        ducked_p50=some(lambda over: over.ducked_ms, 50),
        ducked_p95=some(lambda over: over.ducked_ms, 95),
        silent_p50=some(lambda over: over.silent_ms, 50),
        silent_p95=some(lambda over: over.silent_ms, 95),
        decided_p50=some(lambda over: over.decided_ms, 50),
        decided_p95=some(lambda over: over.decided_ms, 95),
    )


def rate(count: int, total: int) -> Rate:
    """With its upper bound."""
    return Rate(count, total, upper_bound(count, total))


def share(judged: Sequence[bool | None]) -> Rate:
    """Of those that were judged at all."""
    return rate(judged.count(True), len(judged) - judged.count(None))


def breaches(rows: Sequence[Row], p95_ms: float) -> list[str]:
    """One sentence for each limit that was not held."""
    found = []
    for row in rows:
        if row.name == "finished" and row.gap_p95 is None:
            found.append("no finished utterance was answered")
        if row.name == "finished" and row.gap_p95 is not None and row.gap_p95 > p95_ms:
            found.append(f"p95 of the heard gap is {row.gap_p95:.0f} ms, over {p95_ms:.0f} ms")
        if row.name == "pause_inside" and row.cut_ins.count > CUT_IN_LIMIT * row.cut_ins.total:
            found.append(f"cut-ins at pauses inside a phrase: {row.cut_ins}, over {100 * CUT_IN_LIMIT:.0f}%")
    return found


def show(run: Run, summary: Summary, console: Console) -> None:
    """Print the tables and the verdict."""
    if summary.rows:
        console.print(gap_table(summary.rows))
        # Where in the phrase a caller paused says nothing about the answer.
        console.print(stage_table([row for row in summary.rows if AFTER not in row.name]))
    if summary.over_rows:
        console.print(over_table(summary.over_rows))
    if run.visits:
        show_visits(run.visits, console)
    generator = run.generator
    console.print(
        f"{run.calls} calls, {len(run.failures)} failed or ended early; the generator took "
        f"{100 * generator.cpu_share:.0f}% of a core, its latest block left {generator.worst_lag_ms:.0f} ms late"
    )
    for step, took in run.setups.items():
        p50, p95 = percentile(took, 50), percentile(took, 95)
        console.print(f"from asking for a call to its {step}: p50 {p50:.0f}, p95 {p95:.0f} ms")
    for failure, count in Counter(run.failures).most_common(5):
        console.print(f"  {count} x {failure}")
    if run.calls < run.planned:
        console.print(f"[red]stopped after {run.calls} of {run.planned} calls:[/] the others are not in these figures")
    for breach in summary.breaches:
        console.print(f"[red]over the budget:[/] {breach}")


def show_visits(visits: Sequence[Visit], console: Console) -> None:
    """How many guests got what they wanted, and what went wrong for the others."""
    reached = rate(sum(visit.reached for visit in visits), len(visits))
    impossible = rate(sum(bool(visit.impossible) for visit in visits), len(visits))
    asides = rate(sum(bool(visit.wrong_asides) for visit in visits), len(visits))
    console.print(f"guests who got what they wanted: {reached.count} of {reached.total}")
    console.print(f"  done what cannot be: {impossible}; answered with something else: {asides}")
    for visit in visits:
        for wrong in (visit.why_not, *visit.impossible, *visit.wrong_asides):
            if wrong:
                console.print(f"  {visit.guest} ({visit.voice}): {wrong}", highlight=False)


def gap_table(rows: Sequence[Row]) -> Table:
    """What the callers heard."""
    rates = ("late", "cut-ins", "silenced", "repaired")
    title = "heard gap, ms (natural voices unless named otherwise)"
    table = table_of(title, "set", "turns", "p50", "p95", "p99", "played p95", *rates)
    for row in rows:
        times = [milliseconds(time) for time in (row.gap_p50, row.gap_p95, row.gap_p99, row.played_p95)]
        shares = [str(one) for one in (row.late, row.cut_ins, row.silenced, row.repaired)]
        table.add_row(row.name, str(row.turns), *times, *shares)
    return table


def stage_table(rows: Sequence[Row]) -> Table:
    """How well they were understood, and the medians of the server's own stages."""
    stages = list(dict.fromkeys(key for row in rows for key in row.stages)) or ["server's stages"]
    table = table_of("answers", "set", "missed", "fallback", "wrong", "words wrong", "speculation", *stages)
    for row in rows:
        understood = "-" if row.word_error_rate is None else f"{100 * row.word_error_rate:.1f}%"
        own = [milliseconds(row.stages.get(key)) for key in stages]
        hits = str(row.speculation_hits)
        table.add_row(row.name, str(row.missed), str(row.fallback), str(row.wrong), understood, hits, *own)
    return table


def over_table(rows: Sequence[OverRow]) -> Table:
    """What became of replies that something came over."""
    table = table_of(
        "over the reply, ms p50/p95", "set", "turns", "cut", "answered", "compared", "ducked", "silent", "cut decided"
    )
    for row in rows:
        pairs = (
            (row.ducked_p50, row.ducked_p95),
            (row.silent_p50, row.silent_p95),
            (row.decided_p50, row.decided_p95),
        )
        times = [f"{milliseconds(p50)}/{milliseconds(p95)}" for p50, p95 in pairs]
        table.add_row(row.name, str(row.turns), str(row.cut), str(row.answered), str(row.compared), *times)
    return table


def table_of(title: str, *columns: str) -> Table:
    """An empty table whose first column is a name and whose others are figures."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=not number)
    return table


def milliseconds(time: float | None) -> str:
    """Rounded; "-" for none."""
    return "-" if time is None else f"{time:.0f}"

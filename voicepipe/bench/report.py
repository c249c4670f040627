"""The results as a table for a terminal, for a page in Markdown, and as JSON. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from voicepipe.base.figures import WIDEST
from voicepipe.bench.load import CACHED_TOKENS
from voicepipe.bench.results import CLOCK, LATENCY, STAGES, TURN, FiguresResult, Samples, calls_in_time

NOTE = (
    "p50/p95/p99 in ms, of all rounds; the media clock's has its largest, too. Alone: each stage by itself under the "
    f"same load. Prompts: about {CACHED_TOKENS} tokens that the prefix cache holds, and a new question; "
    "rendering them is in LLM's first token. Turn compute: from the caller's last sound to the first phrase's first "
    "sound, less the wait for the turn's end. Turn latency: what the caller waits, the longer of 160 ms and 80 ms + "
    "compute. No gaps: time in which nobody speaks and no engine works is cut to 50 ms, so that a GPU's clock stays up."
)

_Cell = Callable[[FiguresResult], str]


@dataclass(frozen=True)
class BenchReport:
    """The results of one measurement, for a terminal, a page or other programs."""

    device: str
    versions: dict[str, str]
    engines: dict[str, str]
    """The names of the engines for "llm", "asr", "tts"."""
    seconds: float
    """Seconds for which the engines were measured together, for each column."""
    results: Sequence[FiguresResult]
    processes: list[str] = field(default_factory=list)
    """Processes besides the one with the media clock."""
    budget_ms: float = 300.0

    @property
    def calls_in_time(self) -> int:
        """See `figures.calls_in_time`."""
        return calls_in_time(self.results, self.budget_ms)

    def json(self) -> dict[str, Any]:
        """All results, in ms."""
        about = {name: value for name, value in asdict(self).items() if name != "results"}
        return about | {"calls_in_time": self.calls_in_time, "results": [result.json() for result in self.results]}

    def header(self) -> list[str]:
        """The head above `rows`."""

        def calls(result: FiguresResult) -> str:
            return f"{result.calls} {'call' if result.calls == 1 else 'calls'}"

        def together(result: FiguresResult) -> str:
            return calls(result) if result.gaps else f"{calls(result)}, no gaps"

        return ["", *self._each(together, lambda result: f"{calls(result)}, alone")]

    def rows(self) -> list[list[str]]:
        """A row for each figure, with its name."""
        rows = [[name, *self._cells(name)] for name in (*STAGES, *TURN)]
        rows.append([f"{LATENCY}, p95 of the rounds", *self._spreads()])
        rows.append([f"p95 within {self.budget_ms:g} ms", *self._each(self._in_time)])
        rows.append(["turns", *self._each(lambda result: str(result.together.turns))])
        rows.append(["turns not answered", *self._each(lambda result: str(result.together.unanswered))])
        rows.append([f"{CLOCK}, p50/p95/p99/max", *self._cells(CLOCK)])
        if any(result.mhz for result in self.results):
            rows.append(["GPU's clock, MHz", *self._each(lambda result: "-".join(map(str, result.mhz or ())))])
        return rows

    def tables(self, console: Console) -> list[Table]:
        """Tables for a terminal or a file: one, or where that is too wide one for each number of calls."""
        whole = self._table()
        if console.measure(whole, options=console.options.update(width=WIDEST)).maximum > console.width:
            counts = dict.fromkeys(result.calls for result in self.results)
            apart = [[result for result in self.results if result.calls == calls] for calls in counts]
            tables = [replace(self, results=results)._table() for results in apart]
        else:
            tables = [whole]
        tables[-1].caption = "\n".join([self.headline, NOTE, *self._about()])
        return tables

    def _table(self) -> Table:
        table = Table(title=f"engines on {self.device}", caption_justify="left")
        first, *others = self.header()
        table.add_column(first)
        for column in others:
            table.add_column(column, justify="right", no_wrap=True)
        for row in self.rows():
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """The tables for a page in Markdown."""
        first, *others = self.header()
        lines = [[first, *others], ["---", *("---:" for _ in others)], *self.rows()]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{self.device}. {'. '.join(self._about())}.\n\n{table}\n\n{self.headline} {NOTE}"

    @property
    def headline(self) -> str:
        if not any(result.together.turns for result in self.results):
            return "No turn ended: measure for longer (--seconds)."
        tried = ", ".join(str(calls) for calls in sorted({result.calls for result in self.results}))
        within = f"Calls of which 95 in 100 turns take at most {self.budget_ms:g} ms"
        return f"{within}: {self.calls_in_time} (tried: {tried})."

    def _cells(self, name: str) -> list[str]:
        return self._each(lambda result: _times(result.together, name), lambda result: _times(result.alone, name))

    def _each(self, cell: _Cell, alone: _Cell = lambda result: "") -> list[str]:
        """A cell for each column: `alone` for the engines by themselves, once for each number of calls."""
        cells, seen = [], set()
        for result in self.results:
            cells += [cell(result)] if result.calls in seen else [alone(result), cell(result)]
            seen.add(result.calls)
        return cells

    def _spreads(self) -> list[str]:
        return self._each(lambda result: "-".join(map(_ms, result.spread(LATENCY) or ())))

    def _in_time(self, result: FiguresResult) -> str:
        return {True: "yes", False: "no", None: ""}[result.in_time(self.budget_ms)]

    def _about(self) -> list[str]:
        engines = [f"{stage.upper()}: {name}" for stage, name in self.engines.items()]
        beside = f"processes beside this one: {', '.join(self.processes) or 'none'}"
        return [*engines, beside, ", ".join(f"{name} {version}" for name, version in self.versions.items())]


def _times(samples: Samples, name: str) -> str:
    figure = samples.figure(name)
    if figure is None:
        return ""
    times = [figure.p50, figure.p95, figure.p99, *([figure.most] if name == CLOCK else [])]
    return "/".join(_ms(time) for time in times)


def _ms(time: float) -> str:
    return f"{time:.1f}" if time < 10 else f"{time:.0f}"

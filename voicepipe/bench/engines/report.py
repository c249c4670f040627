"""What was found, as a table for a terminal, for a page in Markdown, and as JSON. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from voicepipe.bench.engines.figures import STAGES, TURN, FiguresResult, Samples
from voicepipe.bench.engines.load import CACHED_TOKENS, TRAFFIC

NOTE = (
    "p50/p95 in ms. Alone: under the same load, with the device to itself. LLM's prompts: "
    f"{TRAFFIC.new_tokens} new tokens behind {CACHED_TOKENS} in the prefix cache, as `voicepipe plan` reckons; its "
    f"first phrase: {TRAFFIC.phrase_tokens} tokens. "
    "Turn compute: ASR's final, then LLM's and TTS's first phrase. Turn latency: what the caller waits, the longer of "
    "160 ms and 80 ms + compute."
)


@dataclass(frozen=True)
class BenchReport:
    """Of one measurement."""

    device: str
    versions: dict[str, str]
    engines: dict[str, str]
    """What is measured as "llm", "asr", "tts"; stand-ins are named so."""
    weights: dict[str, int]
    """Of each."""
    seconds: float
    """That the engines were measured together, for each number of calls."""
    results: Sequence[FiguresResult]

    def json(self) -> dict[str, Any]:
        """All figures, in ms."""
        about = {name: value for name, value in asdict(self).items() if name != "results"}
        return about | {"results": [result.json() for result in self.results]}

    def header(self) -> list[str]:
        """Of `rows`."""
        calls = [f"{result.calls} {'call' if result.calls == 1 else 'calls'}" for result in self.results]
        return ["", *(cell for each in calls for cell in ("alone", each))]

    def rows(self) -> list[list[str]]:
        """A row for each figure, with its name."""
        rows = [
            [name, *(_times(which, name) for result in self.results for which in (result.alone, result.together))]
            for name in (*STAGES, *TURN)
        ]
        turns, unanswered, left_out = ["turns"], ["turns not answered"], ["partials left out"]
        heard = ["calls that ASR could hear"]
        for result in self.results:
            turns += ["", str(result.together.turns)]
            unanswered += ["", str(result.together.unanswered)]
            left_out += ["", _share(result.together)]
            heard += [_calls(result.capacity), _calls(result.capacity_beside)]
        return [*rows, turns, unanswered, left_out, heard]

    def table(self) -> Table:
        """For a terminal."""
        table = Table(title=f"engines on {self.device}", caption="\n".join([NOTE, *self._about()]))
        first, *others = self.header()
        table.add_column(first, no_wrap=True)
        for column in others:
            table.add_column(column, justify="right", no_wrap=True)
        for row in self.rows():
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """For a page."""
        first, *others = self.header()
        lines = [[first, *others], ["---", *("---:" for _ in others)], *self.rows()]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{self.device}. {'. '.join(self._about())}.\n\n{table}\n\n{NOTE}"

    def _about(self) -> list[str]:
        engines = [f"{stage.upper()}: {self.engines[stage]}, {_weights(self.weights[stage])}" for stage in self.engines]
        return [*engines, ", ".join(f"{name} {version}" for name, version in self.versions.items())]


def _times(samples: Samples, name: str) -> str:
    figure = samples.figure(name)
    return f"{_ms(figure.p50)}/{_ms(figure.p95)}" if figure else ""


def _ms(time: float) -> str:
    return f"{time:.1f}" if time < 10 else f"{time:.0f}"


def _share(samples: Samples) -> str:
    return f"{100 * samples.dropped / samples.partials:.0f} %" if samples.partials else ""


def _calls(capacity: float | None) -> str:
    return "" if capacity is None else f"{capacity:.0f}" if capacity >= 10 else f"{capacity:.1f}"


def _weights(count: int) -> str:
    return f"{count / 1e9:.2f} B weights" if count >= 1e9 else f"{count / 1e6:.1f} M weights"

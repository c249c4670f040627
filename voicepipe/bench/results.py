"""The results of a measurement: samples -> percentiles, and as JSON. Times are milliseconds. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from voicepipe.base.figures import percentile
from voicepipe.sizing.prediction import latency_ms

ASR_BEHIND = "ASR, words behind the sound"
ASR_FINAL = "ASR, final"
LLM_FIRST = "LLM, first token"
LLM_PHRASE = "LLM, first phrase"
LLM_CHUNK = "LLM, a token"
TTS_FIRST = "TTS, first sound"
TTS_LATER = "TTS, later phrase"
COMPUTE = "turn compute"
LATENCY = "turn latency"
CLOCK = "media clock late"
STAGES = (ASR_BEHIND, ASR_FINAL, LLM_FIRST, LLM_PHRASE, LLM_CHUNK, TTS_FIRST, TTS_LATER)
TURN = (COMPUTE, LATENCY)
"""Figures of a turn: from the caller's last sound to the first phrase's, with the engines together. `latency`
gives what callers get."""
NAMES = (*STAGES, *TURN, CLOCK)


@dataclass
class Samples:
    """The times of one run."""

    times: dict[str, list[float]] = field(default_factory=dict)
    turns: int = 0
    unanswered: int = 0
    """Turns without a first sound when the run ended."""

    def note(self, name: str, seconds: float) -> None:
        """Add a time to the samples of this name."""
        self.times.setdefault(name, []).append(1000 * seconds)

    def turn(self, compute_s: float) -> None:
        """A turn was answered after so much compute."""
        self.note(COMPUTE, compute_s)
        self.times.setdefault(LATENCY, []).append(latency_ms(1000 * compute_s))

    def figure(self, name: str) -> "Figure | None":
        """The figure of these samples. None: not measured."""
        times = self.times.get(name)
        if not times:
            return None
        p50, p95, p99 = (percentile(times, percent) or 0.0 for percent in (50, 95, 99))
        return Figure(p50, p95, p99, max(times), len(times))


def merged(rounds: Sequence[Samples]) -> Samples:
    """The samples of several runs together."""
    whole = Samples(turns=sum(each.turns for each in rounds), unanswered=sum(each.unanswered for each in rounds))
    for each in rounds:
        for name, times in each.times.items():
            whole.times.setdefault(name, []).extend(times)
    return whole


@dataclass(frozen=True)
class Figure:
    """Percentiles in milliseconds."""

    p50: float
    p95: float
    p99: float
    most: float
    count: int


@dataclass(frozen=True)
class FiguresResult:
    """The results for one number of calls, with or without idle gaps."""

    calls: int
    gaps: bool
    rounds: Sequence[Samples]
    """Samples of the engines together, by round."""
    alone: Samples = field(default_factory=Samples)
    """Samples of each stage by itself under the same load, of three runs."""
    mhz: tuple[int, int] | None = None
    """The GPU's clock meanwhile, least and most; None: unknown."""

    @property
    def together(self) -> Samples:
        return merged(self.rounds)

    def spread(self, name: str) -> tuple[float, float] | None:
        """The least and the greatest p95 of the rounds."""
        found = [figure.p95 for each in self.rounds if (figure := each.figure(name))]
        return (min(found), max(found)) if found else None

    def in_time(self, budget_ms: float) -> bool | None:
        """95 of 100 turns were answered within the budget; turns without an answer were not. None: no turn ended."""
        together = self.together
        latencies = [*together.times.get(LATENCY, []), *[math.inf] * together.unanswered]
        p95 = percentile(latencies, 95)
        return None if p95 is None else p95 <= budget_ms

    def json(self) -> dict[str, Any]:
        """Figures only."""
        together = self.together
        return {
            "calls": self.calls,
            "idle_gaps": self.gaps,
            "rounds": len(self.rounds),
            "together": _figures(together),
            "p95_ms_of_rounds": {name: spread for name in NAMES if (spread := self.spread(name))},
            "alone": _figures(self.alone),
            "turns": together.turns,
            "unanswered": together.unanswered,
            "gpu_mhz": self.mhz,
        }


def calls_in_time(results: Sequence[FiguresResult], budget_ms: float) -> int:
    """The largest number of calls, of those tried, up to which all were answered in time; 0: not even the fewest."""
    most = 0
    for calls in sorted({result.calls for result in results}):
        if not all(result.in_time(budget_ms) for result in results if result.calls == calls):
            break
        most = calls
    return most


def _figures(samples: Samples) -> dict[str, dict[str, float]]:
    return {
        name: {
            "p50_ms": round(figure.p50, 2), "p95_ms": round(figure.p95, 2), "p99_ms": round(figure.p99, 2),
            "max_ms": round(figure.most, 2), "count": figure.count,
        }
        for name in NAMES
        if (figure := samples.figure(name))
    }  # fmt: skip

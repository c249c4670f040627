"""What a measurement found: samples -> percentiles, and as JSON. Times are milliseconds. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from voicepipe.prediction import latency_ms

ASR_PARTIAL = "ASR, partial"
ASR_FINAL = "ASR, final"
LLM_FIRST = "LLM, first token"
LLM_PHRASE = "LLM, first phrase"
LLM_TOKEN = "LLM, a token"
TTS_FIRST = "TTS, first phrase"
TTS_LATER = "TTS, later phrase"
COMPUTE = "turn compute"
LATENCY = "turn latency"
STAGES = (ASR_PARTIAL, ASR_FINAL, LLM_FIRST, LLM_PHRASE, LLM_TOKEN, TTS_FIRST, TTS_LATER)
TURN = (COMPUTE, LATENCY)
"""Where the engines run together: from the final's request to the first phrase's speech, and what that means for a
caller: `latency`."""


def percentile(times: Sequence[float], share: float) -> float:
    """The smallest time that at least `share` of `times` do not exceed; nan of none."""
    return sorted(times)[max(0, math.ceil(share * len(times)) - 1)] if times else math.nan


@dataclass
class Samples:
    """Of one run."""

    times: dict[str, list[float]] = field(default_factory=dict)
    partials: int = 0
    dropped: int = 0
    """Partials that a newer reading of the same call made worthless before their turn came."""
    turns: int = 0
    unanswered: int = 0
    """Turns whose first phrase was not there when the run ended."""

    def note(self, name: str, seconds: float) -> None:
        """Something took so long."""
        self.times.setdefault(name, []).append(1000 * seconds)

    def turn(self, compute_s: float) -> None:
        """A turn was answered after so much compute."""
        self.note(COMPUTE, compute_s)
        self.times.setdefault(LATENCY, []).append(latency_ms(1000 * compute_s))

    def figure(self, name: str) -> "Figure | None":
        """None: not measured."""
        times = self.times.get(name)
        return Figure(percentile(times, 0.5), percentile(times, 0.95), len(times)) if times else None


@dataclass(frozen=True)
class Figure:
    p50: float
    p95: float
    count: int


@dataclass(frozen=True)
class FiguresResult:
    """Of one number of calls."""

    calls: int
    together: Samples
    alone: Samples
    """Each stage by itself under the same load: the samples of three runs."""
    capacity: float | None
    """Calls whose readings ASR could do with the device to itself; None: not measured."""
    capacity_beside: float | None
    """The same while LLM and TTS serve `calls` calls."""

    def json(self) -> dict[str, Any]:
        """Figures only."""
        return {
            "calls": self.calls,
            "together": _figures(self.together),
            "alone": _figures(self.alone),
            "turns": self.together.turns,
            "unanswered": self.together.unanswered,
            "partials": self.together.partials,
            "partials_dropped": self.together.dropped,
            "asr_capacity_calls": _rounded(self.capacity),
            "asr_capacity_calls_beside": _rounded(self.capacity_beside),
        }


def _figures(samples: Samples) -> dict[str, dict[str, float]]:
    found = {name: samples.figure(name) for name in (*STAGES, *TURN)}
    return {
        name: {"p50_ms": round(figure.p50, 2), "p95_ms": round(figure.p95, 2), "count": figure.count}
        for name, figure in found.items()
        if figure
    }


def _rounded(calls: float | None) -> float | None:
    return None if calls is None else round(calls, 1)

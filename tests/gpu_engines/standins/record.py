"""What was found: as JSON after every case, and as a line for each."""

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.gpu_engines.standins.cases import Case
from tests.gpu_engines.standins.language import Replies
from tests.gpu_engines.standins.window import WindowFigures

WHAT = "stand-in"


def summary(values: Sequence[float]) -> dict[str, float | int]:
    """Percentiles, mean, maximum, count; empty without values."""
    if not values:
        return {}
    p50, p95, p99 = (round(float(each), 3) for each in np.percentile(values, (50, 95, 99)))
    return {"p50": p50, "p95": p95, "p99": p99, "max": round(max(values), 3),
            "mean": round(float(np.mean(values)), 3), "count": len(values)}  # fmt: skip


def of_rounds(rounds: Sequence[Sequence[float]]) -> dict[str, Any]:
    """`summary` of all of them, and the least and most of their medians."""
    medians = [round(float(np.median(each)), 3) for each in rounds if each]
    return summary([value for each in rounds for value in each]) | {
        "medians": [min(medians), max(medians)] if medians else []
    }


@dataclass
class CaseFigures:
    """Of one case."""

    case: Case
    seen: list[WindowFigures] = field(default_factory=list)
    """Of each round."""
    replies: list[Replies] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        whole: dict[str, Any] = {"what": WHAT, **asdict(self.case), "rounds": len(self.seen), "errors": self.errors}
        for name in ("step", "rows", "chunk", "settle", "clock"):
            key = name if name == "rows" else f"{name}_ms"
            whole[key] = of_rounds([getattr(each, name) for each in self.seen])
        if self.seen:
            whole["calls_in_time"] = min(each.in_time for each in self.seen)
            whole["chunks_undone"] = sum(each.undone for each in self.seen)
        for name in ("first_token", "first_phrase", "token", "running") if self.replies else ():
            key = f"llm_{name}{'' if name == 'running' else '_ms'}"
            whole[key] = of_rounds([getattr(each, name) for each in self.replies])
        if voices := [each.voice for each in self.seen if each.voice]:
            for name in ("voice_first", "voice_later", "turn"):
                whole[f"{name}_ms"] = of_rounds([getattr(each, name) for each in voices])
            whole["turns_unanswered"] = sum(each.unanswered for each in voices)
        return whole

    def line(self) -> str:
        """For people: p50/p95 of what was measured."""
        found = self.json()
        cells = [
            f"{name.replace('_', ' ')} {figure['p50']:.3g}/{figure['p95']:.3g}"
            for name, figure in found.items()
            if isinstance(figure, dict) and "p50" in figure
        ]
        turns = [f"turns {found['turn_ms']['count']}"] if found.get("turn_ms", {}).get("count") else []
        in_time = f"calls in time {found.get('calls_in_time', '-')}"
        return " | ".join([f"{WHAT}, {self.case.name}", *cells, *turns, in_time, *self.errors[-1:]])


class Record:
    """Everything; `path` is replaced as a whole each time."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        self.about: dict[str, Any] = {"what": WHAT}
        self.steps: list[dict[str, Any]] = []
        """Of one size of batch each, back to back."""
        self.found: dict[Case, CaseFigures] = {}

    def of(self, case: Case) -> CaseFigures:
        return self.found.setdefault(case, CaseFigures(case))

    def write(self, **more: Any) -> None:
        with self._lock:
            self.about |= more
            cases = [each.json() for each in list(self.found.values())]
            part = self.path.with_name(f"{self.path.name}.part")
            part.write_text(json.dumps({"about": self.about, "steps": self.steps, "cases": cases}, indent=1))
            os.replace(part, self.path)

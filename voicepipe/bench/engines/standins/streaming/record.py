"""What was found: as JSON after every case, as a line for each, and as a table."""

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from voicepipe.bench.engines.standins.streaming.cases import Case
from voicepipe.bench.engines.standins.streaming.language import Replies
from voicepipe.bench.engines.standins.streaming.window import WindowFigures

COLUMNS = ("what", "language model", "calls", "mode", "switch ms", "step ms", "rows", "chunk ms", "settle ms",
           "settles", "clock late ms", "in time", "first token ms", "first phrase ms", "token ms", "voice first ms",
           "voice later ms", "speech to sound ms", "turns", "unanswered", "rounds", "step medians")  # fmt: skip
WHAT = "stand-in"


def summary(values: Sequence[float]) -> dict[str, float | int]:
    """Percentiles, mean, maximum, count; empty without values."""
    if not values:
        return {}
    p50, p95, p99 = (round(float(each), 3) for each in np.percentile(values, (50, 95, 99)))
    return {"p50": p50, "p95": p95, "p99": p99, "max": round(max(values), 3),
            "mean": round(float(np.mean(values)), 3), "count": len(values)}  # fmt: skip


def spread(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Least and most of the rounds' medians."""
    medians = [round(float(np.median(each)), 3) for each in rounds if each]
    return [min(medians), max(medians)] if medians else []


def short(found: dict[str, Any], *keys: str) -> str:
    """p50/p95/..., or a dash."""
    return "/".join(f"{found[key]:.3g}" for key in keys) if found else "-"


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
            rounds = [getattr(each, name) for each in self.seen]
            whole[name if name == "rows" else f"{name}_ms"] = summary(sum(rounds, [])) | {"medians": spread(rounds)}
        if self.seen:
            whole["calls_in_time"] = min(each.in_time for each in self.seen)
            whole["chunks_undone"] = sum(each.undone for each in self.seen)
        for name in ("first_token", "first_phrase", "token", "running"):
            rounds = [getattr(each, name) for each in self.replies]
            if self.replies:
                whole[f"llm_{name}{'' if name == 'running' else '_ms'}"] = summary(sum(rounds, [])) | {
                    "medians": spread(rounds)
                }
        if voices := [each.voice for each in self.seen if each.voice]:
            for name in ("voice_first", "voice_later", "turn"):
                rounds = [getattr(each, name) for each in voices]
                whole[f"{name}_ms"] = summary(sum(rounds, [])) | {"medians": spread(rounds)}
            whole["turns_unanswered"] = sum(each.unanswered for each in voices)
        return whole

    def cells(self) -> list[str]:
        """Of COLUMNS."""
        found, case = self.json(), self.case
        three = [found[f"{name}_ms"] if self.seen else {} for name in ("step", "chunk", "settle", "clock")]
        step, chunk, settle, clock = ({} if len(each) < 2 else each for each in three)
        llm = [found.get(f"llm_{name}_ms", {}) for name in ("first_token", "first_phrase", "token")]
        voice = [found.get(f"{name}_ms", {}) for name in ("voice_first", "voice_later", "turn")]
        percentiles = ("p50", "p95", "p99")
        return [
            WHAT, case.where, str(case.calls), case.mode, f"{case.switch_ms:g}", short(step, *percentiles),
            short(found["rows"], "mean") if step else "-", short(chunk, *percentiles), short(settle, *percentiles),
            str(settle.get("count", 0)), short(clock, *percentiles, "max"), str(found.get("calls_in_time", "-")),
            *(short(each if len(each) > 1 else {}, "p50", "p95") for each in (*llm, *voice)),
            str(voice[2].get("count", "-")), str(found.get("turns_unanswered", "-")), str(len(self.seen)),
            "-".join(f"{each:.3g}" for each in found["step_ms"]["medians"])
            + "".join(f" {error}" for error in self.errors[-1:]),
        ]  # fmt: skip


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
            whole = {
                "about": self.about,
                "steps": self.steps,
                "cases": [each.json() for each in list(self.found.values())],
            }
            part = self.path.with_name(self.path.name + ".part")
            part.write_text(json.dumps(whole, indent=1))
            os.replace(part, self.path)

    def table(self) -> Table:
        table = Table(
            *COLUMNS,
            title="p50/p95/p99(/max); language model, voice and speech to sound p50/p95",
            box=None,
            padding=(0, 1),
        )
        for each in self.found.values():
            table.add_row(*each.cells())
        return table

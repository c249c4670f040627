"""One stage of a turn under calls, and how stages slow each other down on one GPU. Times are milliseconds.

Processes take turns on a GPU: whoever has work for it gets an equal part of the time. So a stage slows another one
down for as much of the time as it has work there itself, and that is longer the more it is slowed down, too: shares of
the time and factors have to agree with each other.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

ROUNDS = 10
"""Rounds after which shares and factors agree."""


class Contention(NamedTuple):
    """How much the other stages on a GPU slow one of them down."""

    slowdown: float = 1.0
    """The factor by which its work on the GPU takes longer, in the mean."""
    spread: float = 0.0
    """Standard deviation of that: some jobs meet all of them from beginning to end, and some meet none."""


@dataclass(frozen=True, slots=True)
class StageJob:
    """One job of a stage."""

    cpu: float
    """Time of launching, and of work before and after: others may have the GPU meanwhile."""
    gpu: float
    """Time on the GPU while nobody else uses it."""

    def __add__(self, other: "StageJob") -> "StageJob":
        return StageJob(self.cpu + other.cpu, self.gpu + other.gpu)

    def times(self, count: int) -> "StageJob":
        return StageJob(count * self.cpu, count * self.gpu)

    def duration(self, slowdown: float) -> float:
        """Time of the job; `slowdown`: the factor by which the GPU takes longer beside others."""
        return self.cpu + slowdown * self.gpu

    def after_wait(self, blocking_ms: float, share: float, contention: Contention) -> NormalDist:
        """Time of the job with the wait for one of `blocking_ms` that is in progress with probability `share`, and that
        cannot be interrupted: any part of it may be left."""
        wait = share * blocking_ms / 2
        variance = share * blocking_ms**2 / 3 - wait**2
        variance += (contention.spread * self.gpu) ** 2
        return NormalDist(wait + self.duration(contention.slowdown), math.sqrt(variance))


@dataclass(frozen=True, slots=True)
class LoadedStage:
    """A stage under load."""

    latency: NormalDist
    """Time until a caller has the result."""
    busy: float
    """Part of the time in which it works at least; 1 and more: it cannot keep up."""
    on_gpu: float
    """Part of the time in which it has work on the GPU, 1 at most."""


def loaded_stage(
    awaited: StageJob,
    asked: float,
    jobs: Sequence[tuple[float, StageJob]],
    contention: Contention,
    least: float | None = None,
) -> LoadedStage:
    """A stage that does one job after the other. A caller waits for `awaited`, of which `asked` come in a millisecond:
    it goes before the others. `jobs`: all jobs, and how many of each come in a millisecond; the first of them may be in
    progress when `awaited` comes. `least`: part of the time that the stage works at least, if some jobs can be left out
    or done together."""
    slow, (often, blocking) = contention.slowdown, jobs[0]
    works, gpu = sum(rate * work.duration(slow) for rate, work in jobs), sum(rate * work.gpu for rate, work in jobs)
    busy, duration, blocking_ms = works if least is None else least, awaited.duration(slow), blocking.duration(slow)
    queued = duration * queueing_delay(asked * duration) if busy < 1 else math.inf
    latency = awaited.after_wait(blocking_ms, min(1.0, often * blocking_ms), contention) + queued
    return LoadedStage(latency, busy, min(1.0, slow * gpu / max(1.0, works)))


def queueing_delay(load: float) -> float:
    """Mean wait for a server that always takes the same time (M/D/1), in units of that time."""
    return load / (2 * (1 - load)) if load < 1 else math.inf


def contentions(
    together: Mapping[str, Callable[[Contention], float]], gains: Mapping[str, float]
) -> dict[str, Contention]:
    """How much each stage on a GPU is slowed down. `together`: for each stage, the share of the time in which it has
    work there under a given contention; `gains`: the part of others' work that slows a stage down, where it is not
    all."""
    found = dict.fromkeys(together, Contention())
    for _ in range(ROUNDS):
        shares = {name: on_gpu(found[name]) for name, on_gpu in together.items()}
        for name in together:
            others, gain = [share for other, share in shares.items() if other != name], gains.get(name, 1.0)
            spread = math.sqrt(sum(share * (1 - share) for share in others))
            found[name] = Contention(1 + gain * sum(others), gain * spread)
    return found

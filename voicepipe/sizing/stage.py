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


class SharedGpu(NamedTuple):
    """The effect of the other stages on a GPU on one of them."""

    slow: float = 1.0
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

    def lasts(self, slow: float) -> float:
        """Time of the job; `slow`: the factor by which the GPU takes longer beside others."""
        return self.cpu + slow * self.gpu

    def behind(self, met_ms: float, share: float, beside: SharedGpu) -> NormalDist:
        """Time of the job with the wait for one of `met_ms` that is in progress with probability `share`, and that
        cannot be interrupted: any part of it may be left."""
        wait = share * met_ms / 2
        variance = share * met_ms**2 / 3 - wait**2
        return NormalDist(wait + self.lasts(beside.slow), math.sqrt(variance + (beside.spread * self.gpu) ** 2))


@dataclass(frozen=True, slots=True)
class LoadedStage:
    """A stage under load."""

    takes: NormalDist
    """Time until a caller has the result."""
    busy: float
    """Part of the time in which it works at least; 1 and more: it cannot keep up."""
    on_gpu: float
    """Part of the time in which it has work on the GPU, 1 at most."""


def served(
    awaited: StageJob,
    asked: float,
    jobs: Sequence[tuple[float, StageJob]],
    beside: SharedGpu,
    least: float | None = None,
) -> LoadedStage:
    """A stage that does one job after the other. `awaited` comes so often a millisecond, and goes before the others.
    `jobs`: all of them, and how often each comes; a caller who waits meets the first of them in progress. `least`: part
    of the time that it works at least, if some can be left out or done together."""
    slow, (often, met) = beside.slow, jobs[0]
    works, gpu = sum(rate * work.lasts(slow) for rate, work in jobs), sum(rate * work.gpu for rate, work in jobs)
    busy, lasts, met_ms = works if least is None else least, awaited.lasts(slow), met.lasts(slow)
    queued = lasts * queue(asked * lasts) if busy < 1 else math.inf
    takes = awaited.behind(met_ms, min(1.0, often * met_ms), beside) + queued
    return LoadedStage(takes, busy, min(1.0, slow * gpu / max(1.0, works)))


def queue(load: float) -> float:
    """Mean wait for a server that always takes the same time (M/D/1), in units of that time."""
    return load / (2 * (1 - load)) if load < 1 else math.inf


def shared(together: Mapping[str, Callable[[SharedGpu], float]], gains: Mapping[str, float]) -> dict[str, SharedGpu]:
    """`together`: of each stage on a GPU, the share of the time in which it has work there beside such others; `gains`:
    what part of a meeting slows a stage down, where that is not all of it."""
    found = dict.fromkeys(together, SharedGpu())
    for _ in range(ROUNDS):
        shares = {name: on_gpu(found[name]) for name, on_gpu in together.items()}
        for name in together:
            met, gain = [share for other, share in shares.items() if other != name], gains.get(name, 1.0)
            spread = math.sqrt(sum(share * (1 - share) for share in met))
            found[name] = SharedGpu(1 + gain * sum(met), gain * spread)
    return found

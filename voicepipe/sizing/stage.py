"""One stage of a turn under calls, and how stages slow each other down on one GPU. Times are milliseconds.

Processes take turns on a GPU: whoever has work for it gets an equal part of the time. So a stage slows another one
down for as much of the time as it has work there itself, and that is longer the more it is slowed down, too: shares of
the time and factors have to agree with each other.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Work(NamedTuple):
    """One job."""

    cpu: float
    """Launching, and what is done before and after: others may have the GPU meanwhile."""
    gpu: float
    """While nobody else is at it."""

    def lasts(self, slow: float) -> float:
        """`slow`: by what the GPU takes longer beside others."""
        return self.cpu + slow * self.gpu


class Wait(NamedTuple):
    """For a job that is under way, with probability `share`, when another comes, and that cannot be interrupted."""

    share: float
    length: float
    """Of the whole job: any part of it may be left."""

    @property
    def mean(self) -> float:
        return self.share * self.length / 2

    @property
    def variance(self) -> float:
        return self.share * self.length**2 / 3 - self.mean**2


@dataclass(frozen=True, slots=True)
class Stage:
    ms: float
    """Until the one who waits for it has what he waits for, in the mean."""
    gpu: float
    """The GPU's part of that, while nobody else is at it."""
    wait: Wait
    """What he waits for first; it is in `ms`."""
    busy: float
    """Share of the time in which it works at least; 1 and more: it cannot keep up."""
    on_gpu: float
    """Share of the time in which it has work on the GPU, 1 at most."""


def served(
    slow: float, awaited: Work, asked: float, jobs: Sequence[tuple[float, Work]], least: float | None = None
) -> Stage:
    """A stage that does one job after the other. `awaited` is asked for so often a millisecond, and goes before the
    others. `jobs`: all of them, and how often each comes; who waits meets the first of them under way. `least`: share
    of the time that it works at least, if some can be left out or done together."""
    (often, met), *_ = jobs
    works = sum(rate * work.lasts(slow) for rate, work in jobs)
    wait, lasts = Wait(min(1.0, often * met.lasts(slow)), met.lasts(slow)), awaited.lasts(slow)
    busy = works if least is None else least
    return Stage(
        ms=lasts * (1 + queue(asked * lasts)) + wait.mean if busy < 1 else math.inf,
        gpu=awaited.gpu,
        wait=wait,
        busy=busy,
        on_gpu=min(1.0, slow * sum(rate * work.gpu for rate, work in jobs) / max(1.0, works)),
    )


def queue(load: float) -> float:
    """Mean wait for a server that always takes the same time (M/D/1), in units of that time."""
    return load / (2 * (1 - load)) if load < 1 else math.inf


class Sharing(NamedTuple):
    """What the others on its GPU are for one stage."""

    slow: float = 1.0
    """By what its work on the GPU takes longer, in the mean."""
    spread: float = 0.0
    """Standard deviation of that: some jobs meet all of them from beginning to end, and some meet none."""


def shared(
    together: Collection[str], on_gpu: Mapping[str, Callable[[float], float]], gains: Mapping[str, float]
) -> dict[str, Sharing]:
    """`together`: the stages that share a GPU; `on_gpu`: the share of the time in which each has work on it, if that
    takes so many times as long; `gains`: what part of a meeting slows a stage down, where that is not all of it."""
    found = dict.fromkeys(on_gpu, Sharing())
    for _ in range(200):
        before, shares = found, {name: on_gpu[name](found[name].slow) for name in together}
        others = {name: [share for other, share in shares.items() if other != name] for name in together}
        found = before | {name: _beside(others[name], gains.get(name, 1.0)) for name in together}
        if all(found[name].slow - before[name].slow < 1e-4 for name in together):  # they only grow
            break
    return found


def _beside(others: Sequence[float], gain: float) -> Sharing:
    return Sharing(1 + gain * sum(others), gain * math.sqrt(sum(share * (1 - share) for share in others)))

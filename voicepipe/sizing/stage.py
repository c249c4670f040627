"""One stage of a turn under calls: what recognition, language and synthesis have in common. Times are milliseconds."""

import math
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


class Met(NamedTuple):
    """A job that is under way when another comes, and that cannot be interrupted."""

    share: float
    """With this probability."""
    length: float

    @property
    def wait(self) -> float:
        """Mean."""
        return self.share * self.length / 2

    @property
    def variance(self) -> float:
        """Of a wait for any part of it."""
        return self.share * self.length * self.length / 3 - self.wait**2


@dataclass(frozen=True, slots=True)
class Stage:
    ms: float
    """Until the one who waits for it has what he waits for, in the mean."""
    gpu: float
    """The GPU's part of that, while nobody else is at it."""
    met: Met
    """What he waits for first; it is in `ms`."""
    busy: float
    """Share of the time in which it works; 1 and more: it cannot keep up."""
    least: float
    """The same without what can be left out."""
    on_gpu: float
    """Share of the time in which it has work on the GPU, 1 at most."""


def queue(load: float) -> float:
    """Mean wait for a server that always takes the same time (M/D/1), in units of that time."""
    return load / (2 * (1 - load)) if load < 1 else math.inf

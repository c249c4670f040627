"""When a turn's first sound comes, where a first phrase that is late is cut short: the ladder's rung "short". Pure.

A phrase that is whole just before the rung is spoken as it is. A voice that makes whole phrases then takes longer than
for one that was cut, so that its sound may come later: the turn that waited longest need not be the slowest.
Percentiles are therefore counted over cases.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

MANY = 100
CASES = tuple(NormalDist().inv_cdf((n + 0.5) / MANY) for n in range(MANY))
"""Waits that are equally likely, in standard deviations above the mean."""


class Time(NamedTuple):
    """In milliseconds."""

    mean: float
    deviation: float
    """Standard."""

    def at(self, case: float) -> float:
        return self.mean + case * self.deviation


class Making(NamedTuple):
    """Of one phrase."""

    whole: Time
    """From when the engines begin until it is written."""
    sounds: Time
    """From then to its first sound."""


@dataclass(frozen=True, slots=True)
class FirstPhrase:
    long: Making
    short: Making
    """One that was cut."""
    rung: float
    """From when the engines begin, in ms; infinite: none is cut."""

    def at(self, case: float = 0.0) -> tuple[float, Making]:
        """When it goes to the voice, and what goes there."""
        whole = self.long.whole.at(case)
        if whole <= self.rung:
            return whole, self.long
        return max(self.short.whole.at(case), self.rung), self.short

    @property
    def p95(self) -> float:
        """19 of 20 turns have their first sound by then, in ms from when the engines begin."""
        at, last = int(0.95 * MANY * MANY), [self.at(case) for case in CASES]
        sounds = np.array([[made.sounds.mean, made.sounds.deviation] for _, made in last])
        first = np.array([[whole] for whole, _ in last]) + (sounds[:, :1] + np.array(CASES) * sounds[:, 1:])
        return float(np.partition(first, at, axis=None)[at])

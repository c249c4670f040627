"""When a turn's first sound comes, where a first phrase that is late is cut short: the ladder's rung "short".

A phrase that is whole just before the rung is spoken as it is. A voice that makes whole phrases then takes longer than
for one that was cut, so that its sound may come later: the turn that waited longest need not be the slowest.
Percentiles are therefore counted over cases.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

MANY = 100
CASES = np.array([NormalDist().inv_cdf((n + 0.5) / MANY) for n in range(MANY)])
"""Waits that are equally likely, in standard deviations above the mean."""


class Making(NamedTuple):
    """Of one phrase, in milliseconds."""

    written: NormalDist
    """From when the engines begin until it is whole."""
    sounds: NormalDist
    """From then to its first sound."""


class FirstSound(NamedTuple):
    """In milliseconds."""

    written: float
    """From when the engines begin until the voice gets the phrase, if each wait is the mean one."""
    sounds: float
    """From then to the first sound."""
    p95: float
    """19 of 20 turns have their first sound by then."""


def first_sound(long: Making, short: Making, rung: float) -> FirstSound:
    """`short`: of a phrase that is cut, `rung` ms after the engines began if it is not whole; infinite: none is."""
    waits = np.array([0.0, *CASES])
    whole, shorter = (made.written.mean + waits * made.written.stdev for made in (long, short))
    late = whole > rung
    written = np.where(late, np.maximum(shorter, rung), whole)
    mean = np.where(late, short.sounds.mean, long.sounds.mean)
    deviation = np.where(late, short.sounds.stdev, long.sounds.stdev)
    all_cases = (written + mean)[1:, None] + deviation[1:, None] * CASES
    at = int(0.95 * all_cases.size)
    return FirstSound(float(written[0]), float(mean[0]), float(np.partition(all_cases, at, axis=None)[at]))

"""The statistics of the report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np


def mean(values: Sequence[float]) -> float | None:
    """None without values."""
    return sum(values) / len(values) if values else None


def upper_bound(count: int, total: int, confidence: float = 0.95) -> float | None:
    """One-sided upper bound of a rate of which `count` of `total` were seen (Clopper-Pearson); None without any."""
    if not total:
        return None
    low, high = count / total, 1.0
    if count == total:
        return 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(count, total, middle) > 1 - confidence else (low, middle)
    return high


def at_most(count: int, total: int, rate: float) -> float:
    """Probability of `count` or fewer of `total` at this rate (binomial)."""
    if rate <= 0 or rate >= 1:
        return 1.0 if rate <= 0 else 0.0
    ways = (math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) for k in range(count + 1))
    return sum(math.exp(way + k * math.log(rate) + (total - k) * math.log1p(-rate)) for k, way in enumerate(ways))


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the bounds of its 95 % confidence interval."""

    value: float
    low: float
    high: float


STRETCHES = 7
"""So few that the mean of one says little of the next one's, and enough for an interval."""


def growth(times: Sequence[float], values: Sequence[float]) -> Interval | None:
    """Slope of `values` over ascending `times`, by least squares over the means of `STRETCHES` equal stretches of
    time; None for fewer than four of them.

    What a process holds now it mostly also held a moment ago, so single values are not independent, and the interval
    of a textbook would be too narrow (Law and Kelton, Simulation Modeling and Analysis: batch means).
    """
    if len(values) < 4 or times[0] == times[-1]:
        return None
    at, found = np.asarray(times, np.float64), np.asarray(values, np.float64)
    stretch = np.minimum((at - at[0]) / (at[-1] - at[0]) * STRETCHES, STRETCHES - 1).astype(int)
    filled = np.unique(stretch)
    count = len(filled)
    if count < 4:
        return None
    at, found = (np.array([each[stretch == number].mean() for number in filled]) for each in (at, found))
    at -= at.mean()
    spread = float(at @ at)
    slope = float(at @ found) / spread
    rest = found - found.mean() - slope * at
    wide = student(count - 2) * math.sqrt(float(rest @ rest) / (count - 2) / spread)
    return Interval(slope, slope - wide, slope + wide)


def ratio(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """Of the second of each pair to the first: geometric mean; None for fewer than three pairs."""
    if len(pairs) < 3:
        return None
    logs = np.log([after / before for before, after in pairs])
    middle = float(logs.mean())
    wide = student(len(pairs) - 1) * float(logs.std(ddof=1)) / math.sqrt(len(pairs))
    return Interval(math.exp(middle), math.exp(middle - wide), math.exp(middle + wide))


def difference(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """Of the first of each pair less the second: mean; None for fewer than three pairs."""
    if len(pairs) < 3:
        return None
    found = np.array([one - other for one, other in pairs])
    middle = float(found.mean())
    wide = student(len(pairs) - 1) * float(found.std(ddof=1)) / math.sqrt(len(pairs))
    return Interval(middle, middle - wide, middle + wide)


def student(freedom: float) -> float:
    """97.5 % quantile of Student's t (Abramowitz and Stegun, 26.7.5): within 1 % from two degrees of freedom on."""
    z = NormalDist().inv_cdf(0.975)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))

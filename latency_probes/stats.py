"""The statistics of the report."""

import math
from collections.abc import Sequence

import numpy as np


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Percentile by linear interpolation; None without values."""
    return float(np.percentile(values, percent)) if values else None


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


def slope(values: Sequence[float]) -> float | None:
    """Growth from one value to the next, by least squares; None for fewer than two."""
    if len(values) < 2:
        return None
    return float(np.polyfit(np.arange(len(values)), np.asarray(values, np.float64), 1)[0])

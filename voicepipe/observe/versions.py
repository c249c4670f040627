"""Two versions side by side, by what their PoPs counted: is one worse, and how sure is that? Pure.

Turn latency has two humps, turns that were answered from a draft and turns that were not, so a difference of means
takes many turns to be seen. Here each turn of one version is held against each of the other: the shift is the middle of
these differences (Hodges and Lehmann), and its interval follows from the ranks (Mann and Whitney). It does not see that
a few turns became much slower, so the means are compared, too. Shares have Newcombe's interval.

Turns of one call are alike, callers differ by the hour, and PoPs differ by their hardware: what is said here is said of
these turns, and not only of the version.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from voicepipe.directory.tally import Tally, middle_ms

SURE = 0.999
"""Of the intervals. One that leaves out 0 names a difference. There are five, and operators look again and again: with
99 % an equal version was named in 3 of 100 comparisons, with this in 2 of 100 in which they looked nine times."""
Z = NormalDist().inv_cdf((1 + SURE) / 2)
FEWEST = 20
"""Turns of each; of fewer nothing is said."""
SMALL_MS = 10.0
SMALL = 0.005
"""Smaller differences do not matter, however sure they are."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more the second version has, and between which bounds that lies."""

    more: float
    least: float
    most: float

    def is_worse(self, small: float) -> bool:
        return self.least > 0 and self.more >= small

    def is_better(self, small: float) -> bool:
        return self.most < 0 and self.more <= -small


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    of: int

    @property
    def rate(self) -> float:
        return self.count / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class Rate:
    """One kind of mishap at both versions."""

    what: str
    a: Share
    b: Share
    difference: Difference


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of one version, in ms."""

    turns: int
    p50: float
    p95: float
    mean: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """`a` is what is known, `b` what is new."""

    a: Latencies
    b: Latencies
    shift: Difference
    mean: Difference
    rates: tuple[Rate, ...]
    turns: tuple[int, int]

    @property
    def is_told(self) -> bool:
        """There are turns enough to say something."""
        return min(self.turns) >= FEWEST

    @property
    def is_slower(self) -> bool:
        return self.is_told and (self.shift.is_worse(SMALL_MS) or self.mean.is_worse(SMALL_MS))

    @property
    def worse(self) -> tuple[Rate, ...]:
        """Mishaps that `b` has more of."""
        return tuple(rate for rate in self.rates if self.is_told and rate.difference.is_worse(SMALL))

    @property
    def is_worse(self) -> bool:
        """`b`, in anything."""
        return self.is_slower or bool(self.worse)


def compared(a: Tally, b: Tally) -> Comparison:
    """`b` held against `a`."""
    ones, others = _timed(a), _timed(b)
    return Comparison(
        a=_latencies(*ones),
        b=_latencies(*others),
        shift=_shift(*ones, *others),
        mean=_mean(*ones, *others),
        rates=(
            _rate("cut-ins", Share(min(a.cut_ins, a.turns), a.turns), Share(min(b.cut_ins, b.turns), b.turns)),
            _rate("failures", Share(a.missed, a.turns), Share(b.missed, b.turns)),
            _rate("refusals", Share(a.refused, a.refused + a.calls), Share(b.refused, b.refused + b.calls)),
        ),
        turns=(a.turns, b.turns),
    )


def _timed(tally: Tally) -> tuple[Floats, Floats]:
    """Latencies, and how many turns had each."""
    buckets = sorted(tally.latencies)
    return (
        np.array([middle_ms(bucket) for bucket in buckets], float),
        np.array([tally.latencies[bucket] for bucket in buckets], float),
    )


def _latencies(ms: Floats, turns: Floats) -> Latencies:
    if not turns.sum():
        return Latencies(0, 0.0, 0.0, 0.0)
    p50, p95 = _quantiles(ms, turns, 0.5, 0.95)
    return Latencies(int(turns.sum()), p50, p95, float((ms * turns).sum() / turns.sum()))


def _shift(a_ms: Floats, a_turns: Floats, b_ms: Floats, b_turns: Floats) -> Difference:
    m, n = a_turns.sum(), b_turns.sum()
    if not m or not n:
        return Difference(0.0, -math.inf, math.inf)
    differences = (b_ms[:, None] - a_ms[None, :]).ravel()
    weights = (b_turns[:, None] * a_turns[None, :]).ravel()
    order = np.argsort(differences)
    spread = Z * math.sqrt((m + n + 1) / (12 * m * n))
    least, middle, most = _quantiles(differences[order], weights[order], 0.5 - spread, 0.5, 0.5 + spread)
    return Difference(middle, least if spread < 0.5 else -math.inf, most if spread < 0.5 else math.inf)


def _mean(a_ms: Floats, a_turns: Floats, b_ms: Floats, b_turns: Floats) -> Difference:
    m, n = a_turns.sum(), b_turns.sum()
    if m < 2 or n < 2:
        return Difference(0.0, -math.inf, math.inf)
    (a_mean, a_error), (b_mean, b_error) = _mean_of(a_ms, a_turns), _mean_of(b_ms, b_turns)
    error = Z * math.hypot(a_error, b_error)
    return Difference(b_mean - a_mean, b_mean - a_mean - error, b_mean - a_mean + error)


def _mean_of(ms: Floats, turns: Floats) -> tuple[float, float]:
    """And its standard error."""
    mean = (ms * turns).sum() / turns.sum()
    variance = (turns * (ms - mean) ** 2).sum() / (turns.sum() - 1)
    return float(mean), math.sqrt(variance / turns.sum())


def _quantiles(ascending: Floats, weights: Floats, *parts: float) -> list[float]:
    so_far = np.cumsum(weights)
    places = np.searchsorted(so_far, np.clip(parts, 0, 1) * so_far[-1])
    return [float(ascending[min(place, len(ascending) - 1)]) for place in places]


def _rate(what: str, a: Share, b: Share) -> Rate:
    (a_least, a_most), (b_least, b_most) = _wilson(a), _wilson(b)
    more = b.rate - a.rate
    return Rate(what, a, b, Difference(more, more - math.hypot(b.rate - b_least, a_most - a.rate),
                                       more + math.hypot(b_most - b.rate, a.rate - a_least)))  # fmt: skip


def _wilson(share: Share) -> tuple[float, float]:
    """Bounds of the rate."""
    if not share.of:
        return 0.0, 1.0
    rate, of = share.rate, share.of
    middle = rate + Z * Z / (2 * of)
    spread = Z * math.sqrt(rate * (1 - rate) / of + Z * Z / (4 * of * of))
    scale = 1 + Z * Z / of
    return (middle - spread) / scale, (middle + spread) / scale

"""Compares two versions by what their PoPs counted: is one worse, and how sure is that? Pure.

Turn latency has two humps, turns that were answered from a draft and turns that were not, so a difference of means
takes many turns to be seen. Here each turn of one version is held against each of the other: the shift is the middle of
these differences (Hodges and Lehmann), and its interval follows from the ranks (Mann and Whitney). It does not see that
a few turns became much slower, so the means are compared, too. Shares have Newcombe's interval.

Turns of one call are alike, so 100 turns of twelve calls say less than 100 of a hundred. How much less, the tallies'
sums over calls say: the variance of a mean of clustered turns is so many times the one of as many turns that have
nothing to do with each other (the design effect; Kish). Every interval is as wide as if there were so many times fewer
turns.

Callers differ by the hour, and PoPs by their hardware: what is said here is said of these turns, and not only of the
version.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from voicepipe.observe.tally import PerCallSums, Tally, middle_ms
from voicepipe.observe.turn_figures import wilson

SURE = 0.999
"""Confidence of the intervals. One that leaves out 0 is a difference. There are five, and operators look again and
again: with 99 % an equal version was reported in 3 of 100 comparisons, with this in 2 of 100 in which they looked nine
times."""
Z = NormalDist().inv_cdf((1 + SURE) / 2)
FEWEST = 20
"""Fewest turns of each version."""
FEWEST_CALLS = 5
"""Fewest calls of each version that had a turn; with fewer nothing is reported."""
SMALL_MS = 10.0
SMALL = 0.005
"""Smaller differences do not matter, however sure they are."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two versions (the second less the first), with its bounds."""

    more: float
    least: float
    most: float

    def is_worse(self, small: float) -> bool:
        return self.least > 0 and self.more >= small

    def is_better(self, small: float) -> bool:
        return self.most < 0 and self.more <= -small


@dataclass(frozen=True, slots=True)
class MishapRate:
    """The rates of one kind of mishap at both versions."""

    what: str
    a: float
    b: float
    """From 0 to 1."""
    difference: Difference


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies of one version, in ms."""

    turns: int
    p50: float
    p95: float
    mean: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two versions side by side. `a` is the known one, `b` the new one."""

    a: Latencies
    b: Latencies
    shift: Difference
    mean: Difference
    rates: tuple[MishapRate, ...]
    turns: tuple[int, int]
    calls: tuple[int, int]
    """Calls that had a turn."""

    @property
    def is_told(self) -> bool:
        """There are enough turns, of enough calls, to report a result."""
        return min(self.turns) >= FEWEST and min(self.calls) >= FEWEST_CALLS

    @property
    def is_slower(self) -> bool:
        return self.is_told and (self.shift.is_worse(SMALL_MS) or self.mean.is_worse(SMALL_MS))

    @property
    def worse(self) -> tuple[MishapRate, ...]:
        """Kinds of mishaps that `b` has more of."""
        return tuple(rate for rate in self.rates if self.is_told and rate.difference.is_worse(SMALL))

    @property
    def is_worse(self) -> bool:
        """Whether `b` is worse in anything."""
        return self.is_slower or bool(self.worse)


@dataclass(frozen=True, slots=True)
class _CountedTurns:
    """A value that each turn of a version has, by the number of turns with each value."""

    values: Floats
    turns: Floats
    by_call: PerCallSums

    @property
    def count(self) -> float:
        return float(self.turns.sum())

    @property
    def mean(self) -> float:
        return float((self.values * self.turns).sum() / self.count) if self.count else 0.0

    @property
    def squares(self) -> float:
        """The sum of squares of the turns' differences from the mean."""
        return float((self.turns * (self.values - self.mean) ** 2).sum())

    @property
    def squares_of_calls(self) -> float:
        """The same sum for calls: how far the sum of a call is from the mean times its number of turns. If turns of a
        call were independent, it would be as much as `squares`."""
        its, mean = self.by_call, self.mean
        return its.xx - 2 * mean * its.nx + mean * mean * its.nn


def compared(a: Tally, b: Tally) -> Comparison:
    """Compare `b` with `a`."""
    ones, others = _timed(a), _timed(b)
    effects = _effects(ones, others)
    cut_ins = (min(a.cut_ins, a.turns), min(b.cut_ins, b.turns))
    return Comparison(
        a=_latencies(ones),
        b=_latencies(others),
        shift=_shift(ones, others, effects),
        mean=_mean(ones, others, effects),
        rates=(
            _rate(
                "cut-ins",
                _yes_no(cut_ins[0], a.turns, a.cut_ins_by_call),
                _yes_no(cut_ins[1], b.turns, b.cut_ins_by_call),
            ),
            _rate(
                "failures", _yes_no(a.missed, a.turns, a.missed_by_call), _yes_no(b.missed, b.turns, b.missed_by_call)
            ),
            _rate("refusals", _yes_no(a.refused, a.refused + a.calls), _yes_no(b.refused, b.refused + b.calls)),
        ),
        turns=(a.turns, b.turns),
        calls=(a.missed_by_call.calls, b.missed_by_call.calls),
    )


def _timed(tally: Tally) -> _CountedTurns:
    buckets = sorted(tally.latencies)
    return _CountedTurns(
        np.array([middle_ms(bucket) for bucket in buckets], float),
        np.array([tally.latencies[bucket] for bucket in buckets], float),
        tally.latency_by_call,
    )


def _yes_no(count: int, of: int, by_call: PerCallSums | None = None) -> _CountedTurns:
    return _CountedTurns(np.array([0.0, 1.0]), np.array([of - count, count], float), by_call or PerCallSums())


def _effects(a: _CountedTurns, b: _CountedTurns) -> tuple[float, float]:
    """Design effects. The turns of a few calls may be similar by chance, so that of both versions together counts where
    it is greater."""
    calls, squares = a.by_call.calls + b.by_call.calls, a.squares + b.squares
    both = 1.0
    if calls > 2 and squares > 0:
        both = max(1.0, (a.squares_of_calls + b.squares_of_calls) * calls / (calls - 2) / squares)
    return max(both, _effect(a)), max(both, _effect(b))


def _effect(its: _CountedTurns) -> float:
    calls, squares = its.by_call.calls, its.squares
    return its.squares_of_calls * calls / (calls - 1) / squares if calls > 1 and squares > 0 else 1.0


def _latencies(its: _CountedTurns) -> Latencies:
    if not its.count:
        return Latencies(0, 0.0, 0.0, 0.0)
    p50, p95 = _quantiles(its.values, its.turns, 0.5, 0.95)
    return Latencies(int(its.count), p50, p95, its.mean)


def _shift(a: _CountedTurns, b: _CountedTurns, effects: tuple[float, float]) -> Difference:
    if not a.count or not b.count:
        return Difference(0.0, -math.inf, math.inf)
    differences = (b.values[:, None] - a.values[None, :]).ravel()
    weights = (b.turns[:, None] * a.turns[None, :]).ravel()
    order = np.argsort(differences)
    m, n = a.count / effects[0], b.count / effects[1]
    spread = Z * math.sqrt((m + n + 1) / (12 * m * n))
    least, middle, most = _quantiles(differences[order], weights[order], 0.5 - spread, 0.5, 0.5 + spread)
    return Difference(middle, least if spread < 0.5 else -math.inf, most if spread < 0.5 else math.inf)


def _mean(a: _CountedTurns, b: _CountedTurns, effects: tuple[float, float]) -> Difference:
    """The mean with its bounds. Of a hundred turns none may be one of the few that take seconds, and then their own
    spread is far too small: so the spread of all counts, if that is greater."""
    m, n = a.count, b.count
    if m < 2 or n < 2:
        return Difference(0.0, -math.inf, math.inf)
    more = b.mean - a.mean
    each = math.sqrt(a.squares / (m - 1) / m * effects[0] + b.squares / (n - 1) / n * effects[1])
    all_squares = a.squares + b.squares + more * more * m * n / (m + n)
    both = math.sqrt(all_squares / (m + n - 1) * (effects[0] / m + effects[1] / n))
    error = Z * max(each, both)
    return Difference(more, more - error, more + error)


def _quantiles(ascending: Floats, weights: Floats, *parts: float) -> list[float]:
    so_far = np.cumsum(weights)
    indices = np.searchsorted(so_far, np.clip(parts, 0, 1) * so_far[-1])
    return [float(ascending[min(index, len(ascending) - 1)]) for index in indices]


def _rate(what: str, a: _CountedTurns, b: _CountedTurns) -> MishapRate:
    effects = _effects(a, b)
    (a_least, a_most), (b_least, b_most) = _bounds(a, effects[0]), _bounds(b, effects[1])
    more = b.mean - a.mean
    between = Difference(more, more - math.hypot(b.mean - b_least, a_most - a.mean),
                         more + math.hypot(b_most - b.mean, a.mean - a_least))  # fmt: skip
    return MishapRate(what, a.mean, b.mean, between)


def _bounds(its: _CountedTurns, effect: float) -> tuple[float, float]:
    return wilson(its.mean, its.count / effect, Z) if its.count else (0.0, 1.0)

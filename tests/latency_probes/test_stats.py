"""Bounds and slopes against known values."""

import numpy as np
import pytest

from latency_probes.stats import difference, growth, mean, ratio, student, upper_bound


@pytest.mark.parametrize(
    ("count", "total", "bound"),
    [(0, 150, 1 - 0.05 ** (1 / 150)), (0, 1, 0.95), (3, 100, 0.0757), (5, 10, 0.7776), (10, 10, 1.0)],
)
def test_upper_bound(count: int, total: int, bound: float) -> None:
    assert upper_bound(count, total) == pytest.approx(bound, abs=1e-4)


def test_nothing_seen_has_no_figure() -> None:
    assert upper_bound(0, 0) is None
    assert mean([]) is None
    assert growth([0, 1, 2], [5, 6, 7]) is None
    assert ratio([(1, 1), (1, 1)]) is None


def test_a_mean() -> None:
    assert mean([1, 2]) == 1.5


@pytest.mark.parametrize(("freedom", "quantile"), [(2, 4.303), (3, 3.182), (4, 2.776), (10, 2.228), (100, 1.984)])
def test_students_quantiles(freedom: int, quantile: float) -> None:
    assert student(freedom) == pytest.approx(quantile, rel=0.01)


def test_growth_of_a_line_is_known_exactly() -> None:
    line = growth([0, 10, 20, 30, 40], [5, 6, 7, 8, 9])
    assert line
    assert (line.value, line.low, line.high) == pytest.approx((0.1, 0.1, 0.1))


@pytest.mark.parametrize(("leaning", "white"), [(0.0, 1.0), (0.8, 0.0), (0.97, 4.0)])
def test_an_interval_holds_the_true_growth_as_often_as_it_says(leaning: float, white: float) -> None:
    """Also where each value leans on the one before it, as memory does, with fast noise of calls upon it."""
    rng = np.random.default_rng(1)
    times = np.arange(540.0)
    held = 0
    for _ in range(300):
        noise = rng.normal(size=540)
        for at in range(1, 540):
            noise[at] += leaning * noise[at - 1]
        found = growth(list(times), list(3 * times + noise + white * rng.normal(size=540)))
        assert found
        held += found.low <= 3 <= found.high
    assert 0.90 <= held / 300 <= 0.99


def test_a_difference_is_of_pairs() -> None:
    assert difference([(1, 1), (2, 2)]) is None
    found = difference([(103, 101), (201, 198), (52, 50), (401, 400)])
    assert found
    assert found.value == pytest.approx(2)
    assert found.low < 1 < 3 < found.high  # As a paired t-test has it: 2 -+ 1.3.


def test_a_ratio_is_of_pairs() -> None:
    """What is common to both of a pair, as a machine that is slow for a minute, does not count."""
    same = ratio([(100, 101), (200, 198), (50, 50), (400, 404)])
    assert same
    assert same.low < 1 < same.high
    slower = ratio([(100, 120), (200, 240), (50, 61), (400, 484)])
    assert slower
    assert slower.value == pytest.approx(1.21, abs=0.01)
    assert slower.low > 1.15

"""Bounds and slopes against known values."""

import pytest

from latency_probes.stats import mean, percentile, slope, upper_bound


@pytest.mark.parametrize(
    ("count", "total", "bound"),
    [(0, 150, 1 - 0.05 ** (1 / 150)), (0, 1, 0.95), (3, 100, 0.0757), (5, 10, 0.7776), (10, 10, 1.0)],
)
def test_upper_bound(count: int, total: int, bound: float) -> None:
    assert upper_bound(count, total) == pytest.approx(bound, abs=1e-4)


def test_nothing_seen_has_no_figure() -> None:
    assert upper_bound(0, 0) is None
    assert percentile([], 50) is None
    assert mean([]) is None
    assert slope([1.0]) is None


def test_figures() -> None:
    assert percentile([1, 2, 3, 4, 5], 95) == pytest.approx(4.8)
    assert mean([1, 2]) == 1.5
    assert slope([10, 13, 16, 19]) == pytest.approx(3)

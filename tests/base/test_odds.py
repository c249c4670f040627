"""Probabilities and their log-odds."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.base.odds import log_odds, probability


@pytest.mark.parametrize(("p", "expected"), [(0.5, 0.0), (0.9, math.log(9)), (0.2, -math.log(4))])
def test_log_odds(p: float, expected: float) -> None:
    assert log_odds(p) == pytest.approx(expected)


@given(st.floats(0.001, 0.999))
def test_one_is_the_other_s_inverse(p: float) -> None:
    assert probability(log_odds(p)) == pytest.approx(p)


def test_nothing_is_quite_certain() -> None:
    assert log_odds(0) == log_odds(1e-4) == pytest.approx(-9.21, abs=0.01)
    assert log_odds(1) == log_odds(1 - 1e-4) == pytest.approx(9.21, abs=0.01)
    assert log_odds(0, nearest=0.1) == log_odds(0.1)

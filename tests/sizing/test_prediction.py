"""The turn latency that engines' time makes, and how load lengthens it."""

import pytest

from voicepipe.sizing.prediction import latency_ms, slowing, with_more


def test_a_turns_latency_is_what_the_wait_does_not_hide() -> None:
    assert latency_ms(50) == 160
    assert latency_ms(200) == 280


def test_engines_slow_down_with_the_square_of_the_load() -> None:
    assert slowing(0) == 1 and slowing(1) == 1.25
    assert slowing(0.5) - 1 == pytest.approx((slowing(1) - 1) / 4)


def test_more_load_lengthens_the_compute_in_a_latency() -> None:
    assert with_more(280, load=0, more=1) == pytest.approx(80 + 200 * 1.25)
    assert with_more(330, load=1, more=0.0) == pytest.approx(330)
    assert with_more(160, load=0, more=1) == 180
    assert with_more(100, load=0, more=1) == 160, "the wait for the turn's end hides it"

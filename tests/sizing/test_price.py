"""What calls cost by their host's price: the parts add up to the whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.sizing.price import (
    break_even_calls,
    call_cost,
    host_cost,
    idle_cost,
    minute_cost,
    thousand_tokens_cost,
)


def test_a_call_pays_for_its_place_while_it_lasts() -> None:
    assert host_cost(3.6, seconds=1800) == pytest.approx(1.8)
    assert call_cost(3.6, slots=1, seconds=3600) == pytest.approx(3.6)
    assert call_cost(3.6, slots=4, seconds=100) == pytest.approx(0.025)
    assert call_cost(0.0, slots=4, seconds=100) == 0.0, "a host whose price is not known"


def test_what_no_call_pays_is_idle_cost() -> None:
    assert idle_cost(3.6, slots=4, seconds=3600, call_seconds=0) == pytest.approx(3.6)
    assert idle_cost(3.6, slots=4, seconds=3600, call_seconds=3600) == pytest.approx(2.7)
    assert idle_cost(3.6, slots=4, seconds=3600, call_seconds=4 * 3600) == 0.0


@given(
    price=st.floats(0, 1e9),
    slots=st.integers(1, 1000),
    seconds=st.floats(0, 1e9),
    shares=st.lists(st.floats(0, 1), max_size=20),
)
def test_costs_add_up(price: float, slots: int, seconds: float, shares: list[float]) -> None:
    calls = [share * seconds for share in shares[:slots]]
    paid = sum(call_cost(price, slots, call) for call in calls)
    idle = idle_cost(price, slots, seconds, sum(calls))
    assert idle >= 0
    assert paid + idle == pytest.approx(host_cost(price, seconds))


def test_a_minute() -> None:
    assert minute_cost(3.6, calls=4) == pytest.approx(call_cost(3.6, slots=4, seconds=60)), "full: what each call pays"
    half_used = host_cost(3.6, 3600) / (2 * 60)  # by the minutes of calls in an hour
    assert minute_cost(3.6, calls=2) == pytest.approx(half_used)


def test_a_thousand_tokens() -> None:
    assert thousand_tokens_cost(0.5, tokens=2000) == pytest.approx(0.25)
    assert thousand_tokens_cost(0.5, tokens=0) is None


def test_the_break_even_is_where_both_cost_the_same() -> None:
    calls = break_even_calls(2.5, hosted_per_minute=0.06)
    assert calls == pytest.approx(0.694, abs=0.001)
    assert minute_cost(2.5, calls) == pytest.approx(0.06)

"""How long to wait, by how likely it is that the caller has finished."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.turn.wait_times import STEP_MS, Pauses, WaitTimes

PAUSES = Pauses(450, 0.6)
WAITS = WaitTimes(140, 1300, 1000, 1.5, PAUSES)
ODDS = st.floats(-30, 30)


def test_people_s_pauses() -> None:
    assert PAUSES.longer(0) == 1
    assert PAUSES.longer(450) == pytest.approx(0.5)
    assert PAUSES.longer(1000) == pytest.approx(0.09, abs=0.005), "one in eleven is longer than a second"


@given(ODDS, ODDS)
def test_the_likelier_the_end_the_shorter_the_wait(one: float, other: float) -> None:
    shorter, longer = WAITS.ms(max(one, other)), WAITS.ms(min(one, other))
    assert WAITS.shortest_ms <= shorter <= longer <= WAITS.longest_ms


def test_who_has_surely_finished_is_not_kept_waiting_and_who_has_not_is_waited_for() -> None:
    assert WAITS.ms(5) == 140
    assert 300 < WAITS.ms(0) < 800, "it may be either"
    assert WAITS.ms(-5) == 1300


def test_no_other_wait_costs_less() -> None:
    for odds in (-2.0, -1.0, 0.0, 0.5, 1.0):
        complete = 1 / (1 + math.exp(-odds))
        costs = {
            ms: complete * (ms / 1000) ** 1.5 + (1 - complete) * PAUSES.longer(ms) for ms in range(140, 1301, STEP_MS)
        }
        assert costs[round(WAITS.ms(odds))] == min(costs.values())


@given(ODDS, st.integers(0, 115).map(lambda steps: steps * STEP_MS))
def test_how_long_the_silence_has_lasted_already_changes_nothing(odds: float, lasted: int) -> None:
    """Evidence that comes after `lasted` ms: those who would have gone on by then are gone, on both sides of the
    balance. So the wait is what it would have been if all had been known from the start."""
    least = WAITS.ms(odds)
    if least <= 140 + lasted:
        return
    complete = 1 / (1 + math.exp(-round(20 * max(-12, min(12, odds))) / 20))
    still = (1 - complete) * PAUSES.longer(140 + lasted)
    now = complete / (complete + still)

    def cost(ms: float) -> float:
        delay: float = (ms / 1000) ** 1.5
        return now * delay + (1 - now) * PAUSES.longer(ms) / PAUSES.longer(140 + lasted)

    assert cost(least) <= min(cost(ms) for ms in range(140 + lasted, 1301, STEP_MS)) + 1e-9


@pytest.mark.parametrize("times", [0.6, 2.0])
def test_all_times_as_long_is_all_waits_as_long(times: float) -> None:
    slower = WaitTimes(140, 1300 * times, 1000 * times, 1.5, Pauses(450 * times, 0.6))
    for odds in (-3.0, -1.0, 0.0):
        assert slower.ms(odds) == pytest.approx(times * WAITS.ms(odds), abs=2 * STEP_MS * times)

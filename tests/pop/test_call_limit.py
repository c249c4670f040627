"""How many calls a host holds, found by how their turns go."""

import pytest

from voicepipe.pop.call_limit import BACKLOG_S, LATE_S, RISE_S, CallLimit

BUDGET_MS = 300


def test_trouble_among_few_calls_is_made_up_for_within_minutes() -> None:
    limit = CallLimit(36, BUDGET_MS)
    limit.judge(0, 900.0, 3)
    assert limit.calls == 2
    minutes = 0
    while limit.calls < 36:
        minutes += 1
        limit.judge(60.0 * minutes, 160.0, limit.calls)
    assert minutes <= 8


def limit(slots: int = 20) -> CallLimit:
    return CallLimit(slots, BUDGET_MS)


def test_at_first_every_slot_may_be_taken() -> None:
    one = limit()
    one.judge(0, None, 20)
    one.judge(100, 200.0, 20)
    assert one.calls == 20 and one.least_ms(100, 20) == 0


@pytest.mark.parametrize(("calls", "new"), [(20, 16), (10, 8), (3, 2), (1, 1), (0, 1)])
def test_late_turns_cut_it_to_four_fifths_of_the_calls_at_that_moment(calls: int, new: int) -> None:
    one = limit()
    one.judge(0, 900.0, calls)
    assert one.calls == new


def test_the_same_trouble_cuts_it_once() -> None:
    one = limit()
    for second in (0, 10, 50):
        one.judge(second, 900.0, 20)
    assert one.calls == 16
    one.judge(50 + LATE_S, 900.0, 16)
    assert one.calls == 12, "a minute later it is another"


def test_what_has_piled_up_says_nothing_of_the_new_limit() -> None:
    one = limit()
    one.judge(100, 900.0, 20)
    assert one.since == 100 + BACKLOG_S


def test_while_turns_are_late_nobody_is_let_in_unless_they_are_seen_to_be_in_time() -> None:
    one = limit()
    one.judge(0, 900.0, 20)
    assert one.least_ms(LATE_S - 1, 0) == 900 and one.least_ms(LATE_S, 0) == 0
    assert one.least_ms(LATE_S, 16) == 900, "as many as the limit has"
    one.judge(10, 200.0, 12)
    assert one.least_ms(10, 12) == 0


def test_it_rises_by_one_up_to_where_turns_were_late_and_faster_beyond() -> None:
    one, now, seen = limit(40), 0.0, []
    one.judge(now, 900.0, 5)
    while one.calls < 40:
        now += RISE_S
        one.judge(now, 200.0, one.calls)
        seen.append(one.calls)
    assert seen == [5, 6, 8, 12, 20, 36, 40]


@pytest.mark.parametrize(("after_s", "calls"), [(RISE_S - 1, 16), (RISE_S, 15)])
def test_it_does_not_rise_too_soon_or_with_places_left(after_s: float, calls: int) -> None:
    one = limit()
    one.judge(0, 900.0, 20)
    one.judge(after_s, 200.0, calls)
    assert one.calls == 16


def test_a_broken_engine_keeps_callers_out_and_the_limit_as_it_is() -> None:
    one = limit()
    one.judge(0, 5000.0, 20, broken=True)
    assert one.calls == 20 and one.least_ms(1, 0) == 5000
    one.judge(10, 900.0, 20)
    assert one.calls == 16, "slow turns among failures cut it"

"""What turns and calls add up to, in buckets and in sums over calls."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.observe.tally import ByCall, Tally, added, bucket_of, grown, middle_ms, sum_of

CALLS = st.lists(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 900)), min_size=1, max_size=5), max_size=6)
"""Of each call, turns and what they add up to, as they come."""


@given(CALLS)
def test_sums_over_calls_are_the_same_however_their_turns_come(calls: list[list[tuple[int, int]]]) -> None:
    growth = []
    for parts in calls:
        turns = x = 0
        for more, more_x in parts:
            growth.append(grown(turns, x, more, more_x))
            turns, x = turns + more, x + more_x
    whole = [(sum(more for more, _ in parts), sum(more_x for _, more_x in parts)) for parts in calls]
    assert sum_of([ByCall(), *growth]) == ByCall(
        len(whole), sum(n * n for n, _ in whole), sum(n * x for n, x in whole), sum(x * x for _, x in whole)
    )


@pytest.mark.parametrize("ms", [1.0, 60.0, 299.0, 300.0, 6000.0])
def test_a_bucket_is_5_percent_wide_and_its_middle_is_near(ms: float) -> None:
    assert bucket_of(middle_ms(bucket_of(ms))) == bucket_of(ms)
    assert middle_ms(bucket_of(ms)) == pytest.approx(ms, rel=0.025)
    assert middle_ms(bucket_of(ms) + 1) == pytest.approx(1.05 * middle_ms(bucket_of(ms)))


def test_what_took_no_time_is_in_the_first_bucket() -> None:
    assert bucket_of(0.0) == bucket_of(0.3) == bucket_of(-5.0) == bucket_of(1.0) == 0


def test_several_hours_are_added_key_by_key() -> None:
    one = Tally(turns=5, cut_ins=1, missed=1, calls=2, refused=3, latencies={90: 4, 80: 1},
                latency_by_call=ByCall(2, 3, 4, 5), missed_by_call=ByCall(1, 1, 1, 1))  # fmt: skip
    other = Tally(turns=2, latencies={90: 1, 100: 1}, latency_by_call=ByCall(1, 1, 1, 1), cut_ins_by_call=ByCall(1))
    both = added([one, other])
    assert both == Tally(
        turns=7, cut_ins=1, missed=1, calls=2, refused=3, latencies={80: 1, 90: 5, 100: 1},
        latency_by_call=ByCall(3, 4, 5, 6), missed_by_call=ByCall(1, 1, 1, 1), cut_ins_by_call=ByCall(1),
    )  # fmt: skip
    assert list(both.latencies) == [80, 90, 100]
    assert added([]) == Tally()


def test_an_hour_without_calls_is_two_bytes() -> None:
    assert msgspec.json.encode(Tally()) == b"{}"

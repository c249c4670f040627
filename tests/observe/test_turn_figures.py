"""Percentiles, counts and the time axis."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latency_probes import stats
from voicepipe.base.figures import percentile
from voicepipe.conversation.events import ReplyDone
from voicepipe.conversation.timing import TurnSummary
from voicepipe.observe.last_turns import AskedTurn, Stages, TurnWithStages, full_turn, stages
from voicepipe.observe.turn_figures import BUCKETS, axis, figures, medians, over_time, share, upper_bound

NUMBERS = st.floats(0, 60_000)


def turn(at: float, **record: Any) -> TurnWithStages:
    asked = AskedTurn(at, f"turn_{at}", "hello", "call_1", "local", "front-desk")
    summary = TurnSummary(**record)
    return TurnWithStages(full_turn(asked, ReplyDone("resp_1", "completed", record=summary), 300).turn, stages(summary))


@given(st.lists(NUMBERS, min_size=1), st.sampled_from([0, 50, 95, 99, 100]))
def test_percentiles_are_those_of_numpy(values: list[float], percent: float) -> None:
    assert percentile(values, percent) == pytest.approx(float(np.percentile(values, percent)))


def test_nothing_has_no_percentile_and_what_never_came_has_the_last_ones() -> None:
    assert percentile([], 50) is None
    assert [percentile([1.0, math.inf, 2.0], percent) for percent in (0, 50, 60, 100)] == [1, 2, math.inf, math.inf]


@pytest.mark.parametrize(("count", "total"), [(0, 20), (1, 195), (9, 174), (37, 69), (5, 5), (500, 2000)])
def test_the_bound_is_near_the_exact_one(count: int, total: int) -> None:
    exact, ours = stats.upper_bound(count, total), upper_bound(count, total)
    assert exact is not None and ours is not None
    assert count / total <= ours <= 1 and ours == pytest.approx(exact, abs=0.03, rel=0.1)


def test_no_turns_no_rates() -> None:
    assert upper_bound(0, 0) is None and share(0, 0) is None
    assert share(1, 4) == 0.25


def test_turns_are_counted_as_what_they_are() -> None:
    entries = [
        turn(1, turn_latency=100.0, speculation="hit", discarded=2),
        turn(2, turn_latency=400.0, speculation="miss"),
        turn(3, turn_latency=900.0, by_request=True),
        turn(4, ladder="fallback", by_request=True),
        turn(5, reopened=True),
    ]
    found = figures([entry.turn for entry in entries])
    assert (found.turns, found.timed, found.by_request) == (5, 3, 1)
    assert (found.late, found.missed, found.cut_ins) == (1, 1, 1)
    assert (found.hits, found.misses, found.discarded) == (1, 1, 2)
    assert (found.p50, found.p99) == (400.0, 890.0)


def test_a_stages_median_is_of_the_turns_that_had_it() -> None:
    found = medians([Stages(endpointing=140.0, asr=30.0), Stages(endpointing=160.0), Stages(llm=20.0)])
    assert found == Stages(endpointing=150.0, asr=30.0, llm=20.0)
    assert medians([]) == Stages()


def test_turns_fall_into_their_stretch_of_time() -> None:
    entries = [turn(at, turn_latency=at) for at in (599.0, 600.0, 629.9, 630.0, 600.0 + 30 * BUCKETS)]
    buckets = over_time(entries, 600.0, 30.0)
    assert len(buckets) == BUCKETS
    assert [bucket.at for bucket in buckets[:2]] == [600.0, 630.0]
    assert [bucket.figures.turns for bucket in buckets[:3]] == [2, 1, 0]
    assert buckets[0].figures.p50 == pytest.approx(614.95, abs=0.06) and buckets[2].figures.p50 is None


@given(st.floats(1e9, 3e9), st.integers(5, 180))
def test_the_axis_ends_with_the_stretch_that_is_under_way(now: float, minutes: int) -> None:
    start, width_s = axis(now, minutes)
    assert width_s * BUCKETS == minutes * 60
    assert start + (BUCKETS - 1) * width_s <= now < start + BUCKETS * width_s
    assert math.isclose(start / width_s, round(start / width_s), abs_tol=1e-4)


def test_a_quarter_of_an_hour_has_points_of_half_a_minute() -> None:
    assert axis(10_000.0, 15) == (9120.0, 30.0)

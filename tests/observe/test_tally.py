"""What turns and calls of the last hour add up to, in buckets and in sums over calls, and what reports say of it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.directory.reports import report
from voicepipe.base.errors import Reason
from voicepipe.call_api import Refusal
from voicepipe.conversation.events import ReplyDone, ReplyStatus
from voicepipe.conversation.timing import TurnSummary
from voicepipe.directory.report import PopReport
from voicepipe.observe.call_followers import CallFacts
from voicepipe.observe.last_turns import AskedTurn, full_turn
from voicepipe.observe.tally import (
    KEPT_S,
    SLICE_S,
    SLICES,
    HourlyTally,
    PerCallSums,
    Tally,
    added,
    bucket_of,
    grown,
    middle_ms,
    sum_of,
)

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
    assert sum_of([PerCallSums(), *growth]) == PerCallSums(
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
                latency_by_call=PerCallSums(2, 3, 4, 5), missed_by_call=PerCallSums(1, 1, 1, 1))  # fmt: skip
    other = Tally(
        turns=2, latencies={90: 1, 100: 1}, latency_by_call=PerCallSums(1, 1, 1, 1), cut_ins_by_call=PerCallSums(1)
    )
    both = added([one, other])
    assert both == Tally(
        turns=7, cut_ins=1, missed=1, calls=2, refused=3, latencies={80: 1, 90: 5, 100: 1},
        latency_by_call=PerCallSums(3, 4, 5, 6), missed_by_call=PerCallSums(1, 1, 1, 1), cut_ins_by_call=PerCallSums(1),
    )  # fmt: skip
    assert list(both.latencies) == [80, 90, 100]
    assert added([]) == Tally()


def test_an_hour_without_calls_is_two_bytes() -> None:
    assert msgspec.json.encode(Tally()) == b"{}"


CALL = CallFacts(id="rtc_1", tenant="acme", agent="front-desk", line="sip", since=1.0)
ASKED = AskedTurn(1.0, "turn_1", "when are you open", "rtc_1", "acme", "front-desk")


MS = sum(round(middle_ms(bucket_of(ms))) for ms in (200, 201, 950, 950))


class Site:
    def __init__(self) -> None:
        self.now = SLICE_S * 1000
        self.hour = HourlyTally(lambda: self.now)

    def turn(
        self, latency_ms: float | None, status: ReplyStatus = "completed", call: CallFacts = CALL, **record: bool
    ) -> None:
        summary = msgspec.structs.replace(TurnSummary(turn_latency=latency_ms), **record)
        self.hour.turn(call, full_turn(ASKED, ReplyDone("resp_1", status, record=summary), 300))

    def refused(self, reason: Reason) -> None:
        self.hour.refused(Refusal(reason, "sip"))

    def tally(self) -> Tally:
        self.now += KEPT_S
        return self.hour.tally()


def test_turns_calls_and_refusals_add_up() -> None:
    site = Site()
    site.hour.began(CALL)
    for latency_ms in (200.0, 201.0, 950.0):
        site.turn(latency_ms)
    site.turn(3000.0, by_request=True)
    site.turn(None, "failed")
    site.turn(950.0, reopened=True)
    site.hour.cut_in(CALL, full_turn(ASKED, ReplyDone("resp_1", "completed"), 300))
    reasons: tuple[Reason, ...] = ("late", "error", "unauthorized", "draining")
    for reason in reasons:
        site.refused(reason)
    assert site.tally() == Tally(
        turns=6, cut_ins=2, missed=1, calls=1, refused=2, latencies={bucket_of(200): 2, bucket_of(950): 2},
        latency_by_call=PerCallSums(1, 4 * 4, 4 * MS, MS * MS), missed_by_call=PerCallSums(1, 36, 6, 1),
        cut_ins_by_call=PerCallSums(1, 36, 12, 4),
    )  # fmt: skip


def test_calls_are_told_apart_and_one_that_goes_on_beside_others_is_one() -> None:
    site, other = Site(), msgspec.structs.replace(CALL, id="rtc_2")
    for call, failed in ((CALL, True), (other, False), (CALL, True), (other, False), (CALL, False)):
        site.now += SLICE_S / 2
        site.turn(None, "failed" if failed else "completed", call)
    site.hour.left(CALL)
    assert site.tally().missed_by_call == PerCallSums(2, 3 * 3 + 2 * 2, 3 * 2, 2 * 2)
    site.turn(None, "failed")
    assert site.tally().missed_by_call.calls == 3


def test_an_hour_later_they_are_forgotten() -> None:
    site = Site()
    site.turn(200.0)
    site.now += SLICE_S * (SLICES - 1)
    site.turn(300.0)
    assert site.tally().turns == 2
    site.now += SLICE_S
    assert site.tally().turns == 1
    site.now += SLICE_S * SLICES
    assert site.tally() == Tally()


def test_a_report_with_a_busy_hour_is_two_kilobytes_and_is_read_again() -> None:
    latencies = dict.fromkeys(range(bucket_of(60), bucket_of(6000)), 300)
    sums = PerCallSums(4000, 300_000, 90_000_000, 40_000_000_000)
    hour = Tally(turns=30_000, cut_ins=900, missed=90, calls=4000, refused=40, latencies=latencies,
                 latency_by_call=sums, missed_by_call=sums, cut_ins_by_call=sums)  # fmt: skip
    data = msgspec.json.encode(report(hour=hour))
    assert msgspec.json.decode(data, type=PopReport).condition.hour == hour
    assert len(data) < 2000
    assert msgspec.json.decode(msgspec.json.encode(report()), type=PopReport).condition.hour is None

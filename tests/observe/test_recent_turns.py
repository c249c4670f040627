"""What a PoP's reports say of its last 5 minutes."""

from typing import Any

import msgspec

from tests.directory.reports import report
from voicepipe.conversation.events import ReplyDone, ReplyStatus
from voicepipe.conversation.timing import TurnSummary
from voicepipe.directory.report import PopReport
from voicepipe.observe.call_followers import CallFacts
from voicepipe.observe.last_turns import AskedTurn, full_turn
from voicepipe.observe.recent_turns import KEPT_S, STEP_S, STEPS, RecentTurnCounts, RecentTurns

CALL = CallFacts(id="rtc_1", tenant="acme", agent="front-desk", line="sip", since=1.0)
ASKED = AskedTurn(1.0, "turn_1", "when are you open", "rtc_1", "acme", "front-desk")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def told(clock: Clock) -> RecentTurnCounts:
    return RecentTurnCounts(lambda: 1.26, clock)


def say(recent: RecentTurnCounts, latency_ms: float | None, status: ReplyStatus = "completed", **record: Any) -> None:
    """One turn, answered after so long; the budget is 300 ms."""
    done = ReplyDone("resp_1", status, record=TurnSummary(turn_latency=latency_ms, **record))
    recent.turn(CALL, full_turn(ASKED, done, 300))


def test_a_pop_that_has_nothing_to_do_tells_of_its_event_loop_alone() -> None:
    clock = Clock()
    assert told(clock).figures() == RecentTurns(lag_ms=1.3)


def test_turns_add_up() -> None:
    clock = Clock()
    recent = told(clock)
    for latency_ms in (100.0, 200.0, 400.0):
        say(recent, latency_ms)
    say(recent, 900.0, by_request=True)
    say(recent, None, "failed")
    say(recent, 150.0, reopened=True)
    recent.cut_in(CALL, full_turn(ASKED, ReplyDone("resp_1", "completed"), 300))
    assert recent.figures() == RecentTurns(turns=6, timed=5, judged=4, p50_ms=200.0, p95_ms=800.0, late=1, cut_ins=2,
                                           missed=1, lag_ms=1.3)  # fmt: skip


def test_figures_stay_for_some_seconds_and_turns_for_five_minutes() -> None:
    clock = Clock()
    recent = told(clock)
    assert recent.figures().turns == 0
    say(recent, 100.0)
    assert recent.figures().turns == 0, "they are worked out every few seconds only"
    clock.now += KEPT_S
    assert recent.figures().turns == 1
    clock.now += STEPS * STEP_S - STEP_S - KEPT_S
    say(recent, 500.0)
    assert (recent.figures().turns, recent.figures().p50_ms) == (2, 300.0)
    clock.now += STEP_S
    assert (recent.figures().turns, recent.figures().p50_ms) == (1, 500.0)
    clock.now += 3600
    assert recent.figures().turns == 0


def test_a_single_turn_that_was_late_is_read_by_directories() -> None:
    clock = Clock()
    recent = told(clock)
    say(recent, 900.0)
    clock.now += KEPT_S
    data = msgspec.json.encode(report(recent=recent.figures()))
    condition = msgspec.json.decode(data, type=PopReport).condition
    assert condition.recent and condition.recent.late == 1


def test_reports_of_a_pop_that_does_not_tell_are_still_read_and_those_that_do_stay_small() -> None:
    old = msgspec.json.decode(msgspec.json.encode(report()))
    assert "recent" not in old["condition"]
    assert msgspec.json.decode(msgspec.json.encode(old), type=PopReport).condition.recent is None
    recent = RecentTurns(turns=3600, timed=3500, judged=3400, p50_ms=180.1, p95_ms=1312.9, late=171, cut_ins=72,
                         missed=12, lag_ms=12.5)  # fmt: skip
    data = msgspec.json.encode(report(recent=recent))
    assert msgspec.json.decode(data, type=PopReport).condition.recent == recent
    assert len(data) < 1000

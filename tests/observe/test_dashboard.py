"""The view of one PoP: whose turns, calls and refusals are in it, and from when."""

from typing import Any

import msgspec
import pytest

from tests.support.healthy import HEALTHY
from voicepipe.call_api import Refusal
from voicepipe.config import PopConfig
from voicepipe.conversation.events import Item, ItemAdded, ReplyDone, ReplyStarted
from voicepipe.conversation.timing import TurnSummary
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import PcmFormat
from voicepipe.observe.calls import LiveCall
from voicepipe.observe.cost import CostMeter
from voicepipe.observe.dashboard import LISTED, Dashboard
from voicepipe.observe.last_turns import KEPT

LINE = WebSocketLine(PcmFormat(), PcmFormat())


class Clock:
    now = 10_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def dashboard(clock: Clock) -> Dashboard:
    return Dashboard(PopConfig(slots=4), lambda: HEALTHY, clock)


def say(call: LiveCall, number: int, at: float, **record: Any) -> None:
    """One turn, answered."""
    call.note(ItemAdded(Item(f"item_{number}", text="hello"), None, spoken=True), at)
    assert call.facts
    call.note(ReplyStarted(f"resp_{number}", f"turn_{call.facts.id}_{number}"), at)
    call.note(ReplyDone(f"resp_{number}", "completed", record=TurnSummary(**record)), at)


def test_an_idle_pop_has_a_whole_view_and_no_rates(dashboard: Dashboard) -> None:
    view = dashboard.view(None, 15)
    assert (view.status, view.slots, view.slots_used, view.predicted_ms) == ("ok", 4, 1, 160)
    assert view.totals.turns == 0 and view.shares.cut_in is None and view.kept_from is None
    assert msgspec.json.decode(msgspec.json.encode(view))["turns"] == []


def test_tenants_see_their_own(dashboard: Dashboard) -> None:
    with dashboard.watched("acme", "front-desk") as acme, dashboard.watched("clinic", "clinic") as clinic:
        for call, name in ((acme, "call_a"), (clinic, "call_c")):
            call.answered(name, LINE, 9000.0)
        say(acme, 1, 9990.0, turn_latency=100.0)
        say(clinic, 1, 9990.0, turn_latency=500.0, reopened=True)
        dashboard.refused(Refusal("full", "sip", "clinic", "front-desk", 503))
        mine, all_of_it = dashboard.view("acme", 15), dashboard.view(None, 15)
        assert [turn.tenant for turn in mine.turns] == ["acme"] and [call.id for call in mine.calls] == ["call_a"]
        assert (mine.totals.late, mine.totals.cut_ins, mine.refused) == (0, 0, 0)
        assert (mine.refusals, all_of_it.refusals) == ({}, {"full": 1})
        assert (all_of_it.totals.late, all_of_it.totals.cut_ins, all_of_it.refused) == (1, 1, 1)
        assert all_of_it.shares.late == 0.5 and len(all_of_it.calls) == 2
    assert dashboard.turn("acme", "turn_call_a_1") and dashboard.turn(None, "turn_call_c_1")
    assert dashboard.turn("acme", "turn_call_c_1") is None


def test_what_the_host_costs_is_the_operators_to_see(clock: Clock) -> None:
    meter = CostMeter(PopConfig(slots=4, price_per_hour=7.2), clock)
    dashboard = Dashboard(PopConfig(slots=4), lambda: HEALTHY, clock, cost=meter.so_far)
    clock.now += 1800
    cost = dashboard.view(None, 15).cost
    assert cost and (cost.host_cost, cost.idle_cost) == pytest.approx((3.6, 3.6))
    assert dashboard.view("acme", 15).cost is None


def test_only_the_time_that_was_asked_for_is_in_it(dashboard: Dashboard, clock: Clock) -> None:
    dashboard.refused(Refusal("late", "websocket", "local", "front-desk", 503))
    with dashboard.watched("local", "front-desk") as call:
        call.answered("call_1", LINE, clock.now)
        say(call, 1, clock.now, turn_latency=100.0)
    clock.now += 10 * 60
    assert (dashboard.view(None, 5).totals.turns, dashboard.view(None, 5).refused) == (0, 0)
    later = dashboard.view(None, 15)
    assert (later.totals.turns, later.refused) == (1, 1)
    assert sum(bucket.figures.turns for bucket in later.buckets) == 1


def test_the_newest_turns_are_listed_and_a_beginning_that_is_gone_is_told(dashboard: Dashboard, clock: Clock) -> None:
    with dashboard.watched("local", "front-desk") as call:
        call.answered("call_1", LINE, clock.now)
        for number in range(KEPT + 1):
            say(call, number, clock.now - 600 + number / 10, turn_latency=100.0)
    view = dashboard.view(None, 15)
    assert len(view.turns) == LISTED and view.turns[0].id.endswith(f"_{KEPT}")
    assert view.totals.turns == KEPT and view.kept_from == clock.now - 600
    assert dashboard.view(None, 5).kept_from is None

"""What a call comes to, by what was said in it."""

import pytest
from msgspec.structs import replace

from tests.records.kept_calls import HOST, LONG_AGO, call, said
from voicepipe.line import NetworkQuality
from voicepipe.observe.call_followers import CallEnd
from voicepipe.observe.last_turns import FullTurn
from voicepipe.records.record import RecordedHost, summary

CALL = call(0)
END = CallEnd(reason="caller", at=LONG_AGO + 90, network=NetworkQuality(loss_percent=1.5), transferred_to="colleague")


def turn(latency_ms: float | None = 200.0, spoken: bool = True, **changes: bool) -> FullTurn:
    full = said(CALL, 1)
    listed = replace(full.turn, latency_ms=latency_ms, **changes)
    return replace(full, turn=listed, spoken=spoken, input_tokens=100, output_tokens=20)


def test_a_call_that_goes_on_has_no_end_and_no_cost() -> None:
    its = summary(CALL, RecordedHost("fra1", "eu", slots=10, price_per_hour=36.0))
    assert (its.began, its.ended, its.reason, its.cost, its.network, its.turns) == (LONG_AGO, None, "", None, None, 0)
    assert (its.p50_ms, its.p95_ms) == (None, None)
    assert (its.pop, its.region, its.line, its.caller, its.called) == ("fra1", "eu", "sip", CALL.caller, CALL.called)


def test_a_call_that_is_over_has_cost_its_share_of_the_host() -> None:
    its = summary(CALL, RecordedHost("fra1", "eu", slots=10, price_per_hour=36.0), (), END)
    assert its.cost == pytest.approx(0.09), "90 s of a tenth of 0.01 a second"
    assert (its.ended, its.reason, its.transferred_to) == (LONG_AGO + 90, "caller", "colleague")
    assert its.network == END.network
    assert summary(CALL, HOST, (), END).cost is None, "no price is known"


def test_turns_are_counted_by_what_became_of_them() -> None:
    turns = [turn(late=True), turn(late=True, cut_in=True), turn(None, missed=True), turn()]
    its = summary(CALL, HOST, turns, END)
    assert (its.turns, its.late, its.missed, its.cut_ins) == (4, 2, 1, 1)


def test_a_greeting_is_no_turn_but_its_tokens_were_written() -> None:
    its = summary(CALL, HOST, [turn(9000.0, spoken=False, late=True), turn()], END)
    assert (its.turns, its.late, its.p95_ms) == (1, 0, 200.0)
    assert (its.input_tokens, its.output_tokens) == (200, 40)


def test_latencies_are_those_of_turns_that_were_answered() -> None:
    turns = [turn(ms) for ms in (300.0, 100.0, None, 200.0)]
    its = summary(CALL, HOST, turns, END)
    assert (its.p50_ms, its.p95_ms) == (200.0, 290.0)


def test_a_record_has_the_values_of_the_agent_s_variables() -> None:
    assert summary(replace(CALL, variables={"plan": "gold"}), HOST, (), END).variables == {"plan": "gold"}

"""What is kept of a turn, and what it is called: late, missed, a cut-in."""

import dataclasses
import gc
import tracemalloc
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from voicepipe.config.pop_config import LONGEST
from voicepipe.conversation.events import Item, ReplyDone, ToolUse
from voicepipe.conversation.timing import Hop, TurnRecord, TurnSummary
from voicepipe.observe.last_turns import KEPT, AskedTurn, FullTurn, LastTurns, Stages, full_turn, stages

SAID = (Item("item_2", role="assistant", text="From noon."),)


def asked(
    turn_id: str = "turn_1", at: float = 100.0, tenant: str = "local", heard: str = "when are you open"
) -> AskedTurn:
    return AskedTurn(at, turn_id, heard, "call_1", tenant, "front-desk")


def kept(record: dict[str, Any], budget_ms: float = 300, **reply: Any) -> FullTurn:
    done: dict[str, Any] = {"status": "completed", "items": SAID} | reply
    return full_turn(asked(), ReplyDone("resp_1", record=TurnSummary(**record), **done), budget_ms)


@pytest.mark.parametrize(
    ("record", "late"),
    [
        ({"turn_latency": 300.0}, False),
        ({"turn_latency": 300.1}, True),
        ({"turn_latency": 900.0, "by_request": True}, False),
        ({}, False),
    ],
)
def test_late_is_over_the_budget_unless_the_client_set_the_wait(record: dict[str, Any], late: bool) -> None:
    assert kept(record).turn.late is late


def test_the_tools_of_a_turn_are_kept() -> None:
    use = ToolUse("book", took=12.5, at=300.0, failed=True, arguments='{"day":"Sunday"}', result="Error: closed")
    turns = LastTurns()
    turns.add(kept({}, tools=(use,)))
    found = turns.find("turn_1")
    assert found and found.tools == (use,)


def test_the_budget_is_the_pops() -> None:
    assert not kept({"turn_latency": 450.0}, budget_ms=500).turn.late


@pytest.mark.parametrize(
    ("record", "status", "missed"),
    [
        ({"turn_latency": 180.0}, "completed", False),
        ({"ladder": "acknowledge"}, "completed", False),
        ({"ladder": "fallback"}, "completed", True),
        ({}, "failed", True),
        ({}, "cancelled", False),
        ({}, "incomplete", False),
    ],
)
def test_missed_is_a_reply_that_failed_or_gave_way_to_the_fallback(
    record: dict[str, Any], status: str, missed: bool
) -> None:
    assert kept(record, status=status).turn.missed is missed


@pytest.mark.parametrize(
    ("record", "reply", "cut_in"),
    [
        ({"reopened": True}, {}, True),
        ({}, {"status": "cancelled", "reason": "turn_detected"}, False),  # words were heard: an interruption
        ({}, {"status": "cancelled", "reason": "turn_detected", "items": ()}, True),
        ({}, {"status": "cancelled", "reason": "turn_detected", "items": (Item("item_2", text=""),)}, True),
        ({}, {"status": "cancelled", "reason": "client_cancelled", "items": ()}, False),
        ({}, {}, False),
    ],
)
def test_a_cut_in_is_a_turn_that_was_reopened_or_cut_unheard(
    record: dict[str, Any], reply: dict[str, Any], cut_in: bool
) -> None:
    assert kept(record, **reply).turn.cut_in is cut_in


def test_a_turn_in_full_has_its_words_and_its_record_as_it_was() -> None:
    called = Item("item_3", "function_call", "assistant", name="transfer_call")
    full = kept({"turn_latency": 180.0}, items=(*SAID, called))
    assert (full.heard, full.answered) == ("when are you open", "From noon. [transfer_call]")
    assert msgspec.json.decode(msgspec.json.encode(full))["record"] == {"turn_latency": 180.0, "confident": False}


def test_what_speculation_hid_is_the_engines_time_before_the_turn_was_confirmed() -> None:
    record = TurnRecord("turn_1")
    stamps: dict[Hop, float] = {
        "voice_ended": 10.0, "settle": 10.06, "words": 10.08, "prepare": 10.08, "phrase": 10.1, "commit": 10.13,
        "speech": 10.15, "audible": 10.16,
    }  # fmt: skip
    for hop, when in stamps.items():
        record.stamp(hop, when)
    expected = Stages(endpointing=130.0, asr=20.0, llm=20.0, tts=50.0, playout=30.0, hidden=20.0 + 20.0 + 30.0)
    assert stages(record.summary()) == pytest.approx(expected)
    assert stages(TurnSummary()) == Stages()


def test_a_reply_prepared_too_late_hid_nothing() -> None:
    record = TurnSummary(at_settle=60.0, at_words=150.0, at_commit=50.0)
    assert stages(record).hidden == 0


def filled(count: int, tenant: str = "local", heard: str = "") -> LastTurns:
    store = LastTurns()
    for number in range(count):
        reply = ReplyDone(f"resp_{number}", "completed", items=SAID)
        store.add(full_turn(asked(f"turn_{number}", float(number), tenant, heard), reply, 300))
    return store


def test_memory_is_bounded() -> None:
    store = filled(KEPT + 10, heard="x" * LONGEST)
    entries = list(store.since(0))
    assert len(entries) == KEPT and entries[0].turn.id == "turn_10"
    assert store.forgotten_at == 9.0
    assert store.find("turn_9") is None
    newest = store.find(f"turn_{KEPT + 9}")
    assert newest and len(newest.heard) == LONGEST


def test_nothing_was_forgotten_while_all_are_kept() -> None:
    assert filled(KEPT).forgotten_at == 0


def test_turns_of_calls_that_were_deleted_are_gone() -> None:
    turns = LastTurns()
    for number, call in enumerate(("call_1", "call_2", "call_1")):
        its = dataclasses.replace(asked(f"turn_{number}"), call_id=call)
        turns.add(full_turn(its, ReplyDone("resp_1", "completed", items=SAID), 300))
    turns.forget({"call_1", "call_3"})
    assert [listed.turn.id for listed in turns.since(0)] == ["turn_1"]
    assert turns.find("turn_0") is None and turns.forgotten_at == 0


def test_tenants_see_their_own_turns() -> None:
    store = filled(3, "acme")
    assert len(list(store.since(1, "acme"))) == 2
    assert not list(store.since(0, "clinic"))
    assert len(list(store.since(0, None))) == 3
    assert store.find("turn_0", "acme") and store.find("turn_0", None)
    assert store.find("turn_0", "clinic") is None


def test_a_turn_is_kept_as_it_was() -> None:
    record = TurnSummary(
        turn_latency=180.1, at_commit=150.0, turn_id="turn_1", confident=True, speculation="hit", discarded=2
    )
    called = Item("item_3", "function_call", "assistant", name="transfer_call")
    full = full_turn(
        asked(heard="Grüße, um 8?"), ReplyDone("resp_1", "completed", items=(*SAID, called), record=record), 300
    )
    store = LastTurns()
    store.add(full)
    assert store.find("turn_1") == full
    assert list(store.since(0)) == [(full.turn, stages(record))]


def test_a_turn_may_turn_out_to_have_been_a_cut_in() -> None:
    store = filled(2)
    first = store.find("turn_0")
    assert first
    store.amend(replace(first, turn=replace(first.turn, cut_in=True)))
    store.amend(replace(first, turn=replace(first.turn, id="gone")))
    assert [full.turn.cut_in for full in store.since(0)] == [True, False]


def test_a_turn_takes_half_a_kilobyte() -> None:
    """Dashboards are not worth more: a full list of small turns was most of what a PoP grew by in its first hour."""
    times = [name for name, kind in TurnSummary.__annotations__.items() if kind == float | None]
    stages: dict[str, Any] = dict.fromkeys(times, 123.4)
    reply = ReplyDone("resp_1", "completed", items=SAID, record=TurnSummary(**stages, turn_id="turn_" + "0" * 24))
    gc.collect()
    tracemalloc.start()
    try:
        before, store = tracemalloc.get_traced_memory()[0], LastTurns()
        for number in range(500):
            store.add(
                full_turn(asked(f"turn_{number:024x}", 1000.0 + number, heard=f"a table for {number}"), reply, 300)
            )
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken / 500 < 700

"""Live calls are listed from answer to end, and their events become turns: also of whole conversations."""

from functools import partial

import pytest
from msgspec.structs import replace

from tests.support.scenario import load, play
from voicepipe.call_settings import Origin
from voicepipe.conversation.events import CallEnded, CallEvent, Item, ItemAdded, ReplyDone, ReplyStarted, ToolUse
from voicepipe.conversation.timing import TurnSummary
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import PcmFormat
from voicepipe.line import NetworkQuality
from voicepipe.observe.call_followers import CallEnd, CallFacts, CallFollower
from voicepipe.observe.calls import LiveCall, LiveCalls
from voicepipe.observe.last_turns import FullTurn, LastTurns

LINE = WebSocketLine(PcmFormat(), PcmFormat())

RECORD = TurnSummary(turn_latency=180.0, speculation="hit")


def spoken(text: str) -> ItemAdded:
    return ItemAdded(Item("item_1", text=text), None, spoken=True)


def fed(*events: CallEvent) -> list[FullTurn]:
    """The turns of one call."""
    turns = LastTurns()
    call = LiveCall(turns, 300, "acme", "front-desk")
    call.answered("call_1", LINE, 1000.0)
    for number, event in enumerate(events):
        call.note(event, 1000.0 + number)
    return [full for listed in turns.since(0) if (full := turns.find(listed.turn.id))]


def answer(number: int, record: TurnSummary = RECORD) -> tuple[CallEvent, CallEvent]:
    said = (Item("item_2", role="assistant", text="From noon."),)
    started = ReplyStarted(f"resp_{number}", f"turn_{number}")
    return started, ReplyDone(f"resp_{number}", "completed", items=said, record=record)


def test_a_turn_is_what_was_said_and_its_reply() -> None:
    (kept,) = fed(*answer(0), spoken("when are you open"), *answer(1))
    assert (kept.turn.id, kept.turn.call, kept.turn.tenant, kept.turn.agent) == (
        "turn_1", "call_1", "acme", "front-desk")  # fmt: skip
    assert kept.turn.at == 1003.0, "when it was confirmed, not when its reply was over"
    assert (kept.heard, kept.answered) == ("when are you open", "From noon.")


def test_greetings_and_typed_messages_are_no_turns() -> None:
    assert not fed(*answer(0), ItemAdded(Item("item_1", text="typed"), None), *answer(1))


def test_one_reply_to_two_turns_answers_both() -> None:
    (kept,) = fed(spoken("when are you open"), spoken("on friday"), *answer(1))
    assert kept.heard == "when are you open on friday"


def test_a_reply_beside_the_conversation_answers_no_turn() -> None:
    beside = ReplyStarted("resp_0", "turn_0", remembered=False)
    (kept,) = fed(spoken("hello"), beside, ReplyDone("resp_0", "completed"), *answer(1))
    assert kept.turn.id == "turn_1"


def test_a_reply_that_its_call_took_along_was_missed() -> None:
    (kept,) = fed(spoken("hello"), ReplyStarted("resp_1", "turn_1"), CallEnded("error", "it broke"))
    assert kept.turn.missed and kept.turn.latency_ms is None
    assert not fed(spoken("hello"), ReplyStarted("resp_1", "turn_1"), CallEnded("caller"))


def test_a_turn_that_goes_on_with_the_one_before_makes_that_a_cut_in() -> None:
    first, second = fed(
        spoken("a table please"), *answer(1), spoken("for two"), *answer(2, replace(RECORD, continues=True))
    )
    assert first.turn.cut_in and not second.turn.cut_in


def test_live_calls_are_listed_until_their_context_ends() -> None:
    calls = LiveCalls(partial(LiveCall, LastTurns(), 300))
    with calls.watched("acme", "front-desk") as call, calls.watched("clinic", "night"):
        assert not calls.rows(), "admitted, not answered"
        call.answered("call_1", LINE, 1000.0, Origin("+4930123456"))
        for event in (spoken("hello"), *answer(1)):
            call.note(event, 1001.0)
        (row,) = calls.rows()
        assert (row.id, row.agent, row.line, row.caller, row.since) == (
            "call_1", "front-desk", "websocket", "+4930123456", 1000.0)  # fmt: skip
        assert (row.turns, row.latency_ms, row.network) == (1, 180.0, None)
        assert calls.rows("acme") and not calls.rows("clinic")
    assert not calls.rows()


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (NetworkQuality(), None),
        (NetworkQuality(loss_percent=0.06, jitter_ms=2.4), "0.1% lost, 2 ms jitter"),
        (NetworkQuality(loss_percent=0.0, jitter_ms=2.6, rtt_ms=31.2), "0.0% lost, 3 ms jitter, 31 ms there and back"),
    ],
)
def test_the_row_of_a_call_says_how_its_network_fares(
    network: NetworkQuality, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = WebSocketLine(PcmFormat(), PcmFormat())
    monkeypatch.setattr(line, "network", lambda: network)
    calls = LiveCalls(partial(LiveCall, LastTurns(), 300))
    with calls.watched("acme", "front-desk") as call:
        call.answered("call_1", line, 1000.0)
        assert [row.network for row in calls.rows()] == [said]


async def turns_of(scenario: str) -> list[FullTurn]:
    recording = await play(load(scenario))
    return fed(*(event for _, event in recording.events))


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("scenario", "cut_ins", "missed"),
    [
        ("one_turn", [False], [False]),
        ("cut_in_repaired", [True, False], [False, False]),
        ("repaired_after_its_end_was_sent", [True, False], [False, False]),
        ("repaired_in_text", [True, False], [False, False]),
        ("barge_in", [False, False], [False, False]),
        ("dead_model", [False], [True]),
    ],
)
async def test_conversations_become_turns(scenario: str, cut_ins: list[bool], missed: list[bool]) -> None:
    entries = await turns_of(scenario)
    assert [entry.turn.cut_in for entry in entries] == cut_ins
    assert [entry.turn.missed for entry in entries] == missed


class FollowerLog(CallFollower):
    """What a record of calls would get."""

    def __init__(self) -> None:
        self.said: list[tuple[int, str, str, str]] = []
        self.tools: list[ToolUse] = []

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        self.said.append((full.number, "turn", full.heard, full.answered))
        self.tools += full.tools

    def replied(self, call: CallFacts, full: FullTurn) -> None:
        self.said.append((full.number, full.status, full.heard, full.answered))
        self.tools += full.tools

    def amended(self, call: CallFacts, full: FullTurn) -> None:
        self.said.append((full.number, "cut in" if full.turn.cut_in else "amended", full.heard, full.answered))


def told(*events: CallEvent) -> FollowerLog:
    """To a follower, of one call."""
    follower = FollowerLog()
    call = LiveCall(LastTurns(), 300, "acme", "front-desk", (follower,))
    call.answered("call_1", LINE, 1000.0)
    for number, event in enumerate(events):
        call.note(event, 1000.0 + number)
    return follower


def test_followers_hear_the_whole_conversation_in_order() -> None:
    said = told(
        *answer(0), spoken("when are you open"), *answer(1), ItemAdded(Item("item_3", text="typed"), None), *answer(2),
        spoken("bye"), CallEnded("caller"),
    ).said  # fmt: skip
    assert said == [
        (0, "completed", "", "From noon."),
        (1, "turn", "when are you open", "From noon."),
        (2, "completed", "typed", "From noon."),
        (3, "cancelled", "bye", ""),
    ]


def test_a_reply_that_the_caller_hung_up_on_is_told_with_what_they_had_said() -> None:
    assert told(spoken("hello"), ReplyStarted("resp_1", "turn_1"), CallEnded("caller")).said == [
        (0, "cancelled", "hello", "")
    ]


def test_a_turn_that_was_a_cut_in_is_told_again() -> None:
    follower = told(spoken("a table"), *answer(1), spoken("for two"), *answer(2, replace(RECORD, continues=True)))
    assert [(number, what) for number, what, _, _ in follower.said] == [(0, "turn"), (0, "cut in"), (1, "turn")]


def test_results_of_the_clients_tools_belong_to_the_reply_that_goes_on_from_them() -> None:
    asked_for = Item("item_4", "function_call", "assistant", name="weather", arguments='{"city": "Ulm"}', call_id="c1")
    result = ItemAdded(Item("item_5", "function_call_output", output="rain", call_id="c1"), None)
    first = ReplyStarted("resp_1", "turn_1"), ReplyDone("resp_1", "completed", items=(asked_for,))
    follower = told(spoken("the weather?"), *first, result, *answer(2))
    assert follower.said[1] == (1, "completed", "", "From noon.")
    assert follower.tools == [ToolUse("weather", arguments='{"city": "Ulm"}', result="rain")]


@pytest.mark.virtual_time
async def test_whom_a_caller_was_put_through_to_is_told() -> None:
    ends: list[CallEnd] = []

    class Follower(CallFollower):
        def ended(self, call: CallFacts, end: CallEnd) -> None:
            ends.append(end)

    recording = await play(load("transfer"))
    call = LiveCall(LastTurns(), 300, "acme", "front-desk", (Follower(),))
    call.answered("call_1", LINE, 1000.0)
    for _, event in recording.events:
        call.note(event, 1001.0)
    call.ended("transferred", 1002.0)
    assert [(end.reason, end.transferred_to) for end in ends] == [("transferred", "sip:ann@example.com")]


async def test_who_has_the_call_is_told_turn_by_turn() -> None:
    turns, followed, ends = list[tuple[str, str]](), list[str](), list[CallEnd]()

    class Follower(CallFollower):
        def turn(self, call: CallFacts, full: FullTurn) -> None:
            turns.append((full.turn.agent, full.heard))

        def handed_over(self, call: CallFacts, to: str) -> None:
            followed.append(to)

        def ended(self, call: CallFacts, end: CallEnd) -> None:
            ends.append(end)

    recording = await play(load("hand_over"))
    call = LiveCall(LastTurns(), 300, "acme", "scenario", (Follower(),))
    call.answered("call_1", LINE, 1000.0)
    for _, event in recording.events:
        call.note(event, 1001.0)
    assert call.row().agent == "booking"
    call.ended("caller", 1002.0)
    assert turns == [("scenario", "i want to book"), ("booking", "for two")]
    assert followed == ["booking"] and [end.handed_to for end in ends] == [("booking",)]

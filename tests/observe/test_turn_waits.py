"""A turn's latency, told apart by stage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, astuple, replace

from tests.support.scenario import Delays, Says, Scenario, play
from voicepipe.conversation.events import ReplyDone, ToolUse
from voicepipe.conversation.timing import Hop, TurnRecord, TurnSummary
from voicepipe.observe.turn_waits import TurnWaits, waits

NOTHING = dict.fromkeys(TurnWaits.__struct_fields__, 0.0)
HOPS: tuple[Hop, ...] = ("settle", "words", "prepare", "token", "phrase", "speech", "commit")


def record(**at_ms: float) -> TurnSummary:
    made = TurnRecord("turn_1", stamps={"voice_ended": 10.0})
    for hop, ms in at_ms.items():
        made.stamp(hop, 10.0 + ms / 1000)  # type: ignore[arg-type]
    return made.summary()


READY = {"settle": 60, "words": 70, "prepare": 70, "phrase": 100, "speech": 120, "commit": 140, "audible": 142}
"""A reply that was there before the turn was confirmed."""


@pytest.mark.parametrize(
    ("happened", "waited"),
    [
        ({}, {"endpointing": 140, "playout": 2}),
        (  # a slow recogniser, past the silence
            {"words": 400, "prepare": 400, "phrase": 405, "speech": 410, "commit": 400, "audible": 411},
            {"endpointing": 60, "asr": 340, "llm": 5, "tts": 5, "playout": 1},
        ),
        (  # words that came just before the silence was over
            {"words": 845, "prepare": 845, "phrase": 846, "speech": 848, "commit": 850, "audible": 851},
            {"endpointing": 850, "playout": 1},
        ),
        (  # a slow model and a slow voice
            {"phrase": 500, "speech": 800, "audible": 803},
            {"endpointing": 140, "llm": 360, "tts": 300, "playout": 3},
        ),
        ({"audible": 900}, {"endpointing": 140, "playout": 760}),
    ],
)
def test_each_wait_has_its_stage(happened: dict[str, float], waited: dict[str, float]) -> None:
    assert waits(record(**(READY | happened))) == TurnWaits(**(NOTHING | waited))


def test_behind_an_acknowledgement_it_is_that_which_is_waited_for() -> None:
    turn = replace(record(**(READY | {"audible": 900})), ladder="acknowledge")
    assert waits(turn) == TurnWaits(**(NOTHING | {"endpointing": 140, "acknowledgement": 780 - 20}))


@pytest.mark.parametrize(
    ("tools", "waited_ms"),
    [
        ([ToolUse("book", took=1000, at=300)], 1000),
        ([ToolUse("book", took=1000, at=300), ToolUse("check", took=100, at=400)], 1000),  # at the same time
        ([ToolUse("check", took=100, at=400), ToolUse("book", took=1000, at=450)], 1050),
        ([ToolUse("check", took=100, at=300), ToolUse("book", took=500, at=900)], 600),  # one after the other
        ([ToolUse("book", took=1000, at=40)], 900),  # no caller waits before the turn is over
        ([ToolUse("book", took=1200, at=-400, early=True)], 660),  # it only reads, and was begun while they spoke
        ([ToolUse("book", took=400, at=-400, early=True)], 0),
        ([ToolUse("book", at=1800)], 200),  # it went on while the reply was said
        ([ToolUse("book", took=1000, at=2500)], 0),  # after the first phrase
        ([ToolUse("unknown", took=0, at=300), ToolUse("untimed", took=5)], 0),
    ],
)
def test_tools_and_the_model_around_them_are_told_apart(tools: list[ToolUse], waited_ms: float) -> None:
    turn = replace(record(**(READY | {"phrase": 2000, "speech": 2020, "audible": 2021})), tool=True)
    parts = {"endpointing": 140, "tools": waited_ms, "llm": 1860 - waited_ms, "tts": 20, "playout": 1}
    assert waits(turn, tools) == TurnWaits(**(NOTHING | parts))


def test_what_was_not_timed_is_not_told_apart() -> None:
    assert waits(record(settle=60, commit=140)) is None
    assert waits(TurnSummary()) is None


MS = st.floats(0, 9000)
TOOLS = st.lists(st.builds(ToolUse, st.just("book"), took=st.none() | MS, at=st.none() | MS), max_size=4)


@given(st.fixed_dictionaries({}, optional={hop: st.floats(0, 5000) for hop in HOPS}), MS, TOOLS)
def test_the_parts_add_up_to_the_latency_and_none_is_negative(
    at: dict[str, float], audible: float, tools: list[ToolUse]
) -> None:
    turn = record(**at, audible=audible)
    if (parts := waits(turn, tools)) is not None:
        assert all(part >= 0 for part in astuple(parts))
        assert turn.turn_latency is not None and abs(sum(astuple(parts)) - turn.turn_latency) < 0.01


@pytest.mark.parametrize(
    ("slow", "to_blame"),
    [
        (Delays(settle_ms=600), "asr"),
        (Delays(first_token_ms=600), "llm"),
        (Delays(tts_ms=600), "tts"),
        (Delays(), "endpointing"),
    ],
)
@pytest.mark.virtual_time
async def test_of_a_whole_turn_the_slow_stage_is_to_blame(slow: Delays, to_blame: str) -> None:
    spoken = Scenario(about="A turn.", hears=["when are you open"], says=[Says(500, 1000)], length_ms=6000, delays=slow)
    [turn] = [event.record for _, event in (await play(spoken)).events if isinstance(event, ReplyDone)]
    parts = waits(turn)
    assert parts is not None
    of = asdict(parts)
    assert max(of, key=lambda stage: of[stage]) == to_blame, of

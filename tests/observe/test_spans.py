"""A turn's record as spans: when each stage ran, and what was waited for where one did not end."""

from dataclasses import replace
from typing import Any

import pytest

from voicepipe.conversation.events import ReplyDone, ReplyStatus, ToolUse
from voicepipe.conversation.timing import TurnSummary
from voicepipe.observe.last_turns import AskedTurn, FullTurn, full_turn
from voicepipe.observe.spans import SPECULATED, AnsweringModel, StageSpan, about_turn, stages

MODEL = AnsweringModel("vllm", "qwen")
ASKED = AskedTurn(1.0, "turn_1", "my name is Rumpelstiltskin", "rtc_1", "acme", "front-desk", number=3)
ANSWERED: dict[str, Any] = {
    "turn_latency": 350.0, "at_settle": 60.0, "at_words": 75.0, "at_prepare": 75.0, "at_token": 95.0,
    "at_phrase": 180.0, "at_speech": 340.0, "at_commit": 140.0, "at_audible": 350.0, "confident": True,
}  # fmt: skip


def turn(*tools: ToolUse, status: ReplyStatus = "completed", spoken: bool = True, **record: Any) -> FullTurn:
    asked = replace(ASKED, spoken=spoken)
    reply = ReplyDone("resp_1", status, record=TurnSummary(**record), tools=tools, input_tokens=900, output_tokens=40)
    return full_turn(asked, reply, 300)


def spans(full: FullTurn, over: float = 2000.0, model: AnsweringModel = MODEL) -> dict[str, StageSpan]:
    made = list(stages(full, over, model))
    return {stage.name: stage for stage in (*made, *(part for stage in made for part in stage.parts))}


def times(found: dict[str, StageSpan]) -> dict[str, tuple[float, float]]:
    return {name: (stage.begin, stage.end) for name, stage in found.items()}


def test_each_stage_lasts_from_one_stamp_to_the_next() -> None:
    assert times(spans(turn(**ANSWERED))) == {
        "endpointing": (0, 140), "asr": (60, 75), "chat qwen": (75, 180), "prefill": (75, 95), "decode": (95, 180),
        "tts": (180, 340), "playout": (340, 350), "speaking": (350, 2000),
    }  # fmt: skip


def test_what_began_before_the_turn_was_certain_was_a_speculation() -> None:
    found = spans(turn(**ANSWERED))
    ahead = {name: stage.attributes[SPECULATED] for name, stage in found.items() if SPECULATED in stage.attributes}
    assert ahead == {"asr": True, "chat qwen": True, "prefill": True, "decode": True, "tts": False}


def test_a_stage_that_did_not_happen_is_left_out() -> None:
    assert set(spans(turn(at_commit=140.0))) == {"endpointing"}
    assert spans(turn()) == {}


@pytest.mark.parametrize(
    ("gone", "last"),
    [
        (("at_words", "at_prepare", "at_token", "at_phrase", "at_speech", "at_audible"), "asr"),
        (("at_token", "at_phrase", "at_speech", "at_audible"), "prefill"),
        (("at_phrase", "at_speech", "at_audible"), "decode"),
        (("at_speech", "at_audible"), "tts"),
    ],
)
def test_of_a_missed_turn_the_stage_that_did_not_end_lasts_to_its_end(gone: tuple[str, ...], last: str) -> None:
    record = {name: at for name, at in ANSWERED.items() if name not in gone}
    found = times(spans(turn(status="failed", **record), 5000.0))
    assert found[last][1] == 5000 and "speaking" not in found


def test_the_model_is_asked_with_figures_and_without_words() -> None:
    asked = spans(turn(**ANSWERED))["chat qwen"].attributes
    assert asked == {
        SPECULATED: True, "gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm",
        "gen_ai.request.model": "qwen", "gen_ai.conversation.id": "rtc_1", "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 40,
    }  # fmt: skip
    nameless = spans(turn(**ANSWERED), model=AnsweringModel("frontdesk"))["chat"]
    assert "gen_ai.request.model" not in nameless.attributes


def test_tools_are_spans_and_so_is_the_model_around_them() -> None:
    tools = (ToolUse("book", took=50.0, at=100.0), ToolUse("look_up", took=None, at=160.0),
             ToolUse("later", took=5.0), ToolUse("fails", took=1.0, at=200.0, failed=True))  # fmt: skip
    found = spans(turn(*tools, **ANSWERED, tool=True))
    assert "decode" not in found and times(found)["tool_rounds"] == (95, 180)
    assert times(found)["execute_tool book"] == (100, 150)
    assert times(found)["execute_tool look_up"] == (160, 2000), "it goes on"
    assert "execute_tool later" not in found, "when it ran is not known"
    assert found["execute_tool book"].attributes[SPECULATED] is True
    assert found["execute_tool look_up"].attributes["voicepipe.tool.runs_on"] is True
    assert found["execute_tool fails"].attributes["error.type"] == "tool_failed"


def test_a_turn_tells_its_latency_and_what_was_waited_for() -> None:
    about = about_turn(turn(**ANSWERED, ladder="short", speculation="hit", discarded=1, discarded_ms=30.0))
    assert (about["voicepipe.turn.latency_ms"], about["voicepipe.turn.late"]) == (350.0, True)
    assert (about["voicepipe.turn.number"], about["voicepipe.turn.ladder"]) == (3, "short")
    assert about["voicepipe.wait.endpointing_ms"] == 140.0
    assert (about["voicepipe.speculation"], about["voicepipe.speculation.discarded_ms"]) == ("hit", 30.0)
    assert "error.type" not in about
    assert not any("Rumpelstiltskin" in str(value) for value in about.values())


def test_a_greeting_has_no_latency() -> None:
    about = about_turn(turn(spoken=False, **ANSWERED))
    assert about == {"voicepipe.turn.id": "turn_1", "voicepipe.turn.number": 3, "voicepipe.reply.status": "completed"}


@pytest.mark.parametrize(
    ("record", "why"),
    [({"refused": True, "broken": True}, "refused"), ({"broken": True}, "broken"), ({"ladder": "fallback"}, "late"),
     ({}, "failed")],
)  # fmt: skip
def test_why_a_turn_was_missed_is_one_of_few_words(record: dict[str, Any], why: str) -> None:
    assert about_turn(turn(status="failed", **record))["error.type"] == why

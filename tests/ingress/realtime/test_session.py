"""The session object: merging, mapping to settings and back, and what is refused."""

from typing import Any, Literal, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.realtime import SessionUpdatedEvent

from voicepipe.agent import Agent, ToolSpec
from voicepipe.call_settings import CallSettings, SemanticVad, ServerVad
from voicepipe.ingress.realtime.session import FASTEST, SLOWEST, Session
from voicepipe.ingress.wire_errors import WireError

AGENT = Agent("front-desk", instructions="Be brief.", voice="en-us")
Eagerness = Literal["low", "medium", "high", "auto"]

texts = st.text(max_size=20)
ms = st.integers(0, 5000)
detections = st.one_of(
    st.none(),
    st.builds(SemanticVad, st.sampled_from(get_args(Eagerness)), st.booleans(), st.booleans()),
    st.builds(ServerVad, st.floats(0, 1), ms, ms, st.none() | ms, st.booleans(), st.booleans()),
)
settings = st.builds(
    CallSettings,
    agent=st.just(AGENT),
    instructions=texts,
    written_instructions=st.just(AGENT.instructions),
    voice=texts,
    speed=st.floats(SLOWEST, FASTEST),
    tools=st.lists(st.builds(ToolSpec, texts.filter(bool), texts, st.just({"type": "object"})), max_size=3).map(tuple),
    tool_choice=st.sampled_from(["auto", "none", "required", "hours"]),
    modality=st.sampled_from(["audio", "text"]),
    max_tokens=st.none() | st.integers(1, 4096),
    turn_detection=detections,
)


def fresh() -> Session:
    return Session.of(CallSettings.of(AGENT), id="sess_1")


def shown(session: Session) -> dict[str, Any]:
    """As the client sees it; validated as openai's."""
    json = msgspec.json.decode(msgspec.json.encode(session))
    SessionUpdatedEvent.model_validate({"type": "session.updated", "event_id": "e", "session": json})
    return dict(json)


@given(settings)
def test_settings_and_session_say_the_same(settings: CallSettings) -> None:
    session = Session.of(settings, id="sess_1")
    assert session.settings(CallSettings.of(AGENT)) == settings
    assert session.updated(shown(session)) == session


@given(settings, settings)
def test_a_whole_session_replaces_another(old: CallSettings, new: CallSettings) -> None:
    target = Session.of(new, id="sess_1")
    updated = Session.of(old, id="sess_1").updated(shown(target))
    assert updated == target


@given(settings, st.sampled_from(["instructions", "tools", "audio", "max_output_tokens", "output_modalities"]))
def test_an_update_leaves_the_rest_alone(settings: CallSettings, name: str) -> None:
    base, other = fresh(), Session.of(settings, id="sess_1")
    updated = base.updated({"type": "realtime", name: shown(other)[name]})
    for field in base.__struct_fields__:
        assert getattr(updated, field) == getattr(other if field == name else base, field)


def detect(**fields: Any) -> dict[str, Any]:
    return {"audio": {"input": {"turn_detection": fields}}}


def hear(**fields: Any) -> dict[str, Any]:
    return {"audio": {"input": fields}}


BARE = detect(type="server_vad")
FUNCTION = {"type": "function", "name": "f"}
DETECTION = "audio.input.turn_detection"


@pytest.mark.parametrize(
    ("patch", "where", "value"),
    [
        ({}, "type", "realtime"),
        (hear(turn_detection=None), DETECTION, None),
        (hear(transcription=None), "audio.input.transcription", None),
        (hear(noise_reduction={"type": "near_field"}), "audio.input.noise_reduction", None),
        (hear(transcription={"model": "whisper-1"}), "audio.input.transcription.model", "whisper-1"),
        (detect(create_response=False), f"{DETECTION}.type", "semantic_vad"),
        (BARE, f"{DETECTION}.interrupt_response", True),
        (BARE, f"{DETECTION}.silence_duration_ms", 500),
        ({"audio": {"output": {"voice": {"id": "v1"}}}}, "audio.output.voice", "v1"),
        ({"audio": {"output": {"format": {"type": "audio/pcma"}}}}, "audio.output.format", {"type": "audio/pcma"}),
        ({"audio": {"input": {"format": {"rate": 24000}}}}, "audio.input.format.type", "audio/pcm"),
        ({"output_modalities": ["text", "audio"]}, "output_modalities", ["audio"]),
        ({"instructions": ""}, "instructions", ""),
        ({"instructions": None}, "instructions", "Be brief."),
        ({"tools": [], "tool_choice": FUNCTION}, "tool_choice", FUNCTION),
        ({"tracing": "auto", "prompt": {"id": "p"}, "include": ["x"], "truncation": {"type": "y"}}, "tracing", None),
        ({"reasoning": {"effort": "low"}, "parallel_tool_calls": False, "never_heard_of": 1}, "type", "realtime"),
        ({"model": "gpt-realtime", "id": "sess_2", "object": "x", "expires_at": 0}, "id", "sess_1"),
    ],
)  # fmt: skip
def test_updates_that_are_taken(patch: dict[str, Any], where: str, value: Any) -> None:
    found: Any = shown(fresh().updated(patch))
    for key in where.split("."):
        found = found[key]
    assert found == value


@pytest.mark.parametrize(
    ("patch", "code", "param"),
    [
        ({"type": "transcription"}, "invalid_value", "session.type"),
        ({"audio": {"input": {"format": {"type": "audio/pcm", "rate": 16000}}}}, "invalid_value",
         "session.audio.input.format.rate"),
        ({"audio": {"input": {"format": {"type": "audio/opus"}}}}, "invalid_value", "session.audio.input.format.type"),
        ({"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 2}}}}, "invalid_value",
         "session.audio.input.turn_detection.threshold"),
        ({"audio": 7}, "invalid_type", "session.audio"),
        ({"audio": {"output": {"voice": {"id": 7}}}}, "invalid_type", "session.audio.output.voice"),
        ({"audio": {"output": {"voice": ["a"]}}}, "invalid_type", "session.audio.output.voice"),
        ({"output_modalities": []}, "invalid_value", "session.output_modalities"),
        ({"output_modalities": ["video"]}, "invalid_value", "session.output_modalities[0]"),
        ({"tools": [{"type": "function"}]}, "missing_required_parameter", "session.tools[0].name"),
        ({"tools": [{"type": "mcp", "name": "m"}]}, "invalid_value", "session.tools[0].type"),
        ({"max_output_tokens": 0}, "invalid_value", "session.max_output_tokens"),
        ({"max_response_output_tokens": 9}, "unknown_parameter", "session.max_response_output_tokens"),
        ({"voice": "alloy"}, "unknown_parameter", "session.voice"),
    ],
)  # fmt: skip
def test_updates_that_are_refused(patch: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(WireError) as caught:
        fresh().updated(patch)
    assert (caught.value.code, caught.value.param) == (code, param)


def test_turned_off_detection_comes_back_whole() -> None:
    off = fresh().updated({"audio": {"input": {"turn_detection": None}}})
    back = off.updated({"audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "high"}}}})
    assert back.settings(CallSettings.of(AGENT)).turn_detection == SemanticVad("high")


def test_an_agent_faster_than_the_convention_allows_can_still_be_updated() -> None:
    fast = Session.of(CallSettings.of(msgspec.structs.replace(AGENT, speed=9.0)), id="s")
    assert fast.updated({"instructions": "x"}).audio.output.speed == FASTEST


def test_fields_that_are_not_ours_are_not_even_looked_at() -> None:
    class Many(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError("all of them are looked at")

    before = Session.of(CallSettings.of(Agent("a")), id="sess_1")
    assert before.updated({"audio": Many(x=1, output={"speed": 1.5})}).audio.output.speed == 1.5

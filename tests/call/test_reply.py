"""Replies: one that a client asks for while the one before still plays queues behind it, and one whose engine raises
what no engine should fails. In virtual time."""

import msgspec
import pytest

from tests.support.scenario import Delays, Does, Recording, Says, Scenario, load, play
from voicepipe.conversation.events import ItemTruncated, ReplyDone, ReplyStarted
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.realtime.translate import Translator

pytestmark = pytest.mark.virtual_time

OVER_MS = 1380
"""All of the first reply is with the line, and 200 ms of it are still to be heard."""
TWO = Scenario(
    about="The client answers its tool as soon as the reply that asked for it is over.",
    hears=["hm"],
    says=[],
    length_ms=5000,
    lead_ms=200,
    settings={"tools": ["book"]},
    replies={"a table": "One moment, please. call:book {}", "done": "It is booked."},
    does=[
        Does(480, "message", "a table"),
        Does(500, "respond"),
        Does(OVER_MS + 10, "output", "done"),
        Does(OVER_MS + 20, "respond"),
    ],
)


async def played(scenario: Scenario) -> tuple[Recording, int]:
    """The recording, and when the second reply began: within the last sound of the first."""
    recording = await play(scenario)
    assert recording.refused == []
    over = next(at for at, event in recording.events if isinstance(event, ReplyDone))
    began = [at for at, event in recording.events if isinstance(event, ReplyStarted)][1]
    assert over < began < over + 100
    return recording, round(began)


async def test_it_follows_without_a_gap_and_without_overlap() -> None:
    recording, _ = await played(TWO)
    line = recording.line
    ends = line.sent[0][0]
    for at, _ in line.sent:
        assert at <= ends, "a gap"
        assert ends - at <= 200 + 1e-6, "more than the lead"
        ends += 20
    assert line.played() == len(line.sent) * 320, "nothing was cleared"


async def test_the_wire_has_one_response_after_the_other() -> None:
    recording, _ = await played(TWO)
    translator = Translator(Session(id="sess_1", model="demo"), "conv_1", audio_in_events=True)
    types = [msgspec.to_builtins(wire)["type"] for _, event in recording.events for wire in translator(event)]
    message = [
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
    ]
    call = [
        "response.output_item.added",
        "conversation.item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "conversation.item.done",
    ]
    item = ["conversation.item.added", "conversation.item.done"]
    first = ["response.created", *message, *call, "response.done"]
    assert types == [*item, *first, *item, "response.created", *message, "response.done"]


async def test_a_backchannel_over_the_seam_ducks_both_and_cuts_neither() -> None:
    backchannel = msgspec.structs.replace(TWO, says=[Says(OVER_MS - 55, 160)])
    recording, began = await played(backchannel)
    quiet, loud = recording.ducked(began + 40)
    assert quiet is not None and quiet < began + 100, "the duck outlived the beginning of the second reply"
    assert loud is not None and loud < began + 700
    assert "reply completed" == [line for line in recording.story if line.startswith("reply")][1]


async def test_a_cut_takes_the_sound_before_a_reply_that_has_none() -> None:
    text = msgspec.structs.replace(
        TWO,
        hears=["stop please"],
        says=[Says(OVER_MS - 35, 400)],
        does=[*TWO.does[:-1], Does(OVER_MS + 20, "respond", modality="text")],
        delays=msgspec.structs.replace(TWO.delays, token_ms=0),
        config={"turn": {"cut_ms": 100, "pause_ms": 90}},
    )
    recording, began = await played(text)
    (cut,) = (event.audio_end_ms for _, event in recording.events if isinstance(event, ItemTruncated))
    assert 900 < cut < 1080
    first, second = [item for item in recording.call.items() if item.role == "assistant" and item.text][:2]
    assert (first.text, first.status) == ("One moment,", "incomplete")
    assert (second.text, second.status) == ("It is booked.", "completed")


async def test_a_client_that_truncates_the_first_ends_the_second() -> None:
    truncates = Does(OVER_MS + 60, "truncate_first", ms=700)
    recording, _ = await played(msgspec.structs.replace(TWO, does=[*TWO.does, truncates]))
    first, second = [item for item in recording.call.items() if item.kind == "message" and item.role == "assistant"]
    assert (first.text, first.audio_ms) == ("One moment,", 700)
    assert (second.text, second.audio_ms, second.status) == ("", 0, "incomplete")
    assert recording.story[-2:] == ["truncated at 700 ms", "ended: caller"]


async def test_a_defect_of_an_engine_ends_the_reply_and_not_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.scripted.EngineBusy", UnicodeError)
    scenario = load("guess_refused")
    again = msgspec.structs.replace(scenario.says[0], at_ms=7000)
    scenario = msgspec.structs.replace(
        scenario,
        says=[*scenario.says, again],
        hears=scenario.hears * 2,
        length_ms=14_000,
        delays=Delays(llm_fails=99),
        agent={"fallback": "Sorry."},
    )
    recording = await play(scenario)
    story = recording.story
    assert len([line for line in story if line.startswith("reply failed")]) == 2, story
    assert len([at for at in (recording.audible(0), recording.audible(7000)) if at is not None]) == 2, "fallbacks"
    assert story[-1] == "ended: caller"

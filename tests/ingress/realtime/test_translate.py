"""What clients are told of a turn: as its answer begins, what was prepared for it; as it ends, all."""

import json

import msgspec
import pytest

from tests.support.scenario import Says, Scenario, play
from voicepipe.conversation.events import ReplyDone, ReplyStarted
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.realtime.translate import METADATA_CHARS, RECORD_KEY, Translator

pytestmark = pytest.mark.virtual_time


async def test_a_turn_is_told_as_far_as_it_has_come() -> None:
    scenario = Scenario("a question", ["are you open"], [Says(500, 900)], 5000)
    recording = await play(scenario)
    translator = Translator(Session(id="s", model="m"), "conv_1", audio_in_events=True)
    told = []
    for _, event in recording.events:
        if isinstance(event, ReplyStarted | ReplyDone):
            (sent,) = translator(event)
            response = msgspec.to_builtins(sent)["response"]
            assert all(len(value) <= METADATA_CHARS for value in response["metadata"].values())
            told.append(json.loads(response["metadata"][RECORD_KEY]))
    begun, done = told
    assert begun["turn_id"] == done["turn_id"]
    for known in ("at_words", "at_prepare", "at_phrase", "at_speech", "at_commit", "endpoint_reason"):
        assert begun[known] == done[known]
    assert "at_audible" not in begun and done["at_audible"] == done["turn_latency"]

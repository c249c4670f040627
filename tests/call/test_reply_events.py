"""A phrase that the voice speaks in several pieces: of over 300 letters, or because it streams."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.call.streaming import stream
from tests.support.scenario import Says, Scenario, load, play
from tests.support.scripted import ScriptedTts
from voicepipe.call.reply_events import ReplyEvents
from voicepipe.call.speech import Phrase
from voicepipe.engines.base import Speech

pytestmark = pytest.mark.virtual_time


async def test_it_is_heard_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ScriptedTts.speak

    async def in_pieces(tts: ScriptedTts, text: str, **how: Any) -> AsyncIterator[Speech]:
        async for speech in whole(tts, text, **how):
            half = speech.pcm.size // 2
            yield Speech(speech.pcm[:half])
            yield Speech(speech.pcm[half:])

    monkeypatch.setattr(ScriptedTts, "speak", in_pieces)
    says = [Says(500, 1000), Says(8000, 1000)]
    replies = {"hello": "We are open from noon to ten.", "and again": "Of course."}
    about, agent = "Two questions.", {"greeting": ""}
    scenario = Scenario(about, list(replies), says, 14_000, replies=replies, agent=agent)
    story = (await play(scenario)).story
    assert [line for line in story if line.startswith("agent")] == [
        "agent (completed): We are open from noon to ten.",
        "agent (completed): Of course.",
    ], story


@pytest.mark.parametrize("file", ["barge_in", "cut_in_repaired", "client_truncates", "cut_after_its_end_was_sent"])
async def test_of_a_voice_that_streams_a_caller_has_heard_what_was_said(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All words used to be told with the first piece, and so counted as heard by who interrupted the second one."""
    scenario = load(file)
    expected = (await play(scenario)).story
    stream(monkeypatch)
    assert (await play(scenario)).story == expected


def test_a_piece_that_ends_with_a_point_ends_no_sentence_if_the_next_one_goes_on() -> None:
    """Who interrupted after "at seven p.m." counted as told of a tool's result."""
    ends: list[int] = []
    delivery = SimpleNamespace(says=lambda answer, heard: ends.extend(heard))
    reply_context: Any = SimpleNamespace(delivery=delivery, context=None, order=None, record=None, gave_up=False)
    said, sound = ReplyEvents(reply_context, "resp_1"), np.zeros(100, np.int16)
    said.speaks(Phrase("", sound, (("seven", 40), ("p.m.", 90)), more=True), 0)
    said.speaks(Phrase("", sound, (("on", 50),), more=True), 100)
    assert not ends
    said.speaks(Phrase("", sound, (("Friday.", 80),)), 200)
    assert ends == [280]
    said.speaks(Phrase("", sound, (("Good.", 30),), more=True), 300)
    said.speaks(Phrase("", sound, (("Bye.", 30),)), 400)
    assert ends == [280, 330, 430]

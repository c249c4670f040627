"""A phrase that the voice speaks in several pieces: of over 300 letters, or because it streams."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.support.scenario import Says, Scenario, load, play
from voicepipe.call.playout import Playout
from voicepipe.call.reply_events import ReplyEvents
from voicepipe.call.speech import Phrase, PhraseSpeaker
from voicepipe.engines.base import Speech, Word
from voicepipe.engines.scripted import ScriptedTts

pytestmark = pytest.mark.virtual_time
STREAMED = 3840
"""Samples of a piece: 0.16 s."""


def stream(monkeypatch: pytest.MonkeyPatch, piece_s: float = 0.0) -> None:
    """The scripted voice streams; it takes so long for a piece."""
    whole = ScriptedTts.speak

    async def in_pieces(tts: ScriptedTts, text: str, **how: Any) -> AsyncIterator[Speech]:
        async for speech in whole(tts, text, **how):
            for at in range(0, speech.pcm.size, STREAMED):
                await asyncio.sleep(piece_s)
                end = min(at + STREAMED, speech.pcm.size)
                words = tuple(Word(word.text, word.end - at) for word in speech.words if at < word.end <= end)
                yield Speech(speech.pcm[at:end], words, more=end < speech.pcm.size)

    monkeypatch.setattr(ScriptedTts, "speak", in_pieces)


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


async def test_an_answer_that_comes_while_an_acknowledgement_is_made_does_not_fall_into_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Piece by piece: the caller heard "One mom-", then the answer, and its pieces in turn with "-ent please"."""
    put, stand_ins = Playout.put, list[bool]()

    async def noted(playout: Playout, phrase: Phrase) -> None:
        stand_ins.append(phrase.stand_in)
        await put(playout, phrase)

    async def keeps_nothing(*_: object, **__: object) -> None: ...

    stream(monkeypatch, piece_s=0.05)
    monkeypatch.setattr(Playout, "put", noted)
    monkeypatch.setattr(PhraseSpeaker, "keep", keeps_nothing)
    scenario = load("late_model")
    late = msgspec.structs.replace(scenario.delays, first_token_ms=900)
    agent = {"acknowledgement": "One moment please while I have a look at that."}
    await play(msgspec.structs.replace(scenario, delays=late, agent=agent))
    assert not any(stand_ins[stand_ins.index(False) :])


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

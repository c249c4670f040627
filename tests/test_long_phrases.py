"""A phrase that the voice speaks in several pieces, as it does one of over 300 letters."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.scenario import Says, Scenario, play
from voicepipe.engines.base import Speech
from voicepipe.engines.scripted import ScriptedTts

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

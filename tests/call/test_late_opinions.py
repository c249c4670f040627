"""A turn model that judges slowly, in virtual time."""

import asyncio

import pytest

from tests.support.scenario import Delays, Says, Scenario, play
from voicepipe.engines.scripted import ScriptedTurnModel

pytestmark = pytest.mark.virtual_time


async def test_once_a_turn_is_over_nobody_is_asked_any_more_whether_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model would compute beside the one that answers, and for nothing."""
    asked, given_up = [], []
    complete = ScriptedTurnModel.complete

    async def slowly(model: ScriptedTurnModel) -> float:
        asked.append(model)
        try:
            return await complete(model)
        except asyncio.CancelledError:
            given_up.append(model)
            raise

    monkeypatch.setattr(ScriptedTurnModel, "complete", slowly)
    question = "what are your opening hours"
    recording = await play(
        Scenario(about="", hears=[question], says=[Says(500, 1400)], length_ms=8000, voice_complete=0.9,
                 delays=Delays(voice_complete_ms=4000), replies={question: "From noon to ten."})
    )  # fmt: skip
    assert "agent (completed): From noon to ten." in recording.story
    assert len(asked) == len(given_up) > 0

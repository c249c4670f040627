"""Text becomes phrases, and phrases speech. In virtual time."""

import msgspec
import pytest

from tests.call.streaming import stream
from tests.support.scenario import Says, Scenario, load, play
from voicepipe.call.playout import Playout
from voicepipe.call.speech import Phrase, PhraseSpeaker

pytestmark = pytest.mark.virtual_time


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


async def test_a_text_that_is_given_is_said_sentence_by_sentence_and_not_by_the_model() -> None:
    greeting = "Good day. This is the front desk. How may I help you?"
    recording = await play(Scenario("", [], [], 6000, agent={"greeting": greeting}))
    assert [text.strip() for text in recording.tts.spoken if text.strip() in greeting] == [
        "Good day.", "This is the front desk.", "How may I help you?",
    ]  # fmt: skip
    assert recording.llm.prompts == [] and f"agent (completed): {greeting}" in recording.story


async def test_a_reply_in_text_is_not_given_to_the_voice() -> None:
    scenario = Scenario("", ["hello"], [Says(500, 600)], 5000, replies={"hello": "We are open."},
                        settings={"modality": "text"})  # fmt: skip
    recording = await play(scenario)
    assert "agent (completed): We are open." in recording.story
    assert "We are open." not in recording.tts.spoken and recording.audible(0) is None

"""The agent's side of a call. In virtual time."""

import asyncio
from dataclasses import replace

import msgspec
import pytest

from tests.support.scenario import Delays, Recording, Says, Scenario, play
from voicepipe.call.call import Call
from voicepipe.call_api import ReplyRequest
from voicepipe.conversation.events import Item, ReplyDone
from voicepipe.engines.base import Hypothesis
from voicepipe.engines.scripted import ScriptedAsrStream

pytestmark = pytest.mark.virtual_time

TYPED = Scenario(about="A client that types.", hears=["hello there"], says=[], length_ms=3000)


async def test_a_reply_answers_the_conversation_as_it_was_when_it_was_asked_for() -> None:
    async def adds_behind(call: Call) -> None:
        await asyncio.sleep(0.1)
        call.add_item(Item("one", text="one"), None)
        call.respond(ReplyRequest())
        call.add_item(Item("two", text="two"), None)

    recording = await play(TYPED, asks=adds_behind)
    assert [message.text for message in recording.llm.prompts[0].messages] == ["one"]


async def test_an_agent_with_no_excuse_for_a_turn_without_words_does_not_ask_the_model() -> None:
    speechless = Scenario(about="", hears=[""], says=[Says(500, 2000)], length_ms=8000,
                          agent={"not_understood": [], "fallback": ""})  # fmt: skip
    recording = await play(speechless)
    assert recording.llm.prompts == [] and "reply completed" in recording.story


def prepared(recording: Recording) -> list[str]:
    """Of each reply to a turn: whether it had been prepared to the same words."""
    return [event.record.speculation for _, event in recording.events if isinstance(event, ReplyDone)]


async def test_a_reply_that_was_prepared_to_the_same_words_is_the_one_that_is_heard() -> None:
    spoken = msgspec.structs.replace(TYPED, says=[Says(500, 800)], length_ms=5000)
    recording = await play(spoken)
    assert prepared(recording) == ["hit"]
    assert [prompt.speculative for prompt in recording.llm.prompts][-1] is True


async def test_words_that_come_late_and_are_others_than_the_guess_are_in_the_prompt_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They end the turn at once, before the task of their reply has begun."""
    guessed = ScriptedAsrStream.settle

    async def and_one_more(stream: ScriptedAsrStream) -> Hypothesis:
        hypothesis = await guessed(stream)
        return replace(hypothesis, text=f"{hypothesis.text} again")

    monkeypatch.setattr(ScriptedAsrStream, "settle", and_one_more)
    spoken = msgspec.structs.replace(TYPED, says=[Says(500, 800)], length_ms=5000, delays=Delays(settle_ms=400))
    recording = await play(spoken)
    assert [[message.text for message in prompt.messages] for prompt in recording.llm.prompts][-1] == [
        "hello there again"
    ]


async def test_a_turn_without_words_is_answered_by_each_excuse_in_turn() -> None:
    scenario = msgspec.structs.replace(
        TYPED, hears=["", "", ""], says=[Says(500 + 4000 * n, 1200) for n in range(3)], length_ms=14_000,
        agent={"not_understood": ["Pardon?", "Once more?"]},
    )  # fmt: skip
    story = (await play(scenario)).story
    assert [line for line in story if line.startswith("agent")] == [
        "agent (completed): Pardon?", "agent (completed): Once more?", "agent (completed): Pardon?",
    ]  # fmt: skip


async def test_a_reply_queues_behind_the_last_sound_of_the_one_before() -> None:
    async def asks(call: Call) -> None:
        speaking = call._speaking
        await asyncio.sleep(0.1)
        speaking.say("One.")
        while speaking.making:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert speaking.reply, "its last sound is still heard"
        speaking.say("Two.")

    recording = await play(msgspec.structs.replace(TYPED, lead_ms=200), asks=asks)
    said = [line for line in recording.story if line.startswith("agent")]
    assert said == ["agent (completed): One.", "agent (completed): Two."]

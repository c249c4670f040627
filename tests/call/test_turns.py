"""Whose turn it is, and replies to words that change. In virtual time."""

import asyncio

import pytest

from tests.support.scenario import Says, Scenario, load, play
from voicepipe.call.call import Call
from voicepipe.call.turns import ACTIONS
from voicepipe.call_api import ReplyRequest
from voicepipe.conversation.events import Item
from voicepipe.turn.facts import Action

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize("ms", [0, 2000])
async def test_a_speculation_that_rests_on_words_which_nobody_heard_is_made_anew(ms: int) -> None:
    async def truncates(call: Call) -> None:
        await asyncio.sleep(0.05)
        call.add_item(Item("q", text="what"), None)
        call.respond(ReplyRequest())
        await asyncio.sleep(2.83)
        [said] = [item for item in call.items() if item.role == "assistant"]
        call.truncate(said.id, min(ms, said.audio_ms or 0))  # While the reply to the turn is prepared.

    scenario = Scenario(about="", hears=["hello there"], says=[Says(2000, 800)], length_ms=6000,
                        replies={"what": "Good day."})  # fmt: skip
    recording = await play(scenario, asks=truncates)
    last = recording.llm.prompts[-1].messages
    assert [message.text for message in last if message.role == "assistant"] == (["Good day."] if ms else [])
    [answer] = [message.text for message in last if message.role == "user"][-1:]
    assert answer == "hello there" or answer == "what hello there"


def test_whatever_the_turn_machine_decides_can_be_done() -> None:
    assert set(ACTIONS) == set(Action)


async def test_what_a_fact_brings_about_comes_after_all_that_it_called_for() -> None:
    """A reply that is cut tells that it has ended, in the middle of what the voice called for."""
    recording = await play(load("barge_in"))
    story = recording.story
    cut = next(at for at, line in enumerate(story) if line.startswith("agent (incomplete)"))
    assert story[cut - 1] == "voice starts" and story[cut + 1] == "reply cancelled turn_detected"

"""What counts as told: the caller has heard a whole sentence of an answer that knew the result. In virtual time."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.support.booking import ASKED, BOOKED, HEARD, LONG, SPEAKS, Uses, scenario
from tests.support.scenario import Does, Says, play
from voicepipe.agent import Agent
from voicepipe.engines.base import Delta, Prompt
from voicepipe.engines.scripted import ScriptedLlm
from voicepipe.errors import EngineDead
from voicepipe.turn.prompt import ToolCall

pytestmark = pytest.mark.virtual_time


class BreaksOff(ScriptedLlm):
    """Tells a tool's result in part once; then nothing more comes, or its server dies."""

    raises = False

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        results = [made for made in self.prompts if made.messages[-1].role == "tool"]
        async for delta in super().generate(prompt):
            yield delta
            if not results and prompt.messages[-1].role == "tool" and "seven" in str(delta):
                if self.raises:
                    raise EngineDead("the model's server is gone")
                await asyncio.Event().wait()


IN_PART = "Your table for two people is booked at seven tonight by the window of our house."
"""Of which a first phrase is said before it breaks off."""


@pytest.mark.parametrize("modality", ["audio", "text"])
@pytest.mark.parametrize("raises", [False, True])
async def test_a_telling_that_breaks_off_in_the_fallback_tells_nothing(
    raises: bool, modality: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller is told of it afterwards."""
    monkeypatch.setattr(BreaksOff, "raises", raises)
    monkeypatch.setattr("tests.support.scenario.ScriptedLlm", BreaksOff)
    uses = Uses(0.5)
    replies = {ASKED: "call:book {}", "please": "call:book {}", BOOKED: IN_PART}
    changes = {"settings": {"modality": modality}, "length_ms": 30_000}
    recording = await play(scenario(replies=replies, **changes), uses)
    assert any("table" in line and Agent("any").fallback in line for line in recording.story)
    assert uses.names == ["book {}"]
    assert any(line.startswith("agent (completed)") and IN_PART in line for line in recording.story)


async def test_words_that_bridge_another_tool_tell_nothing_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second tool runs after the first half of a sentence; who cuts in after "One moment." was told nothing."""
    monkeypatch.setattr("tests.support.scenario.ScriptedLlm", HalfTells)
    mail = {"name": "mail", "function": "m:f", "while_running": ["One moment."], "while_running_after_ms": 100}
    agent = {"tools": [{"name": "book", "function": "m:f"}, mail], "acknowledgement": ""}
    recording = await play(scenario(agent=agent, says=[SPEAKS, Says(9000, 1500)], length_ms=12_000), Uses(4.0))
    assert "reply cancelled turn_detected" in recording.story
    assert any("Your table" in line and "One moment." in line for line in recording.story)
    assert BOOKED in [errand.output for errand in recording.errands.untold()]


class HalfTells(ScriptedLlm):
    """Begins to tell a result, and calls another tool in the middle of the sentence."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        self.prompts.append(prompt)
        if prompt.messages[-1].text == BOOKED:
            yield "Your table for two people is booked, and "
            yield ToolCall("c2", "mail", "{}")
        elif prompt.messages[-1].role == "user":
            yield ToolCall("c1", "book", "{}")


async def test_what_a_client_says_its_caller_did_not_hear_was_not_told() -> None:
    replies = {ASKED: "call:book {}", "please": "call:book {}", BOOKED: LONG}
    does = [Does(HEARD, "truncate_last", ms=400)]
    uses = Uses(2.5)
    recording = await play(
        scenario(replies=replies, does=does, says=[SPEAKS, Says(12_000, 900)], length_ms=25_000), uses
    )
    assert uses.names == ["book {}"]
    assert recording.story.count(f"agent (completed): {LONG}") >= 1

"""Tools in calls: each that was begun is finished once, whatever became of its reply, and the caller is told of it:
they have heard a whole sentence of an answer that knew the result. In virtual time."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.support.scenario import Delays, Does, Says, play
from tests.support.scripted import ScriptedLlm
from tests.support.tools import (
    ASKED,
    BOOKED,
    CUT,
    HEARD,
    LONG,
    SPEAKS,
    TOLD,
    Uses,
    last_prompt,
    scenario,
    tools_of,
)
from voicepipe.agent import Agent
from voicepipe.base.errors import EngineDead, OutcomeUnknown, ToolError
from voicepipe.call.reply_writer import TOOL_ROUNDS
from voicepipe.conversation.prompt import ToolCall
from voicepipe.engines.base import Delta, Prompt

pytestmark = pytest.mark.virtual_time


# --- each is finished once


async def test_a_tool_whose_reply_was_cancelled_is_finished_once_and_told_of() -> None:
    uses = Uses()
    recording = await play(scenario(does=[Does(2800, "cancel")]), uses)
    assert uses.names == uses.done == ["book {}"]
    assert "reply cancelled client_cancelled" in recording.story
    assert TOLD in recording.story[recording.story.index("reply cancelled client_cancelled") :]
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]
    assert last_prompt(recording) == [f"user: {ASKED}", "calls book", f"tool: {BOOKED}"]


@pytest.mark.parametrize("takes_s", [0.1, 0.9, 3.0])
async def test_a_caller_who_goes_on_does_not_have_it_done_twice(takes_s: float) -> None:
    """0.6 s after the last word: the turn is reopened, and the model asks for the same again."""
    uses = Uses(takes_s)
    recording = await play(scenario(says=[SPEAKS, Says(2500, 800)]), uses)
    assert "reply cancelled turn_detected" in recording.story
    assert uses.names == uses.done == ["book {}"]
    assert recording.story.count(TOLD) == 1
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]


async def test_what_was_told_may_be_done_again_and_a_server_knows_it_for_a_new_use() -> None:
    uses, keys = Uses(0.2), list[str]()
    hears = [ASKED, "and once more please", "the same again"]
    replies = {ASKED: "call:book {}", "the same again": "call:book {}", BOOKED: "It is booked."}
    says = [SPEAKS, Says(5500, 900), Says(9000, 900)]
    recording = await play(scenario(hears=hears, replies=replies, says=says, length_ms=14_000), uses, keys)
    assert uses.names == ["book {}", "book {}"] and len(set(keys)) == 2
    assert recording.story.count(TOLD) == 2


@pytest.mark.parametrize(("error", "same"), [(OutcomeUnknown("it took too long"), True), (ToolError("full"), False)])
async def test_a_repeat_of_what_nobody_knows_the_outcome_of_keeps_its_key(error: ToolError, same: bool) -> None:
    failures = [error]
    uses, keys = Uses(0.2, lambda call: failures.pop() if failures else None), list[str]()
    replies = {ASKED: "call:book {}", f"Error: {error}": "call:book {}", BOOKED: "It is booked."}
    recording = await play(scenario(replies=replies), uses, keys)
    assert uses.names == ["book {}", "book {}"] and (keys[0] == keys[1]) is same
    assert tools_of(recording) == ["calls book", f"-> Error: {error}", "calls book", f"-> {BOOKED}"]
    assert TOLD in recording.story


async def test_a_model_that_fails_after_it_is_asked_once_more() -> None:
    uses = Uses(1.0)
    # Of the prompts the first is good; all that hold the result fail.
    recording = await play(scenario(replies={ASKED: "call:book {}"}, delays=Delays(llm_stalls_after=1)), uses)
    assert uses.names == ["book {}"]
    assert len([prompt for prompt in recording.llm.prompts if prompt.messages[-1].text == BOOKED]) <= 2


async def test_a_tool_that_is_forced_is_called_once() -> None:
    uses = Uses(0.1)
    recording = await play(scenario(settings={"tool_choice": "required"}), uses)
    assert [prompt.tool_choice for prompt in recording.llm.prompts] == ["required", "auto"]
    assert TOLD in recording.story


async def test_a_tool_that_is_not_there_is_an_error_for_the_model() -> None:
    replies = {ASKED: "call:fly {}", "Error: there is no tool fly": "I cannot fly."}
    recording = await play(scenario(replies=replies), Uses())
    assert "agent (completed): I cannot fly." in recording.story
    assert not [line for line in recording.story if line.startswith("calls")]


async def test_a_reply_beside_the_conversation_leaves_nothing_in_it() -> None:
    uses = Uses(1.0)
    recording = await play(scenario(says=[], does=[Does(500, "respond_beside", ASKED), Does(900, "cancel")]), uses)
    assert uses.done == ["book {}"] and tools_of(recording) == []


async def test_a_reply_beside_the_conversation_that_asks_for_what_runs_gets_it_and_tells_nobody() -> None:
    """Nor is it told instead of the caller."""
    uses, keys = Uses(3.0), list[str]()
    recording = await play(scenario(does=[Does(2800, "cancel"), Does(2900, "respond_beside", ASKED)]), uses, keys)
    assert uses.names == uses.done == ["book {}"]
    assert recording.story.count(TOLD) == 2, "to the client, and to the caller"
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]


async def test_what_a_reply_beside_the_conversation_has_begun_becomes_the_conversation_s() -> None:
    uses = Uses(3.0)
    recording = await play(scenario(does=[Does(600, "respond_beside", ASKED), Does(900, "cancel")]), uses)
    assert uses.names == uses.done == ["book {}"]
    assert recording.story.count(TOLD) == 1
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]


# --- what counts as told


@pytest.mark.parametrize(("at_ms", "uses"), [(CUT, 1), (HEARD, 2)])
async def test_who_interrupts_before_a_sentence_was_heard_has_not_been_told(at_ms: int, uses: int) -> None:
    """The model asks for the same: for what the caller has not heard of it is the same errand, afterwards a new one."""
    used = Uses(2.5)
    replies = {ASKED: "call:book {}", "please": "call:book {}", BOOKED: LONG}
    recording = await play(scenario(replies=replies, says=[SPEAKS, Says(at_ms, 1500)], length_ms=25_000), used)
    assert "reply cancelled turn_detected" in recording.story
    assert len(used.names) == uses
    assert f"agent (completed): {LONG}" in recording.story


async def test_who_makes_a_noise_instead_is_told_once_more() -> None:
    agent = {"tools": [{"name": "book", "function": "m:f"}], "not_understood": ["What was that?"]}
    says, replies = [SPEAKS, Says(CUT, 1500)], {ASKED: "call:book {}", BOOKED: LONG}
    recording = await play(scenario(agent=agent, replies=replies, says=says, hears=[ASKED, ""], length_ms=25_000),
                           Uses(2.5))  # fmt: skip
    assert "reply cancelled turn_detected" in recording.story
    assert recording.story.count(f"agent (completed): {LONG}") == 1
    assert last_prompt(recording)[-3:] == ["assistant: What was that?", "calls book", f"tool: {BOOKED}"]


async def test_a_client_that_cancels_the_telling_is_not_told_unasked() -> None:
    used = Uses(2.5)
    replies = {ASKED: "call:book {}", BOOKED: LONG}
    recording = await play(scenario(replies=replies, does=[Does(CUT, "cancel")]), used)
    assert [line for line in recording.story if line.startswith("reply")] == ["reply cancelled client_cancelled"]
    (tool_run,) = recording.tool_runs.due()
    assert tool_run.output == BOOKED, "it is told with the next reply"


FALLBACK = f"agent (completed): {Agent('any').fallback}"


@pytest.mark.parametrize("says_after", ["", "call:book {}"])
@pytest.mark.parametrize("modality", ["audio", "text"])
async def test_who_hears_the_fallback_has_not_been_told(says_after: str, modality: str) -> None:
    """The model says nothing to the result, or asks again and again. The caller says the same once more, as they are
    asked to; nobody speaks to them unasked in between."""
    uses = Uses(0.5)
    replies = {ASKED: "call:book {}", "please": "call:book {}", BOOKED: says_after}
    says, settings = [SPEAKS, Says(9000, 900)], {"modality": modality}
    recording = await play(scenario(replies=replies, says=says, settings=settings, length_ms=20_000), uses)
    assert uses.names == uses.done == ["book {}"]
    assert [line for line in recording.story if line.startswith(("agent", "user"))] == [
        f"user: {ASKED}", FALLBACK, "user: please", FALLBACK,
    ]  # fmt: skip
    (tool_run,) = recording.tool_runs.due()
    assert tool_run.output == BOOKED


class Restless(ScriptedLlm):
    """Calls a tool with other arguments each time that it is asked."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        self.prompts.append(prompt)
        yield ToolCall(f"c{len(self.prompts)}", "book", f'{{"page": {len(self.prompts)}}}')


async def test_a_model_that_only_calls_tools_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.scenario.ScriptedLlm", Restless)
    uses = Uses(0.1)
    recording = await play(scenario(), uses)
    assert recording.story.count(FALLBACK) == 1
    assert len(recording.llm.prompts) == len(uses.done) == len(recording.tool_runs.due()) == TOOL_ROUNDS


class Stuck(ScriptedLlm):
    """Answers everything but a tool's result."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        if prompt.messages[-1].role == "tool":
            await asyncio.Event().wait()
        async for delta in super().generate(prompt):
            yield delta


@pytest.mark.parametrize("modality", ["audio", "text"])
async def test_the_fallback_of_a_late_answer_tells_nothing(modality: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.scenario.ScriptedLlm", Stuck)
    recording = await play(scenario(settings={"modality": modality}, length_ms=15_000), Uses(0.5))
    assert FALLBACK in recording.story
    (tool_run,) = recording.tool_runs.due()
    assert tool_run.output == BOOKED


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
    assert BOOKED in [tool_run.output for tool_run in recording.tool_runs.due()]


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

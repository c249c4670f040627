"""Conversations with tools in which callers cut in, go on, cancel and hang up at random moments, in virtual time.

Each tool that was begun runs exactly once, and the conversation says so. A slice runs in the suite; a thousand of them:

    TOOL_CONVERSATIONS=1000 pytest tests/call/test_tools_at_random.py
"""

import asyncio
import os
import random
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.scenario import Delays, Does, Mutes, Presses, Recording, Says, Scenario, play
from tests.support.scripted import ScriptedLlm, pause, tokens
from voicepipe.agent import Tool
from voicepipe.base.errors import EngineDead, OutcomeUnknown, ToolError
from voicepipe.conversation.events import ReplyDone, ReplyText
from voicepipe.conversation.prompt import Message, ToolCall
from voicepipe.engines.base import Delta, Prompt

pytestmark = pytest.mark.virtual_time
NUMBER = int(os.environ.get("TOOL_CONVERSATIONS", "12"))
TALK_MS = 24_000
QUIET_MS = 40_000
"""A caller who stays says nothing for so long at the end: every pending result has been told by then."""


class Forgetful(ScriptedLlm):
    """Calls one to three tools for whatever the caller says, as if it had not called them before, and numbers them anew
    each time; then tells every result that it has not said yet. Numbers stand for requests."""

    breaks_off = 0.0
    """How often it stops, or fails, after some words."""
    chance = random.Random(0)

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        self.prompts.append(prompt)
        if len(self.prompts) <= self._fails:
            raise ToolError("the model fails")
        goes_on = self.chance.randrange(1, 12) if self.chance.random() < self.breaks_off else None
        for number, token in enumerate(tokens(self._deltas(prompt))):
            await pause(self._token_ms)
            if number == goes_on:
                await self._break_off()
            yield token

    async def _break_off(self) -> None:
        if self.chance.random() < 0.5:
            raise EngineDead("the model's server is gone")
        await asyncio.Event().wait()

    def _deltas(self, prompt: Prompt) -> list[Delta]:
        said = " ".join(message.text for message in prompt.messages if message.role == "assistant")
        news = [message.text for message in prompt.messages if message.role == "tool" and message.text not in said]
        last = prompt.messages[-1]
        numbers = re.findall(r"\d+", last.text)
        if last.role != "user" or not numbers:
            return [" ".join(news) or "Yes?"]
        request = int(numbers[-1])
        calls: list[Delta] = [
            ToolCall(f"call_{n}", "book", f'{{"wish": "{request}-{n}"}}') for n in range(request % 3 + 1)
        ]
        return ["Let me see. ", *calls] if request % 2 else calls


@dataclass
class Use:
    """A tool that was begun."""

    request: str
    began: float
    ended: float | None = None
    failed: bool = False


@dataclass
class Uses:
    """The tools of one conversation, which count themselves."""

    chance: random.Random
    uses: list[Use] = field(default_factory=list)

    async def __call__(self, tool: Tool, call: ToolCall) -> str:
        loop = asyncio.get_running_loop()
        use = Use(call.arguments, loop.time())
        self.uses.append(use)
        await asyncio.sleep(self.chance.choice((0, 0.05, 0.3, 0.8, 1.5, 3, 6)))
        use.failed = self.chance.random() < 0.15
        assert use.ended is None
        use.ended = loop.time()
        number = self.uses.index(use)
        if use.failed:
            kind = self.chance.choice((ToolError, OutcomeUnknown))
            raise kind(f"f{number}.")
        return f"For you a table was booked, r{number}."


def conversation(chance: random.Random, *, stays: bool, **tool_keys: Any) -> Scenario:
    """`tool_keys`: keys of the tool."""
    at, says = 400, []
    while at < TALK_MS:
        for_ms = chance.choice((160, 300, 500, 900, 1400))
        says.append(Says(at, for_ms))
        at += for_ms + chance.choice((250, 400, 600, 800, 950, 1500, 3000, 6000))
    hears: list[str] = []
    for number in range(1, 60):
        hears.append(f"book {number}" if chance.random() < 0.6 or number == 1 else hears[-1].replace("book", "please"))
    asks = [Does(chance.randrange(1000, TALK_MS), "cancel") for _ in range(chance.randrange(5))]
    asks += [Does(chance.randrange(1000, TALK_MS), "respond") for _ in range(chance.randrange(2))]
    asks += [Does(chance.randrange(1000, TALK_MS), "truncate_last", ms=100) for _ in range(chance.randrange(2))]
    keys = [Presses(chance.randrange(1000, TALK_MS), "12#") for _ in range(chance.randrange(2))]
    texts = chance.choice((["I am looking.", "Still looking."], []))
    tool = {"name": "book", "function": "m:f", "while_running": texts, "while_running_every_ms": 1500}
    return Scenario(
        about="Anything.",
        hears=hears,
        says=says,
        length_ms=TALK_MS + QUIET_MS if stays else chance.randrange(2000, TALK_MS),
        lead_ms=chance.choice((0, 200)),
        agent={"tools": [tool | tool_keys], "greeting": chance.choice(("", "Good day, what can I do for you?"))},
        does=asks,
        keys=keys,
        mutes=[Mutes(chance.randrange(TALK_MS), 1500)] if chance.random() < 0.2 else [],
        delays=Delays(token_ms=chance.choice((2, 30)), tts_ms=chance.choice((5, 80))),
    )


def told(recording: Recording) -> str:
    return " ".join(event.delta for _, event in recording.events if isinstance(event, ReplyText))


def result(items: list[Any], index: int) -> str:
    """Of the call at `index`, which stands straight behind it."""
    output = items[index + 1]
    assert (output.kind, output.call_id) == ("function_call_output", items[index].call_id)
    return str(output.output)


def in_order(messages: tuple[Message, ...]) -> bool:
    """Every result stands straight behind its call, which no other one is taken for."""
    ids = [message.call.call_id for message in messages if message.call]
    pairs = zip((None, *messages), messages, strict=False)
    return len(set(ids)) == len(ids) and all(
        message.role != "tool" or (before and before.call and before.call.call_id == message.call_id)
        for before, message in pairs
    )


@pytest.mark.parametrize("seed", range(NUMBER))
@pytest.mark.parametrize("breaks_off", [0.0, 0.25])
async def test_each_begun_tool_ran_once_and_the_conversation_says_so(
    seed: int, breaks_off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.scenario.ScriptedLlm", Forgetful)
    monkeypatch.setattr(Forgetful, "breaks_off", breaks_off)
    monkeypatch.setattr(Forgetful, "chance", random.Random(seed))
    chance = random.Random(seed)
    stays = chance.random() < 0.6
    uses = Uses(chance)
    recording = await play(conversation(chance, stays=stays), uses)
    await asyncio.sleep(10)  # After callers who have hung up, too.

    assert all(use.ended is not None for use in uses.uses), "what was begun is finished"
    items = recording.tool_runs._history.items
    calls = [index for index, item in enumerate(items) if item.kind == "function_call"]
    results = [result(items, index) for index in calls]
    assert sorted(items[index].arguments for index in calls) == sorted(use.request for use in uses.uses)
    assert len({items[index].call_id for index in calls}) == len(calls)
    assert len(set(results)) == len(results) == sum(item.kind == "function_call_output" for item in items)
    assert all(in_order(prompt.messages) for prompt in recording.llm.prompts)
    _begun_again_only_if_told(recording, uses)
    if not stays or breaks_off or silenced(recording):
        return
    assert not any(tool_run.due for tool_run in recording.tool_runs._tool_runs)
    if not recording.scenario.does and not recording.scenario.keys:
        heard = told(recording)
        numbers = [number for said in results for number in re.findall(r"[rf]\d+\.", said)]
        assert len(numbers) == len(results)
        assert not [number for number in numbers if number not in heard], "the caller was told what came of each"


@pytest.mark.parametrize("seed", range(NUMBER))
async def test_of_tools_that_only_read_the_conversation_has_those_that_answers_used(
    seed: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And nothing of the others."""
    monkeypatch.setattr("tests.support.scenario.ScriptedLlm", Forgetful)
    monkeypatch.setattr(Forgetful, "chance", random.Random(seed))
    chance = random.Random(seed)
    stays, uses = chance.random() < 0.6, Uses(chance)
    recording = await play(conversation(chance, stays=stays, reads_only=True), uses)
    caplog.clear()
    await asyncio.sleep(10)
    items = recording.tool_runs._history.items
    results = [result(items, index) for index, item in enumerate(items) if item.kind == "function_call"]
    assert len(set(results)) == len(results) == sum(item.kind == "function_call_output" for item in items)
    assert all(in_order(prompt.messages) for prompt in recording.llm.prompts)
    dones = [event for _, event in recording.events if isinstance(event, ReplyDone)]
    dropped = sum(done.record.tools_dropped for done in dones)
    assert len(results) + dropped <= len(uses.uses)
    told_of = {use.result for done in dones for use in done.tools if use.took is not None}
    assert told_of <= set(results), "what clients read of is in the conversation"
    if stays and not silenced(recording):
        assert not any(tool_run.due for tool_run in recording.tool_runs._tool_runs)


def silenced(recording: Recording) -> bool:
    """A client, or the end of the call, ended the last reply: it would be told with the next."""
    ends = [event.reason for _, event in recording.events if isinstance(event, ReplyDone)]
    return ends[-1:] == ["client_cancelled"]


def _begun_again_only_if_told(recording: Recording, uses: Uses) -> None:
    """A second use of the same request begins only when the first has failed, or an answer that knew its
    result said a whole sentence."""
    began = recording.line.began
    texts = [(began + at / 1000, event.delta) for at, event in recording.events if isinstance(event, ReplyText)]
    ends = [at for at, text in texts if re.search(r"[rf]\d+\.", text)]
    for number, use in enumerate(uses.uses):
        for later in uses.uses[number + 1 :]:
            if later.request == use.request and not use.failed:
                assert use.ended is not None and use.ended <= later.began, "at the same time as the first"
                assert any(use.ended <= at <= later.began for at in ends), "no sentence that tells results was said"

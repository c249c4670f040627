"""Replies that come later: to turns that are heard meanwhile, and to what came of tools. In virtual time."""

import asyncio

import pytest

from tests.support.scenario import Does, Says, play
from tests.support.tools import (
    ASKED,
    BOOKED,
    SPEAKS,
    TOLD,
    Uses,
    last_prompt,
    scenario,
)
from voicepipe.agent import Tool
from voicepipe.conversation.events import ReplyDone
from voicepipe.conversation.history import MAX_CHARS
from voicepipe.conversation.prompt import ToolCall

pytestmark = pytest.mark.virtual_time


async def test_who_speaks_while_it_runs_is_answered_and_then_told() -> None:
    """The model reads that there is no result yet; the result stands at the end, where it is answered."""
    uses = Uses(6.0)
    hears, says = [ASKED, "are you still there"], [SPEAKS, Says(4000, 1000)]
    replies = {ASKED: "call:book {}", "are you still there": "Yes.", BOOKED: "It is booked."}
    recording = await play(scenario(hears=hears, says=says, replies=replies, length_ms=14_000), uses)
    second = recording.llm.prompts[-2].messages
    assert [(m.role, m.call is not None) for m in second] == [("user", False), ("assistant", True), ("user", False)]
    assert recording.story[-4:] == ["reply completed", TOLD, "reply completed", "ended: caller"]
    assert last_prompt(recording) == [f"user: {ASKED} are you still there", "assistant: Yes.", "calls book",
                                      f"tool: {BOOKED}"]  # fmt: skip


async def test_a_client_that_asks_for_replies_itself_gets_none_unasked() -> None:
    uses = Uses(1.0)
    does = [Does(500, "message", ASKED), Does(600, "respond"), Does(900, "cancel"), Does(4000, "respond")]
    quiet = scenario(says=[], does=does, settings={"turn_detection": "none"})
    recording = await play(quiet, uses)
    began = [at for at, event in recording.events if isinstance(event, ReplyDone)]
    assert len(began) == 2 and began[1] > 4000
    assert TOLD in recording.story and uses.names == ["book {}"]


LONGEST = MAX_CHARS * 4 // 9


async def test_results_that_the_prompt_has_no_room_for_are_told_in_further_replies() -> None:
    """Five of 8,000 characters. The reply that waits for them is cancelled, so none reads them all."""
    names = ["a", "b", "c", "d", "e"]

    async def use(tool: Tool, call: ToolCall) -> str:
        await asyncio.sleep(2)
        return f"{call.name} found ".ljust(LONGEST, ".")

    calls = " ".join(f"call:{name} {{}}" for name in names)
    replies = {ASKED: calls} | {f"{name} found ".ljust(LONGEST, "."): f"This is {name}." for name in names}
    agent = {"tools": [{"name": name, "function": "m:f"} for name in names], "acknowledgement": ""}
    recording = await play(
        scenario(agent=agent, replies=replies, says=[SPEAKS], does=[Does(2800, "cancel")], length_ms=20_000), use
    )
    told = recording.llm.prompts[1:]
    read = {message.text[0] for prompt in told for message in prompt.messages if message.role == "tool"}
    assert read == set(names), "every result was in a prompt"
    assert 2 <= len(told) <= len(names)
    ends = [event.status for _, event in recording.events if isinstance(event, ReplyDone)]
    assert ends == ["cancelled", *["completed"] * len(told)]
    assert not recording.tool_runs.due()


async def test_what_is_owed_waits_while_a_client_s_tool_runs() -> None:
    """The client asks for the next reply itself, which would meet one that nobody asked for."""
    uses = Uses(4.0)
    hears, says = [ASKED, "print it"], [SPEAKS, Says(3500, 900)]
    replies = {ASKED: "call:book {}", "print it": "call:print {}", "printed": "It is printed, and booked."}
    does = [Does(9000, "output", "printed"), Does(9010, "respond")]
    settings = {"tools": ["print"]}
    recording = await play(scenario(hears=hears, says=says, replies=replies, settings=settings, does=does), uses)
    assert recording.refused == []
    assert [line for line in recording.story if line.startswith("agent")] == [
        "agent (completed): It is printed, and booked."
    ]

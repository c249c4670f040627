"""One call from the answer to its end. In virtual time."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.support.scenario import Does, Says, Scenario, ScenarioLine, play
from tests.support.tools import (
    BOOKED,
    Uses,
    scenario,
    tools_of,
)
from voicepipe.agent import Tool
from voicepipe.call.control import CallController
from voicepipe.conversation.events import Item
from voicepipe.conversation.prompt import ToolCall
from voicepipe.line import SoundListener

pytestmark = pytest.mark.virtual_time


async def test_a_caller_who_hangs_up_does_not_stop_it() -> None:
    uses = Uses(3.0)
    recording = await play(scenario(length_ms=3000), uses)
    assert recording.story[-1] == "ended: caller" and uses.done == []
    await asyncio.sleep(5)
    assert uses.names == uses.done == ["book {}"]
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]


async def test_a_tool_that_is_over_just_as_the_call_ends_begins_no_reply() -> None:
    """Which would never end, and the call with it."""
    loop = asyncio.get_running_loop()
    for loop_turns in range(12):

        async def use(tool: Tool, call: ToolCall, turns: int = loop_turns, ends: float = loop.time() + 3) -> str:
            await asyncio.sleep(ends - loop.time())
            for _ in range(turns):
                await asyncio.sleep(0)
            return BOOKED

        async with asyncio.timeout(60):
            recording = await play(scenario(length_ms=3000, does=[Does(2800, "cancel")]), use)
        assert recording.story[-1] == "ended: caller"


def brief(**changes: Any) -> Scenario:
    base: dict[str, Any] = {"about": "", "hears": ["hello"], "says": [], "length_ms": 3000}
    return Scenario(**(base | changes))


async def test_the_greeting_comes_once_the_line_is_set_up() -> None:
    recording = await play(brief(agent={"greeting": "Good day."}))
    assert recording.story == ["agent (completed): Good day.", "reply completed", "ended: caller"]
    assert (recording.audible(0) or 1000) < 100
    late = await play(brief(agent={"greeting": "Good day."}, lead_ms=200))
    assert 300 <= (late.audible(0) or 0) < 400


@pytest.mark.parametrize("first", ["a caller who speaks", "a client who writes"])
async def test_nobody_is_greeted_who_was_first(first: str) -> None:
    async def writes(control: CallController) -> None:
        control.add_item(Item("typed", text="hello"), None)

    scenario = brief(agent={"greeting": "Good day."}, lead_ms=200)
    if first == "a caller who speaks":
        recording = await play(msgspec.structs.replace(scenario, says=[Says(0, 900)]))
    else:
        recording = await play(scenario, asks=writes)
    assert not any("Good day." in line for line in recording.story)


async def test_a_line_that_breaks_ends_the_call_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(line: ScenarioLine, listener: SoundListener) -> None:
        await asyncio.sleep(0.5)
        raise OSError("the socket is gone")

    monkeypatch.setattr(ScenarioLine, "listen", breaks)
    recording = await play(brief(agent={"greeting": "Good day. How may I help you today?"}))
    assert recording.story[-1].startswith("ended: error ") and "socket" not in recording.story[-1]
    assert recording.line.ended


async def test_the_model_may_hang_up_once_its_last_words_were_heard() -> None:
    scenario = brief(says=[Says(300, 600)], length_ms=9000, agent={"end_call": True},
                     replies={"hello": "Goodbye then. call:end_call {}"})  # fmt: skip
    recording = await play(scenario)
    assert recording.story[-1] == "ended: agent"
    assert "agent (completed): Goodbye then." in recording.story[-3]

"""One call from the answer to its end; what a client asks of it and takes back at once, or asks to do harm. In virtual
time."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.support.scenario import Does, Recording, Says, Scenario, ScenarioLine, play
from tests.support.tools import (
    BOOKED,
    Uses,
    scenario,
    tools_of,
)
from voicepipe.agent import Tool
from voicepipe.base.errors import ItemExists, ItemUnknown
from voicepipe.call.call import Call
from voicepipe.call_api import ReplyRequest
from voicepipe.conversation.events import Item, ItemAdded, SpeechStarted
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
    async def writes(call: Call) -> None:
        call.add_item(Item("typed", text="hello"), None)

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


# What a client asks.

TYPED = Scenario(about="A client that types.", hears=["hello there"], says=[], length_ms=3000)
SPOKEN = Scenario(about="A turn, in the middle of which the client asks.", hears=["hello there"], length_ms=6000,
                  says=[Says(1000, 800)])  # fmt: skip


async def takes_id(call: Call, item_id: str) -> None:
    with pytest.raises(ItemExists):
        call.add_item(Item(item_id, text="mine"), None)


async def test_a_client_that_takes_the_id_of_the_turn_in_progress_ends_no_call() -> None:
    tried: list[str] = []

    async def forestalls(call: Call) -> None:
        await asyncio.sleep(1.5)
        tried.extend(f"item_1_{n}" for n in range(1, 40))
        for item_id in tried:
            await takes_id(call, item_id)

    recording: Recording = await play(SPOKEN, asks=forestalls)
    [started] = [event for _, event in recording.events if isinstance(event, SpeechStarted)]
    [added] = [event for _, event in recording.events if isinstance(event, ItemAdded)]
    assert started.item_id == added.item.id and added.item.id in tried
    assert recording.story[-2:] == ["reply completed", "ended: caller"]


async def test_what_tools_on_the_server_found_cannot_be_read_by_guessing_ids() -> None:
    found: list[str] = []

    async def guesses(call: Call) -> None:
        await asyncio.sleep(2.5)
        for n in range(1, 60):
            for ask in (call.item, call.delete_item):
                try:
                    ask(f"item_1_{n}")
                except ItemUnknown:
                    continue
                found.append(f"item_1_{n}")

    scenario = Scenario(
        about="", hears=["hello there"], says=[Says(500, 500)], length_ms=6000, replies={"hello there": "call:look {}"},
        agent={"tools": [{"name": "look", "function": "a:b"}]},
    )  # fmt: skip
    recording = await play(scenario, asks=guesses)
    hidden = [item.id for item in recording.tool_runs._history.items if item.kind != "message"]
    assert len(hidden) == 2 and not set(hidden) & set(found)


async def test_what_is_asked_while_the_call_ends_ends_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its line takes a moment to hang up, as by SIP, where the far end is told so."""

    async def slowly(line: ScenarioLine) -> None:
        line.ended = True
        await asyncio.sleep(0.3)

    monkeypatch.setattr(ScenarioLine, "hang_up", slowly)

    async def asks(call: Call) -> None:
        await asyncio.sleep(2.1)
        call.press("1")
        call.respond(ReplyRequest())
        call.configure(msgspec.structs.replace(call.settings, speed=1.2))

    brief = Scenario(about="", hears=[], says=[], length_ms=2000)
    recording = await play(brief, asks=asks)
    assert recording.story[-1] == "ended: caller" and not recording.llm.prompts

"""The conversation as clients change it and are told of it. In virtual time."""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest

from tests.support.scenario import Says, Scenario, play
from tests.support.scripted import ScriptedLlm
from voicepipe.agent import Tool
from voicepipe.base.errors import ItemMismatch, ItemUnknown
from voicepipe.call.call import Call
from voicepipe.call_api import ReplyRequest, Size
from voicepipe.conversation.events import Item, ItemAdded, ItemTruncated, ReplyItemAdded
from voicepipe.conversation.history import MAX_CHARS, item_bytes
from voicepipe.conversation.prompt import ToolCall
from voicepipe.engines.base import Delta, Prompt

pytestmark = pytest.mark.virtual_time


class Asks(ScriptedLlm):
    """Looks up whatever it is asked, and says that it has."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        last = prompt.messages[-1]
        yield ToolCall("c", "look", f'{{"up": "{last.text}"}}') if last.role == "user" else "I have looked."


async def test_a_client_can_empty_a_conversation_in_which_tools_ran_on_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is bounded by what it sees, and of what it does not see only what a prompt may still hold is kept."""
    monkeypatch.setattr("tests.support.scenario.ScriptedLlm", Asks)
    sizes, hidden = list[tuple[Size, int]](), list[int]()

    async def looks(tool: Tool, call: ToolCall) -> str:
        return f"{call.arguments} {'found ' * 1000}"

    async def asks_and_deletes(call: Call) -> None:
        history = call._tool_runs._history
        for number in range(30):
            call.add_item(Item(f"asks_{number}", text=f"what is {number}?"), None)
            call.respond(ReplyRequest(modality="text"))
            await asyncio.sleep(0.5)
            sizes.append((call.size(), sum(map(item_bytes, call.items()))))
            hidden.append(len(history.items) - len(call.items()))
        for item in list(call.items()):
            call.delete_item(item.id)
        sizes.append((call.size(), 0))

    scenario = Scenario(about="Many tools.", hears=[], says=[], length_ms=17_000,
                        agent={"tools": [{"name": "look", "function": "m:f"}]})  # fmt: skip
    recording = await play(scenario, looks, asks=asks_and_deletes)
    assert recording.story.count("agent (completed): I have looked.") == 30
    assert [size.bytes for size, _ in sizes] == [visible for _, visible in sizes]
    assert [size.items for size, _ in sizes] == [*range(2, 62, 2), 0]
    assert max(hidden[10:]) <= 2 * (MAX_CHARS // 6000 + 1), "two items a tool"


async def test_no_event_names_an_item_that_a_client_cannot_see() -> None:
    """A tool of ours runs while the caller's next turn comes."""
    scenario = Scenario(
        about="", hears=["look it up", "are you there"], says=[Says(500, 900), Says(4000, 1000)], length_ms=12_000,
        replies={"look it up": "call:look {}"},
        agent={"tools": [{"name": "look", "function": "a:b"}], "acknowledgement": ""},
    )  # fmt: skip

    async def looks(tool: Tool, call: ToolCall) -> str:
        await asyncio.sleep(6)
        return "found"

    recording = await play(scenario, looks)
    added = [event for _, event in recording.events if isinstance(event, ItemAdded | ReplyItemAdded)]
    known: list[str | None] = [None]
    for event in added:
        assert event.previous_id == known[-1]
        known.append(event.item.id)
    assert len(added) >= 4


def silent(**changes: Any) -> Scenario:
    return Scenario(about="", hears=[], says=[], length_ms=3000, **changes)


async def test_only_what_went_to_the_line_as_sound_can_be_truncated_and_only_to_what_went() -> None:
    said: list[str] = []

    async def truncates(call: Call) -> None:
        await asyncio.sleep(2)
        call.add_item(Item("typed", text="hello"), None)
        [greeting] = [item for item in call.items() if item.role == "assistant"]
        for item_id, ms in (("typed", 0), (greeting.id, 60_000)):
            with pytest.raises(ItemMismatch) as mismatch:
                call.truncate(item_id, ms)
            said.append(str(mismatch.value))
        call.truncate(greeting.id, 0)
        assert call.item(greeting.id).text == ""

    recording = await play(silent(agent={"greeting": "Good day."}), asks=truncates)
    assert said[0] == "Item 'typed' has no audio that could be truncated."
    assert re.fullmatch(r"Audio content of \d+ms is already shorter than 60000ms", said[1])
    assert [event.audio_end_ms for _, event in recording.events if isinstance(event, ItemTruncated)] == [0]


async def test_of_so_many_spoken_items_it_is_remembered_how_they_went_to_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("voicepipe.call.conversation.REMEMBERED_REPLIES", 2)

    async def asks(call: Call) -> None:
        for number in range(3):
            call.add_item(Item(f"asks_{number}", text="hello"), None)
            call.respond(ReplyRequest())
            await asyncio.sleep(3)
        first, *others = [item.id for item in call.items() if item.role == "assistant"]
        with pytest.raises(ItemMismatch):
            call.truncate(first, 0)
        for item_id in others:
            call.truncate(item_id, 0)

    recording = await play(msgspec.structs.replace(silent(replies={"hello": "Good day."}), length_ms=10_000), asks=asks)
    assert recording.story.count("truncated at 0 ms") == 2


async def test_items_are_counted_and_measured_as_clients_see_them() -> None:
    async def adds(call: Call) -> None:
        assert call.size() == Size(0, 0)
        call.add_item(Item("b", text="é"), None)
        call.add_item(Item("a", text="one"), "root")
        assert [item.id for item in call.items()] == ["a", "b"]
        assert call.size().items == 2
        call.delete_item("a")
        assert call.size() == Size(1, item_bytes(Item("b", text="é")))
        with pytest.raises(ItemUnknown):
            call.delete_item("a")

    await play(silent(), asks=adds)

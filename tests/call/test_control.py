"""What a client asks of a call and takes back at once, or asks to do harm; and keys that a caller presses. In virtual
time."""

import asyncio

import msgspec
import pytest

from tests.support.scenario import Presses, Recording, Says, Scenario, ScenarioLine, play
from voicepipe.base.errors import ItemExists, ItemUnknown
from voicepipe.call.control import CallController
from voicepipe.call_api import ReplyRequest
from voicepipe.conversation.events import Item, ItemAdded, SpeechStarted
from voicepipe.turn.keypad import MOST

pytestmark = pytest.mark.virtual_time

TYPED = Scenario(about="A client that types.", hears=["hello there"], says=[], length_ms=3000)
SPOKEN = Scenario(about="A turn, in the middle of which the client asks.", hears=["hello there"], length_ms=6000,
                  says=[Says(1000, 800)])  # fmt: skip


async def takes_id(control: CallController, item_id: str) -> None:
    with pytest.raises(ItemExists):
        control.add_item(Item(item_id, text="mine"), None)


async def test_a_client_that_takes_the_id_of_the_turn_in_progress_ends_no_call() -> None:
    tried: list[str] = []

    async def forestalls(control: CallController) -> None:
        await asyncio.sleep(1.5)
        tried.extend(f"item_1_{n}" for n in range(1, 40))
        for item_id in tried:
            await takes_id(control, item_id)

    recording: Recording = await play(SPOKEN, asks=forestalls)
    [started] = [event for _, event in recording.events if isinstance(event, SpeechStarted)]
    [added] = [event for _, event in recording.events if isinstance(event, ItemAdded)]
    assert started.item_id == added.item.id and added.item.id in tried
    assert recording.story[-2:] == ["reply completed", "ended: caller"]


async def test_what_tools_on_the_server_found_cannot_be_read_by_guessing_ids() -> None:
    found: list[str] = []

    async def guesses(control: CallController) -> None:
        await asyncio.sleep(2.5)
        for n in range(1, 60):
            for ask in (control.item, control.delete_item):
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

    async def asks(control: CallController) -> None:
        await asyncio.sleep(2.1)
        control.press("1")
        control.respond(ReplyRequest())
        control.configure(msgspec.structs.replace(control.settings, speed=1.2))

    brief = Scenario(about="", hears=[], says=[], length_ms=2000)
    recording = await play(brief, asks=asks)
    assert recording.story[-1] == "ended: caller" and not recording.llm.prompts


async def test_one_task_waits_for_the_pause_after_all_keys() -> None:
    counted = list[int]()

    async def count(control: CallController) -> None:
        await asyncio.sleep(0.9)
        counted.append(len(asyncio.all_tasks()))
        await asyncio.sleep(0.7)
        counted.append(len(asyncio.all_tasks()))

    keys = "1" * (MOST - 1)
    turn = f"The caller pressed the keys {' '.join(keys)} on their telephone."
    scenario = Scenario(
        about="39 keys within 0.4 s, and 2 s of pause", hears=[], says=[], length_ms=6000,
        keys=[Presses(at_ms=1000, keys=keys, every_ms=10)], replies={turn: "Thank you."},
    )  # fmt: skip
    recording = await play(scenario, asks=count)
    before, while_pressed = counted
    assert while_pressed == before  # The one that presses has ended, the one that waits has begun.
    assert f"user: {turn}" in recording.story
    assert recording.story.count("reply completed") == 1


async def test_a_turn_that_ends_by_itself_takes_nothing_from_the_next() -> None:
    """The task that waited for the pause after the first keys is still there when the next are pressed."""
    keys = [Presses(at_ms=500, keys="12#"), Presses(at_ms=1800, keys="34", every_ms=1900)]
    scenario = Scenario(about="", hears=[], says=[], length_ms=9000, keys=keys)
    told = [line for line in (await play(scenario)).story if line.startswith("user: ")]
    assert told == [f"user: The caller pressed the keys {pair} on their telephone." for pair in ("1 2", "3 4")]

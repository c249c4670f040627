"""What a client asks of a call and takes back at once, or asks to do harm: in virtual time."""

import asyncio
from collections.abc import AsyncGenerator

import msgspec
import pytest

from tests.support.scenario import Recording, Says, Scenario, ScenarioLine, Transfers, play
from voicepipe.agent import Tool
from voicepipe.base.errors import ItemExists, ItemUnknown
from voicepipe.call.control import CallController
from voicepipe.call_api import ReplyRequest, Size
from voicepipe.conversation.events import Item, ItemAdded, ReplyDone, ReplyItemAdded, SpeechStarted
from voicepipe.conversation.history import MAX_CHARS, item_bytes
from voicepipe.conversation.prompt import ToolCall
from voicepipe.engines.base import Delta, Prompt
from voicepipe.engines.scripted import ScriptedLlm

pytestmark = pytest.mark.virtual_time

TYPED = Scenario(about="A client that types.", hears=["hello there"], says=[], length_ms=3000)
SPOKEN = Scenario(about="A turn, in the middle of which the client asks.", hears=["hello there"], length_ms=6000,
                  says=[Says(1000, 800)])  # fmt: skip


async def test_replies_that_are_replaced_at_once_cost_the_model_nothing() -> None:
    async def burst(control: CallController) -> None:
        await asyncio.sleep(0.1)
        control.add_item(Item("said", text="hello"), None)
        for _ in range(100):
            control.respond(ReplyRequest())
            control.cancel_reply(None)
        control.respond(ReplyRequest())

    recording = await play(TYPED, asks=burst)
    assert len(recording.llm.prompts) == 1
    assert [event.status for _, event in recording.events if isinstance(event, ReplyDone)].count("cancelled") == 100
    assert recording.story[-2] == "reply completed"


async def test_a_reply_answers_the_conversation_as_it_was_when_it_was_asked_for() -> None:
    async def adds_behind(control: CallController) -> None:
        await asyncio.sleep(0.1)
        control.add_item(Item("one", text="one"), None)
        control.respond(ReplyRequest())
        control.add_item(Item("two", text="two"), None)

    recording = await play(TYPED, asks=adds_behind)
    assert [message.text for message in recording.llm.prompts[0].messages] == ["one"]


@pytest.mark.parametrize("ms", [0, 2000])
async def test_a_speculation_that_rests_on_words_which_nobody_heard_is_made_anew(ms: int) -> None:
    async def truncates(control: CallController) -> None:
        await asyncio.sleep(0.05)
        control.add_item(Item("q", text="what"), None)
        control.respond(ReplyRequest())
        await asyncio.sleep(2.83)
        [said] = [item for item in control.items() if item.role == "assistant"]
        control.truncate(said.id, min(ms, said.audio_ms or 0))  # While the reply to the turn is prepared.

    scenario = Scenario(about="", hears=["hello there"], says=[Says(2000, 800)], length_ms=6000,
                        replies={"what": "Good day."})  # fmt: skip
    recording = await play(scenario, asks=truncates)
    last = recording.llm.prompts[-1].messages
    assert [message.text for message in last if message.role == "assistant"] == (["Good day."] if ms else [])
    [answer] = [message.text for message in last if message.role == "user"][-1:]
    assert answer == "hello there" or answer == "what hello there"


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

    async def asks_and_deletes(control: CallController) -> None:
        history = control._call._tool_runs._history
        for number in range(30):
            control.add_item(Item(f"asks_{number}", text=f"what is {number}?"), None)
            control.respond(ReplyRequest(modality="text"))
            await asyncio.sleep(0.5)
            sizes.append((control.size(), sum(map(item_bytes, control.items()))))
            hidden.append(len(history.items) - len(control.items()))
        for item in list(control.items()):
            control.delete_item(item.id)
        sizes.append((control.size(), 0))

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


async def test_an_agent_with_nothing_to_say_when_a_transfer_fails_does_not_ask_the_model() -> None:
    async def transfers(control: CallController) -> None:
        await asyncio.sleep(0.5)
        control.transfer("sip:ann@example.com")

    silent = Scenario(about="", hears=[], says=[], length_ms=4000, agent={"transfer_failed": ""},
                      transfers=Transfers(500, "busy"))  # fmt: skip
    recording = await play(silent, asks=transfers)
    assert recording.llm.prompts == [] and not [event for _, event in recording.events if isinstance(event, ReplyDone)]


async def test_an_agent_with_no_excuse_for_a_turn_without_words_does_not_ask_the_model() -> None:
    speechless = Scenario(about="", hears=[""], says=[Says(500, 2000)], length_ms=8000,
                          agent={"not_understood": [], "fallback": ""})  # fmt: skip
    recording = await play(speechless)
    assert recording.llm.prompts == [] and "reply completed" in recording.story


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

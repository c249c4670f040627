"""The tools that one answer of the model's calls: ours and the client's, and their ids. In virtual time."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest

from tests.support.scenario import Recording, Says, play
from tests.support.scripted import ScriptedLlm
from tests.support.tools import ASKED, BOOKED, CUT, LONG, SPEAKS, Uses, last_prompt, scenario, tools_of
from voicepipe.base.errors import ToolError
from voicepipe.conversation.events import ReplyDone, ReplyStarted, ToolUse
from voicepipe.conversation.prompt import ToolCall
from voicepipe.engines.base import Delta, Prompt
from voicepipe.engines.llm.chat import messages
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.realtime.translate import METADATA_CHARS, Translator

pytestmark = pytest.mark.virtual_time


async def test_all_tools_of_a_reply_run_at_once_and_it_knows_of_each() -> None:
    three = [{"name": name, "function": "m:f"} for name in ("a", "b", "c")]
    uses = Uses(2.0, lambda call: ToolError("b is closed") if call.name == "b" else None)
    replies = {ASKED: "Let me see. call:a {} call:b {} call:c {}", "c did {}": "That is all."}
    recording = await play(scenario(agent={"tools": three}, replies=replies), uses)
    assert uses.names == ["a {}", "b {}", "c {}"] and len({at for _, at in uses.begun}) == 1
    expected = ["calls a", "tool: a did {}", "calls b", "tool: Error: b is closed", "calls c", "tool: c did {}"]
    assert last_prompt(recording) == [f"user: {ASKED}", "assistant: Let me see. ", *expected]
    assert "agent (completed): Let me see. That is all." in recording.story
    messages = recording.tool_runs._history.messages("")
    assert [m.text or m.call_id or "call" for m in messages][-1] == "Let me see. That is all."


def results_of(recording: Recording) -> list[str]:
    """What the model's server reads of tools in the last prompt, in order: the call, and the result it has there."""
    chat = messages(recording.llm.prompts[-1])
    return [
        f"{one['tool_calls'][0]['function']['name']} -> {two['content']}"
        for one, two in pairwise(chat) if "tool_calls" in one and one["tool_calls"][0]["id"] == two["tool_call_id"]
    ]  # fmt: skip


async def test_a_model_that_numbers_its_calls_anew_in_each_answer_reads_each_result_at_its_call() -> None:
    hears, says = [ASKED, "and a taxi"], [SPEAKS, Says(6000, 900)]
    agent = {"tools": [{"name": name, "function": "m:f"} for name in ("book", "taxi")]}
    replies = {ASKED: "call:book {}", "and a taxi": "call:taxi {}", BOOKED: "Booked.", "taxi did {}": "It comes."}
    recording = await play(scenario(hears=hears, says=says, agent=agent, replies=replies), Uses(0.2))
    assert results_of(recording) == ["book -> book did {}", "taxi -> taxi did {}"]


class Numberless(ScriptedLlm):
    """All calls have the same id."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        async for delta in super().generate(prompt):
            yield replace(delta, call_id="call_0") if isinstance(delta, ToolCall) else delta


async def test_a_model_that_gives_all_its_calls_one_id_reads_each_result_at_its_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also at calls of what is not there, and of what has been begun already."""
    monkeypatch.setattr("tests.support.scenario.ScriptedLlm", Numberless)
    replies = {ASKED: "call:fly {} call:book {} call:book {}", "please": "call:book {}", BOOKED: LONG}
    says, uses = [SPEAKS, Says(CUT, 1500)], Uses(2.5)
    recording = await play(scenario(replies=replies, says=says, length_ms=25_000), uses)
    assert uses.names == ["book {}"]
    booked = f"book -> {BOOKED}"
    assert results_of(recording) == ["fly -> Error: there is no tool fly", booked, booked]


async def test_calls_of_a_client_s_tools_have_ids_of_their_own() -> None:
    """By which it gives us the results."""
    hears, says = [ASKED, "please"], [SPEAKS, Says(5000, 900)]
    replies = {ASKED: "call:show {}", "please": "call:show {}"}
    recording = await play(scenario(hears=hears, says=says, replies=replies, settings={"tools": ["show"]}), Uses())
    shown = [item.call_id for _, event in recording.events if isinstance(event, ReplyDone) for item in event.items]
    assert len(shown) == len(set(shown)) == 2 and shown[0] == "c1"


async def test_a_client_s_tools_are_passed_on_beside_ours() -> None:
    uses = Uses(1.0)
    replies = {ASKED: "call:show {} call:book {} call:print {}"}
    settings = {"tools": ["show", "print"]}
    recording = await play(scenario(replies=replies, settings=settings), uses)
    assert [line for line in recording.story if line.startswith(("calls", "reply"))] == [
        "calls show", "calls print", "reply completed",
    ]  # fmt: skip
    (done,) = [event for _, event in recording.events if isinstance(event, ReplyDone)]
    assert [item.name for item in done.items] == ["show", "print"]
    assert sorted(tools_of(recording)) == [f"-> {BOOKED}", "calls book", "calls print", "calls show"]


async def test_the_wire_has_each_call_of_a_client_s_tools_and_one_end() -> None:
    replies = {ASKED: "Let me see. call:show {} call:book {} call:print {}"}
    recording = await play(scenario(replies=replies, settings={"tools": ["show", "print"]}), Uses(0.5))
    translator = Translator(Session(id="sess_1", model="demo"), "conv_1", audio_in_events=True)
    wires = [msgspec.to_builtins(wire) for _, event in recording.events for wire in translator(event)]
    ends = [wire for wire in wires if wire["type"] == "response.output_item.done"]
    assert [(wire["output_index"], wire["item"].get("name", "said")) for wire in ends] == [
        (0, "said"), (1, "show"), (2, "print"),
    ]  # fmt: skip
    (done,) = [wire["response"] for wire in wires if wire["type"] == "response.done"]
    assert [item.get("name", "said") for item in done["output"]] == ["said", "show", "print"]
    assert [wire["name"] for wire in wires if wire["type"] == "response.function_call_arguments.done"] == [
        "show",
        "print",
    ]


async def test_a_reply_tells_which_tools_ran_for_it_how_long_and_what_came_of_them() -> None:
    uses = Uses(0.5, lambda call: ToolError("b is closed") if call.name == "b" else None)
    agent = {"tools": [{"name": name, "function": "m:f"} for name in ("a", "b")]}
    replies = {ASKED: 'call:a {"day":"Sunday"} call:b {} call:fly {}', "there is no tool fly": "Done."}
    recording = await play(scenario(agent=agent, replies=replies), uses)
    (done,) = [event for _, event in recording.events if isinstance(event, ReplyDone)]
    assert [(use.name, use.took, use.failed, use.arguments, use.result) for use in done.tools] == [
        ("a", 500.0, False, '{"day":"Sunday"}', 'a did {"day":"Sunday"}'),
        ("b", 500.0, True, "{}", "Error: b is closed"),
        ("fly", 0.0, True, "{}", "Error: there is no tool fly"),
    ]
    assert all(use.at and use.at > 0 for use in done.tools)


async def test_a_tool_that_runs_on_is_told_as_running() -> None:
    recording = await play(scenario(says=[SPEAKS, Says(CUT, 1500)], length_ms=25_000), Uses(9.0))
    first = next(event for _, event in recording.events if isinstance(event, ReplyDone) and event.tools)
    assert [(use.name, use.took, use.result) for use in first.tools] == [("book", None, "")]


LONG_USE = ToolUse("book", took=12.5, arguments='{"note":"' + 400 * '"' + '"}', result="é" * 500)


def wire_of(use: ToolUse, *, tells: bool) -> dict[str, str]:
    """The metadata of a response for which it ran."""
    translator = Translator(Session(id="s", model="m"), "conv_1", audio_in_events=True, tells_tools=tells)
    translator(ReplyStarted("resp_1", "turn_1", "audio"))
    (done,) = translator(ReplyDone("resp_1", "completed", tools=(use, use)))
    metadata: dict[str, str] = msgspec.to_builtins(done)["response"].get("metadata") or {}
    return metadata


@pytest.mark.parametrize("use", [ToolUse("book", took=12.5, arguments="{}", result="ok"), LONG_USE])
async def test_clients_are_told_in_metadata_of_the_length_that_the_convention_allows(use: ToolUse) -> None:
    metadata = wire_of(use, tells=True)
    assert set(metadata) == {"voicepipe.tool.1", "voicepipe.tool.2"}
    assert all(len(value) <= METADATA_CHARS for value in metadata.values())
    told = msgspec.json.decode(metadata["voicepipe.tool.1"], type=ToolUse)
    assert (told.name, told.took) == ("book", 12.5)
    assert use.arguments.startswith(told.arguments) and use.result.startswith(told.result) and told.result


async def test_who_holds_a_short_lived_key_is_not_told() -> None:
    assert wire_of(LONG_USE, tells=False) == {}

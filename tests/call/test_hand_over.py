"""Calls are handed over from agent to agent; tests/scenarios/hand_over*.toml have more, as whole conversations."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.support.scenario import Recording, Scenario, load, play
from voicepipe.agent import Tool
from voicepipe.call.call import Call
from voicepipe.conversation.events import AgentChanged, ReplyDone
from voicepipe.engines.base import ToolCall

pytestmark = pytest.mark.virtual_time

TOLD = "You are booking now: the caller was handed over to you. Go on where the conversation stands."
HANDS = 'call:hand_over {"to": "booking"}'
LOOK = {"name": "look", "function": "m:f"}


def story(replies: dict[str, str], **changes: Any) -> Scenario:
    agent = {"voice": "anna", "tools": [LOOK], "hand_over": {"booking": {"when": "Booking."}}}
    colleagues = {"booking": {"voice": "bert", "instructions": "You book."}}
    changed = {"agent": agent, "colleagues": colleagues, "replies": replies, **changes}
    return msgspec.structs.replace(load("hand_over"), **changed)


def voices(recording: Recording) -> list[tuple[str, str]]:
    return [(voice, text.strip()) for voice, text in recording.tts.voiced if text.strip()[-1:] in "?."]


async def test_a_tools_result_hands_over_and_the_other_agent_reads_it() -> None:
    async def look(tool: Tool, call: ToolCall) -> str:
        return '{"hand_over": "booking", "known": "Ann"}'

    recording = await play(story({"i want to book": "call:look", TOLD: "Hello Ann, for how many?"}), look)
    assert "agent (completed): Hello Ann, for how many?" in recording.story
    texts = [message.text for message in recording.llm.prompts[-2].messages]
    assert '{"hand_over": "booking", "known": "Ann"}' in texts, "the first agent is not asked again, the other one is"
    assert recording.story.index("now with: booking") < recording.story.index(
        "agent (completed): Hello Ann, for how many?"
    )


async def test_a_result_that_names_nobody_whom_the_agent_knows_is_a_result_like_others() -> None:
    async def look(tool: Tool, call: ToolCall) -> str:
        return '{"hand_over": "kitchen"}'

    recording = await play(story({"i want to book": "call:look", '{"hand_over": "kitchen"}': "It is done."}), look)
    assert "agent (completed): It is done." in recording.story
    assert not [line for line in recording.story if line.startswith("now with")]


async def test_a_tool_that_runs_on_while_the_caller_is_handed_over_is_told_by_the_other_agent() -> None:
    done = asyncio.Event()

    async def look(tool: Tool, call: ToolCall) -> str:
        await done.wait()
        return "free at eight"

    async def later() -> None:
        await asyncio.sleep(7)
        done.set()

    scenario = story(
        {"look it up": "call:look", "no booking": 'call:hand_over {"to": "booking"}', TOLD: "For how many?",
         "free at eight": "It is free at eight."},
        hears=["look it up", "no booking"], length_ms=14_000,
    )  # fmt: skip
    waits = asyncio.ensure_future(later())
    recording = await play(scenario, look)
    await waits
    assert "now with: booking" in recording.story, "\n".join(recording.story)
    assert "agent (completed): It is free at eight." in recording.story
    assert ("bert", "It is free at eight.") in voices(recording)


async def test_the_records_of_a_reply_name_the_hand_over() -> None:
    recording = await play(load("hand_over_with_words"))
    done = next(event for _, event in recording.events if isinstance(event, ReplyDone))
    assert [(use.name, use.failed) for use in done.tools] == [("hand_over", False)]
    changed = next(event for _, event in recording.events if isinstance(event, AgentChanged))
    assert (changed.settings.voice, changed.settings.instructions) == ("bert", "You book.")


async def test_first_sound_is_at_most_300_ms_later_than_without() -> None:
    delays = {"first_token_ms": 60, "token_ms": 8, "tts_ms": 80}
    handed = msgspec.structs.replace(
        load("hand_over"), delays=msgspec.convert(delays, type(load("hand_over").delays)), gap_ms=None
    )
    plain = msgspec.structs.replace(handed, replies={"i want to book": "For how many people?"})
    spoke = handed.says[0].at_ms + handed.says[0].for_ms
    with_it, without = [(await play(each)).audible(spoke) for each in (handed, plain)]
    assert with_it is not None
    assert without is not None
    assert with_it - without <= 300


BACK = "You are scenario now: the caller was handed over to you. Go on where the conversation stands."


async def test_a_tool_of_the_other_agent_that_has_the_same_name_is_another_tool() -> None:
    ran: list[str] = []

    async def look(tool: Tool, call: ToolCall) -> str:
        ran.append(tool.function)
        return f"seen by {tool.function}"

    scenario = story(
        {"i want to book": "call:look", "seen by m:f": HANDS, TOLD: "call:look", "seen by m:g": "It is free."},
        colleagues={"booking": {"tools": [{"name": "look", "function": "m:g"}]}},
    )
    recording = await play(scenario, look)
    assert ran == ["m:f", "m:g"] and "agent (completed): It is free." in recording.story


async def test_a_tool_of_an_agent_that_did_not_get_the_call_does_not_run() -> None:
    ran: list[str] = []

    async def book(tool: Tool, call: ToolCall) -> str:
        ran.append(tool.name)
        return "booked"

    scenario = story(
        {"i want to book": f"My colleague books that, one moment please. {HANDS}", TOLD: "call:book",
         "stop just your hours": "From noon to ten."},
        hears=["i want to book", "stop just your hours"], length_ms=9000,
        says=load("hand_over_cut").says, colleagues={"booking": {"tools": [{"name": "book", "function": "m:b"}]}},
    )  # fmt: skip
    recording = await play(scenario, book)
    assert "agent (completed): From noon to ten." in recording.story and not ran


async def test_who_gets_the_call_back_goes_on_with_the_settings_that_it_had() -> None:
    scenario = story(
        {"i want to book": HANDS, TOLD: "For how many?", "for two": 'call:hand_over {"to": "scenario"}', BACK: "Well."},
        agent={"instructions": "The caller is Ann, a member.", "hand_over": {"booking": {"when": "Booking."}}},
        colleagues={"booking": {"instructions": "You book.", "hand_over": {"scenario": {"when": "Else."}}},
                    "scenario": {"instructions": "As the file has it."}},
    )  # fmt: skip
    recording = await play(scenario)
    assert "agent (completed): Well." in recording.story
    assert recording.llm.prompts[-1].messages[0].text == "The caller is Ann, a member."


async def test_a_result_that_comes_late_hands_over_too() -> None:
    done = asyncio.Event()

    async def look(tool: Tool, call: ToolCall) -> str:
        await done.wait()
        return '{"hand_over": "booking"}'

    async def later() -> None:
        await asyncio.sleep(8)
        done.set()

    scenario = story(
        {"look it up": "call:look", "no wait": "I wait.", TOLD: "For how many?"},
        hears=["look it up", "no wait"], length_ms=14_000,
    )  # fmt: skip
    waits = asyncio.ensure_future(later())
    recording = await play(scenario, look)
    await waits
    assert recording.story.index("now with: booking") < recording.story.index("agent (completed): For how many?")


async def test_the_other_agent_is_asked_before_the_turn_is_confirmed_and_as_such() -> None:
    recording = await play(load("hand_over"))
    asked = [prompt.speculative for prompt in recording.llm.prompts if prompt.messages[0].text == "You book."]
    assert asked[0], "behind requests of confirmed turns"


async def test_who_gets_the_call_back_in_the_same_reply_has_what_its_client_had_set() -> None:
    scenario = story(
        {"i want to book": HANDS, TOLD: 'call:hand_over {"to": "scenario"}', "for two": "Well."},
        colleagues={"booking": {"hand_over": {"scenario": {"when": "Else."}}}, "scenario": {"instructions": "File."}},
    )

    async def change(call: Call) -> None:
        await asyncio.sleep(0.2)
        call.configure(msgspec.structs.replace(call.settings, instructions="The client's."))

    recording = await play(scenario, asks=change)
    assert [line for line in recording.story if line.startswith("now with")] == [
        "now with: booking",
        "now with: scenario",
    ]
    assert recording.llm.prompts[-1].messages[0].text == "The client's."

"""Functions that go on after their time limit: done once, and told of when they are over. In virtual time."""

import asyncio
import random
from itertools import pairwise

import pytest

from tests.support.scenario import Does, Says, play
from tests.support.tools import ASKED, BOOKED, LATE, SPEAKS, TOLD, Slow, last_prompt, late, tools_of
from voicepipe.base.errors import ToolError
from voicepipe.call.call import Call
from voicepipe.call_api import ReplyRequest
from voicepipe.conversation.events import Item, ReplyText

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize("error", [None, ToolError("there is no table left")])
async def test_what_comes_of_a_tool_after_its_time_limit_is_recorded_and_told(error: ToolError | None) -> None:
    """The caller was told that nobody knows; the conversation has one result, at its end, and it is told unasked."""
    uses = Slow(5.0, lambda call: error)
    result = f"Error: {error}" if error else BOOKED
    replies = {ASKED: "call:book {}", f"Error: {LATE}": "I do not know. Really.", result: "Now I do."}
    recording = await play(late(replies=replies), uses)
    assert uses.names == uses.done == ["book {}"]
    assert [line for line in recording.story if line.startswith("agent")] == [
        "agent (completed): I do not know. Really.", "agent (completed): Now I do.",
    ]  # fmt: skip
    assert tools_of(recording) == ["calls book", f"-> {result}"]
    assert last_prompt(recording) == [f"user: {ASKED}", "assistant: I do not know. Really.", "calls book",
                                      f"tool: {result}"]  # fmt: skip


@pytest.mark.parametrize("takes_s", [1.5, 2.5])
async def test_a_model_that_asks_again_for_what_still_runs_does_not_have_it_done_twice(takes_s: float) -> None:
    """The repeat has its result in time, or not either: it is told once."""
    uses = Slow(takes_s)
    replies = {ASKED: "call:book {}", f"Error: {LATE}": "call:book {}", BOOKED: "It is booked."}
    recording = await play(late(replies=replies), uses)
    assert uses.names == uses.done == ["book {}"]
    assert recording.story.count(TOLD) == 1
    assert tools_of(recording)[-2:] == ["calls book", f"-> {BOOKED}"]
    assert tools_of(recording).count(f"-> {BOOKED}") == 1


UNSURE = {ASKED: "call:book {}", "please": "call:book {}", f"Error: {LATE}": "I do not know. Really."}


async def test_what_comes_after_the_time_limit_of_a_repeat_as_well_is_told_once() -> None:
    """And whoever asks then is told of it: it is not begun again."""
    uses = Slow(6.5)
    hears, says = [ASKED, "please", "once more"], [SPEAKS, Says(5500, 900), Says(14_000, 900)]
    replies = UNSURE | {BOOKED: "It is booked.", "once more": "As I said."}
    recording = await play(late(hears=hears, says=says, replies=replies, length_ms=18_000), uses)
    assert uses.names == uses.done == ["book {}"]
    assert [line for line in recording.story if line.startswith("agent")] == [
        *["agent (completed): I do not know. Really."] * 2, TOLD, "agent (completed): As I said.",
    ]  # fmt: skip
    assert tools_of(recording)[-2:] == ["calls book", f"-> {BOOKED}"]
    assert tools_of(recording).count(f"-> {BOOKED}") == 1


async def test_what_was_repeated_beside_the_conversation_is_told_in_it() -> None:
    """The reply beside it has gone; the one that the conversation made still wants to know."""
    uses = Slow(6.0)
    does = [Does(6000, "respond_beside", ASKED)]
    recording = await play(late(replies=UNSURE | {BOOKED: "It is booked."}, does=does), uses)
    assert uses.names == uses.done == ["book {}"]
    assert recording.story.count(TOLD) == 1
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]


async def test_what_a_reply_beside_the_conversation_began_and_is_over_late_is_told_to_the_next_that_asks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once. The log has it from the moment in which it is over."""
    uses = Slow(3.0)
    does = [Does(at, "respond_beside", ASKED) for at in (500, 5000, 7000)]
    recording = await play(late(says=[], replies=UNSURE | {BOOKED: "It is booked."}, does=does), uses)
    assert f"a tool is over that no reply waits for: book: {BOOKED!r}" in caplog.text
    assert len(uses.names) == 2, "the second one reads it, the third one asks for another"
    assert recording.story.count(TOLD) == 1 and tools_of(recording) == []


async def test_what_is_over_late_beside_the_conversation_is_told_to_the_caller_who_wants_the_same() -> None:
    uses = Slow(2.0)
    does, says = [Does(500, "respond_beside", ASKED)], [Says(5000, 1400)]
    recording = await play(late(says=says, replies=UNSURE | {BOOKED: "It is booked."}, does=does), uses)
    assert uses.names == uses.done == ["book {}"]
    assert recording.story.count(TOLD) == 1 and recording.tool_runs.due() == []
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]
    assert last_prompt(recording) == [f"user: {ASKED}", "calls book", f"tool: {BOOKED}"]


async def test_what_comes_late_while_the_caller_is_told_that_nobody_knows_is_told_next() -> None:
    uses = Slow(1.1)
    replies = {ASKED: "call:book {}", f"Error: {LATE}": "I do not know. I am sorry.", BOOKED: "It is booked."}
    recording = await play(late(replies=replies), uses)
    assert [line for line in recording.story if line.startswith("agent")][-1] == TOLD
    assert recording.story.count(TOLD) == 1


async def test_what_comes_late_is_told_also_where_the_prompt_no_longer_reaches_back_to_it() -> None:
    """Its call and "nobody knows" are out of the prompt by then, and no client could delete them."""
    uses = Slow(8.0)

    async def talks_on(call: Call) -> None:
        await asyncio.sleep(6)
        for number in range(3):
            call.add_item(Item(f"long_{number}", text="and so on " * 1500), None)
            call.respond(ReplyRequest(modality="text"))
            await asyncio.sleep(0.2)
        assert len(call._tool_runs._history.items) == len(call.items())

    replies = UNSURE | {("and so on " * 1500).strip(): "Yes.", BOOKED: "It is booked."}
    recording = await play(late(replies=replies), uses, asks=talks_on)
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]
    assert recording.story.count(TOLD) == 1


@pytest.mark.parametrize("seed", range(8))
async def test_who_asks_at_random_moments_has_it_done_again_only_once_told(seed: int) -> None:
    """Each run has one result in the conversation, and the caller is told of each."""
    chance = random.Random(seed)
    uses = Slow(chance.choice((0.7, 1.3, 2.1, 3.7, 6.0, 9.5)))
    says, at = [SPEAKS], 1900
    while at < 20_000:
        at += chance.choice((600, 1500, 2500, 4000))
        says.append(Says(at, 900))
        at += 900
    replies = UNSURE | {BOOKED: "It is booked."}
    hears = [ASKED, *["please"] * len(says)]
    recording = await play(late(hears=hears, says=says, replies=replies, length_ms=45_000), uses)
    assert uses.names == uses.done and uses.done
    told = [at for at, event in recording.events if isinstance(event, ReplyText) and "booked" in event.delta]
    begun = [1000 * (at - recording.line.began) for _, at in uses.begun]
    assert all(any(a < heard < b for heard in told) for a, b in pairwise(begun)), "begun again before it was told"
    assert tools_of(recording).count(f"-> {BOOKED}") == len(uses.done)
    assert recording.tool_runs.due() == []

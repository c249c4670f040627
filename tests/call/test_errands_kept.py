"""How many tools a call remembers, and that a reply counts as told only what its prompt held. In virtual time."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.booking import ASKED, SPEAKS, scenario
from tests.support.scenario import Does, play
from voicepipe.agent import Tool
from voicepipe.call.errands import REMEMBERED, Errand, Errands
from voicepipe.errors import ToolError
from voicepipe.turn.events import ReplyDone
from voicepipe.turn.history import MAX_CHARS, History, Ids
from voicepipe.turn.prompt import ToolCall

pytestmark = pytest.mark.virtual_time
TOOL = Tool("book", function="m:f")


def kept() -> Errands:
    async def book(call: ToolCall) -> str:
        return f"{call.arguments} {'booked ' * 1000}"

    def begin(tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str) -> "asyncio.Task[str]":
        return asyncio.ensure_future(book(call))

    return Errands(History(), Ids("abc"), begin)


async def used(errands: Errands, number: int) -> Errand:
    errand = errands.begin(TOOL, ToolCall(f"c{number}", "book", f'{{"n": {number}}}'), {}, remembered=True)
    await errand.wait()
    return errand


async def test_who_never_lets_a_result_be_told_does_not_fill_the_memory() -> None:
    errands = kept()
    for number in range(300):
        errand = await used(errands, number)
        assert await used(errands, number) is errand, "the same wish is the same errand"
        errands.put_off([errand])
        assert len(errands._errands) <= REMEMBERED + 1
    assert await used(errands, 299) is errand


async def test_of_those_that_no_reply_is_owed_for_the_told_ones_are_forgotten_first() -> None:
    errands = kept()
    first = await used(errands, 0)
    errands.put_off([first])
    for number in range(1, 100):
        errands.told([await used(errands, number)])
    assert await used(errands, 0) is first


async def test_what_a_reply_is_owed_for_is_never_forgotten_and_never_done_twice() -> None:
    errands = kept()
    owed = [await used(errands, number) for number in range(REMEMBERED)]
    with pytest.raises(ToolError, match="has not been told yet"):
        await used(errands, REMEMBERED)
    for number, errand in enumerate(owed):
        assert await used(errands, number) is errand
    errands.told(owed[:1])
    await used(errands, REMEMBERED)


LONG = MAX_CHARS * 4 // 9


async def test_results_that_the_prompt_has_no_room_for_are_told_in_further_replies() -> None:
    """Five of 8,000 characters. The reply that waits for them is cancelled, so none reads them all."""
    names = ["a", "b", "c", "d", "e"]

    async def use(tool: Tool, call: ToolCall) -> str:
        await asyncio.sleep(2)
        return f"{call.name} found ".ljust(LONG, ".")

    calls = " ".join(f"call:{name} {{}}" for name in names)
    replies = {ASKED: calls} | {f"{name} found ".ljust(LONG, "."): f"This is {name}." for name in names}
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
    assert not recording.errands.untold()

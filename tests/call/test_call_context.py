"""What a reply is asked to be. In virtual time."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.support.scenario import Does, Scenario, Transfers, play
from voicepipe.base.errors import ItemExists
from voicepipe.call.call import Call
from voicepipe.call_api import ReplyRequest
from voicepipe.conversation.events import Item, ReplyDone
from voicepipe.conversation.prompt import Prompt, ToolCall

pytestmark = pytest.mark.virtual_time

TYPED = Scenario(about="A client that types.", hears=["hello there"], says=[], length_ms=3000)


async def test_replies_that_are_replaced_at_once_cost_the_model_nothing() -> None:
    async def burst(call: Call) -> None:
        await asyncio.sleep(0.1)
        call.add_item(Item("said", text="hello"), None)
        for _ in range(100):
            call.respond(ReplyRequest())
            call.cancel_reply(None)
        call.respond(ReplyRequest())

    recording = await play(TYPED, asks=burst)
    assert len(recording.llm.prompts) == 1
    assert [event.status for _, event in recording.events if isinstance(event, ReplyDone)].count("cancelled") == 100
    assert recording.story[-2] == "reply completed"


TABLE = {"desk": "+4930123456"}


@pytest.mark.parametrize(
    ("agent", "transfers", "tools", "offered"),
    [
        ({}, False, (), []),
        ({"transfer": TABLE}, False, (), []),
        ({"transfer": TABLE}, True, (), ["transfer_call"]),
        ({"transfer": TABLE}, True, ("transfer_call",), ["transfer_call"]),
        ({"end_call": True}, False, (), ["end_call"]),
        ({"send_keys": True}, True, (), []),
        ({"tools": [{"name": "book", "function": "m:f"}]}, False, ("print", "book"), ["print", "book"]),
    ],
)
async def test_the_model_is_offered_each_tool_once_the_client_s_first(
    agent: dict[str, Any], transfers: bool, tools: tuple[str, ...], offered: list[str]
) -> None:
    scenario = msgspec.structs.replace(
        TYPED, agent=agent, settings={"tools": tools}, transfers=Transfers() if transfers else None,
        does=[Does(100, "message", "hello"), Does(200, "respond")],
    )  # fmt: skip
    [prompt] = (await play(scenario)).llm.prompts
    assert [tool.name for tool in prompt.tools] == offered
    own = [tool.description for tool in prompt.tools if tool.name == "transfer_call"]
    assert all(bool(description) != ("transfer_call" in tools) for description in own), "whose tool it is"


@pytest.mark.parametrize(("client", "most"), [(None, 30), (20, 20), (90, 30)])
async def test_the_model_is_held_to_the_agent_s_limit_or_to_the_client_s_if_that_is_smaller(
    client: int | None, most: int
) -> None:
    does = [Does(100, "message", "hello"), Does(200, "respond")]
    scenario = msgspec.structs.replace(TYPED, agent={"max_tokens": 30}, settings={"max_tokens": client}, does=does)
    [prompt] = (await play(scenario)).llm.prompts
    assert prompt.max_tokens == most and prompt.agent and prompt.agent.max_tokens == 30


async def test_each_of_a_model_s_calls_has_an_id_of_its_own() -> None:
    async def names(call: Call) -> None:
        context = call._speaking._context
        call.add_item(Item("i", "function_call", call_id="c1", name="book"), None)
        call.add_item(Item("o", "function_call_output", call_id="c1", output="Booked."), None)
        calls = [ToolCall(call_id, "book", "{}") for call_id in ("c1", "c2", "c2")]
        first, second, third = (call.call_id for call in context.named(calls, Prompt()))
        assert second == "c2" and len({"c1", first, second, third}) == 4

    await play(TYPED, asks=names)


async def test_a_reply_beside_the_conversation_reads_its_own_items() -> None:
    async def asks(call: Call) -> None:
        call.add_item(Item("a", text="hello"), None)
        context, settings = call._speaking._context, call.settings
        order = context.order(settings, items=[Item("b", text="and what is two and two")])
        assert order.words == 0, "nobody has read it"
        assert [message.text for message in order.prompt.messages] == ["and what is two and two"]
        assert order.words == 6 and order.prompt is order.prompt
        with pytest.raises(ItemExists):
            context.order(settings, items=[Item("b"), Item("b")])

    await play(TYPED, asks=asks)


async def test_the_model_reads_when_the_call_began_also_where_a_client_has_other_instructions() -> None:
    began = "Monday, 30 November 2026, at 14:05 (Europe/Berlin)"

    async def asks(call: Call) -> None:
        await asyncio.sleep(0.1)
        call.configure(msgspec.structs.replace(call.settings, instructions="Be brief.", began=began))
        call.respond(ReplyRequest())
        await asyncio.sleep(0.1)
        call.cancel_reply(None)
        call.respond(ReplyRequest(instructions="Say hello."))

    recording = await play(TYPED, asks=asks)
    system = [prompt.messages[0].text for prompt in recording.llm.prompts]
    assert system == [f"{own}\n\nThis call began on {began}." for own in ("Be brief.", "Say hello.")]

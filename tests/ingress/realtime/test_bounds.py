"""Bytes of a client's messages, items, sessions; and a client that asks too much of the event loop."""

import asyncio
import base64
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect

from tests.ingress.fake_pop import FakeCall, FakePop, limited, serving
from tests.support.waiting import until
from voicepipe.call_settings import CallSettings


def said(text: str, **more: object) -> str:
    content = [{"type": "input_text", "text": text}]
    return json.dumps({"type": "conversation.item.create",
                       "item": {"type": "message", "role": "user", "content": content}, **more})  # fmt: skip


async def error_of(address: str, *messages: str) -> dict[str, str]:
    async with connect(f"ws://{address}/v1/realtime", proxy=None, max_size=None) as socket, asyncio.timeout(60):
        for message in messages:
            await socket.send(message)
        while (event := json.loads(await socket.recv()))["type"] != "error":
            pass
        return {key: event["error"][key] for key in ("code", "param", "message")}


async def test_an_append_that_ends_in_no_base64_is_told_of() -> None:
    append = {"type": "input_audio_buffer.append", "audio": "A" * 64_001, "event_id": "evt_1"}
    async with serving(FakePop()) as address:
        error = await error_of(address, json.dumps(append))
    assert (error["code"], error["param"]) == ("invalid_value", "audio")


LIMITS = {"event_bytes": 20_000, "session_bytes": 2000, "item_bytes": 1500, "conversation_bytes": 4000}
TOOL = {"type": "function", "name": "f", "description": "d" * 1200}


def update(**session: Any) -> str:
    return json.dumps({"type": "session.update", "session": session})


def create(**response: Any) -> str:
    return json.dumps({"type": "response.create", "response": response})


SHORT = {"type": "message", "role": "user", "content": []}
LONG = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a" * 1501}]}


@pytest.mark.parametrize(
    ("messages", "param", "advice"),
    [
        ([said("ä" * 800)], "item", "several items"),
        ([said("a" * 1400)] * 3, "item", "Delete items"),
        ([update(instructions="a" * 2001)], "session.instructions", "Shorten"),
        ([update(instructions="a" * 1000, tools=[TOOL])], "session.tools", "fewer"),
        ([update(audio={"input": {"transcription": {"prompt": "a" * 9000}}})], "session.audio", "Shorten"),
        ([create(instructions="a" * 2001)], "response.instructions", "Shorten"),
        ([create(tools=[TOOL, TOOL])], "response.tools", "fewer"),
        ([create(input=[LONG])], "response.input[0]", "several items"),
        ([update(x=[[]] * 10_000)], None, "Send less"),
    ],
)
async def test_what_is_too_long_is_refused_with_what_to_do(messages: list[str], param: str | None, advice: str) -> None:
    async with serving(FakePop(limited(**LIMITS))) as address:
        error = await error_of(address, *messages)
    assert error["param"] == param and advice in error["message"], error


async def test_a_response_is_made_of_no_more_items_than_a_conversation_may_have() -> None:
    """Thousands of empty ones took the loop for a second."""
    pop = FakePop(limited(items=3))
    async with serving(pop) as address:
        error = await error_of(address, create(conversation="none", input=[SHORT] * 4))
        assert (error["code"], error["param"]) == ("invalid_value", "response.input")
        assert "4 items, and 3 are taken at most" in error["message"]
        assert not pop.calls[0].requests


async def test_sound_may_be_longer_than_other_messages() -> None:
    pop = FakePop(limited(**LIMITS))
    async with serving(pop) as address:
        append = {"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(48_000)).decode()}
        error = await error_of(address, json.dumps(append), '{"type":"conversation.item.delete","item_id":"none"}')
        assert error["code"] == "item_delete_invalid_item_id"
        await until(lambda: len(pop.calls[0].blocks) == 50)  # The call takes in what is queued beside all else.


async def test_a_burst_of_dear_messages_is_carried_out_in_order_and_its_author_told() -> None:
    class Dear(FakeCall):
        def configure(self, settings: CallSettings) -> None:
            sum(range(300_000))
            super().configure(settings)

    pop = FakePop(limited(client_percent=1))
    pop.wrap = lambda call: Dear(call.line, call.settings, call.emit, 1, 0)
    async with serving(pop) as address, connect(f"ws://{address}/v1/realtime", proxy=None, max_size=None) as socket:
        seen: list[str] = []
        codes: list[str] = []
        async with asyncio.timeout(60):
            sent = 0
            while not codes or len(seen) < sent:
                if not codes and sent - len(seen) < 3:
                    await socket.send(update(instructions=str(sent)))
                    sent += 1
                    continue
                event = json.loads(await socket.recv())
                if event["type"] == "session.updated":
                    seen.append(event["session"]["instructions"])
                elif event["type"] == "error":
                    codes.append(event["error"]["code"])
        assert seen == [str(n) for n in range(sent)]
        assert codes == ["rate_limit_exceeded"]

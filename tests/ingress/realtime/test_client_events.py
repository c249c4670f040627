"""Over ten thousand messages that nobody should send: each is an answer or nothing, and nobody else notices."""

import asyncio
import base64
import json
import random
import tracemalloc
from collections import Counter
from typing import Any

import pytest
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter
from websockets.asyncio.client import ClientConnection, connect

from tests.ingress.fake_pop import FakePop, limited, serving, tone
from voicepipe.ingress import blocks
from voicepipe.ingress.realtime import client_events
from voicepipe.ingress.wire_errors import WireError

CALLERS, MESSAGES = 12, 1000
VALID: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)

GOOD: list[dict[str, Any]] = [
    {"type": "session.update", "session": {"type": "realtime", "instructions": "x", "audio": {
        "input": {"format": {"type": "audio/pcm", "rate": 24000}, "transcription": {"model": "m"},
                  "turn_detection": {"type": "server_vad", "threshold": 0.5, "silence_duration_ms": 200}},
        "output": {"voice": "v", "speed": 1.0}}, "tools": [{"type": "function", "name": "f", "parameters": {}}]}},
    {"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(960)).decode()},
    {"type": "input_audio_buffer.commit"},
    {"type": "input_audio_buffer.clear"},
    {"type": "output_audio_buffer.clear"},
    {"type": "conversation.item.create", "previous_item_id": "root", "item": {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}},
    {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "c", "output": "{}"}},
    {"type": "conversation.item.create", "item": {"type": "function_call", "name": "f", "arguments": "{}"}},
    {"type": "conversation.item.retrieve", "item_id": "item_1"},
    {"type": "conversation.item.truncate", "item_id": "item_3", "content_index": 0, "audio_end_ms": 20},
    {"type": "conversation.item.delete", "item_id": "item_1"},
    {"type": "response.create", "response": {"metadata": {"k": "v"}, "output_modalities": ["text"], "input": [
        {"type": "item_reference", "id": "item_1"}], "tools": [], "conversation": "none"}},
    {"type": "response.cancel", "response_id": "resp_1"},
]  # fmt: skip

WRONG: list[Any] = [
    None, True, 0, -1, 7.5, 10**40, "", "x", "ü\u0000", "A" * 5000, [], [[]], {}, {"type": "x"},
    {"type": None}, [None] * 50, "audio/pcmu", "====", "AAA", {"id": 1}, ["audio", "text"],
]  # fmt: skip
GARBAGE: list[str | bytes] = [
    "", "{", "[]", "null", "7", '"x"', "{}", '{"type":1}', '{"type":"nothing"}', '{"type":"session.update"',
    '{"type":"session.update","session":{"a":NaN}}', '{"type":"response.cancel","response_id":"\\ud800"}',
    b"\x00\xff", b"\xff\xfe{}", '{"a":' * 5000, '{"type":"session.update","session":{"tools":' + "[" * 3000,
    '{"type":"response.cancel","type":"response.create"}', "\u2028", b'{"type":"input_audio_buffer.clear"}',
]  # fmt: skip


def spoiled(value: Any, chance: random.Random) -> Any:
    """`value` with one place of it wrong, missing or too much."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        changed, key = dict(value), chance.choice(list(value))
        match chance.randrange(5):
            case 0:
                del changed[key]
            case 1:
                changed[chance.choice(["extra", "voice", "event_id", "type", "id"])] = chance.choice(WRONG)
            case _:
                changed[key] = spoiled(value[key], chance)
        return changed
    if isinstance(value, list) and value and chance.random() < 0.7:
        return [spoiled(value[0], chance), *value[1:]]
    return chance.choice(WRONG)


def message(chance: random.Random) -> str | bytes:
    kind = chance.random()
    if kind < 0.05:
        return chance.choice(GARBAGE)
    event = chance.choice(GOOD) | {"event_id": f"e{chance.randrange(10**6)}"}
    if kind < 0.2:
        return json.dumps(event)
    if kind < 0.25:
        text = json.dumps(event)
        return text[: chance.randrange(len(text))]
    return json.dumps(spoiled(event, chance))


async def abuse(address: str, seed: int) -> Counter[str]:
    """One caller's thousand messages; the codes of the errors that came back."""
    chance, codes = random.Random(seed), Counter[str]()
    async with connect(f"ws://{address}/v1/realtime", proxy=None) as socket:
        listener = asyncio.create_task(listen(socket, codes))
        for _ in range(MESSAGES):
            await socket.send(message(chance))
        await socket.send('{"type":"conversation.item.retrieve","item_id":"none","event_id":"last"}')
        async with asyncio.timeout(60):
            await listener
    return codes


async def listen(socket: ClientConnection, codes: Counter[str]) -> None:
    async for raw in socket:
        event = json.loads(raw)
        VALID.validate_python(event)
        if event["type"] == "error":
            codes[event["error"]["code"]] += 1
            assert event["error"]["type"] == "invalid_request_error", event
            assert len(raw) < 2000
            if event["error"]["event_id"] == "last":
                return
    raise AssertionError("the server hung up")


async def converse(address: str, until: asyncio.Event) -> int:
    """A well-behaved caller beside them, turn after turn. Returns the turns."""
    turns = 0
    async with connect(f"ws://{address}/v1/realtime", proxy=None) as socket:
        speech = base64.b64encode(tone(6000, 24_000).tobytes() + bytes(9600)).decode()
        while not until.is_set():
            await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": speech}))
            async with asyncio.timeout(20):
                while (event := json.loads(await socket.recv()))["type"] != "response.done":
                    assert event["type"] != "error", event
            assert event["response"]["status"] == "completed"
            turns += 1
    return turns


async def test_ten_thousand_bad_messages() -> None:
    pop = FakePop(limited(client_percent=100))
    async with serving(pop) as address:
        over = asyncio.Event()
        neighbour = asyncio.create_task(converse(address, over))
        found = Counter[str]()
        for first in range(0, CALLERS, 4):
            for codes in await asyncio.gather(*(abuse(address, first + n) for n in range(4))):
                found += codes
        over.set()
        assert await neighbour >= 3
    assert CALLERS * MESSAGES >= 10_000 and found.total() > 5_000
    expected = {"invalid_json", "invalid_type", "invalid_value", "missing_required_parameter", "unknown_parameter"}
    assert expected <= set(found)
    assert "server_error" not in found


@pytest.mark.parametrize("raw", GARBAGE)
def test_garbage_is_a_wire_error(raw: str | bytes) -> None:
    try:
        client_events.decode(raw, 1 << 20)
    except WireError as error:
        assert error.code and error.message and len(error.message) <= 400
    assert client_events.event_id(raw, 1 << 20) is None


async def test_audio_huge_and_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "FAST_BLOCK_S", 0.0)  # Five minutes of sound would take one.
    pop = FakePop(limited(message_bytes=32 * 1024 * 1024))
    async with serving(pop) as address, connect(f"ws://{address}/v1/realtime", proxy=None, max_size=None) as socket:
        await socket.send('{"type":"input_audio_buffer.append","audio":""}')
        huge = base64.b64encode(bytes(15 * 1024 * 1024)).decode()
        over = asyncio.Event()
        neighbour = asyncio.create_task(converse(address, over))
        await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": huge}))
        await socket.send('{"type":"input_audio_buffer.commit"}')
        async with asyncio.timeout(30):
            while json.loads(await socket.recv())["type"] != "input_audio_buffer.committed":
                pass
        over.set()
        assert await neighbour >= 1
        assert len(pop.calls[0].blocks) == pytest.approx(15 * 1024 * 1024 / 960, abs=2)


MASSES = b"[" + b",".join([b"{}"] * 300_000) + b"]"


@pytest.mark.parametrize(
    "message",
    [
        b'{"type":"session.update","event_id":' + MASSES + b"}",
        b'{"type":' + MASSES + b"}",
        b'{"type":"input_audio_buffer.append","event_id":' + MASSES + b',"audio":""}',
        b'{"type":"session.update","session":{"a":' + MASSES + b'},"type":"input_audio_buffer.append"}',
        b'{"type":"input_audio_buffer.append","audio":"","session":{"a":' + MASSES + b'},"type":"session.update"}',
        b'{"type":"input_audio_buffer.append","audio":"","x":' + MASSES + b"}",
        b'{"x":' + MASSES + b',"type":"input_audio_buffer.append","audio":""}',
    ],
)
def test_a_message_that_is_too_long_is_not_made_into_objects(message: bytes) -> None:
    """16 MiB of them stopped the loop for seconds, whatever field they were in."""
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            client_events.decode(message, 512 * 1024)
        assert client_events.event_id(message, 512 * 1024) is None
        assert tracemalloc.get_traced_memory()[1] < 2 * len(message)  # Each {} is 64 bytes and more.
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize(
    "message",
    [
        '{"type":"input_audio_buffer.append","event_id":"e1","audio":"%s"}',
        '{ "audio" : "%s" , "event_id" : "e1", "type" : "input_audio_buffer.append", "more": [1, {"a": "b"}]}',
    ],
)
@pytest.mark.parametrize("escape", [{}, {"/": "\\/"}, {"+": "\\u002B"}])
def test_a_long_append_is_read_as_a_short_one(message: str, as_bytes: bool, escape: dict[str, str]) -> None:
    sound = base64.b64encode(bytes(range(256)) * 300).decode()
    said = sound
    for plain, escaped in escape.items():
        said = said.replace(plain, escaped)
    raw = (message % said).encode() if as_bytes else message % said
    for most in (1000, 1 << 20):
        event = client_events.decode(raw, most)
        assert isinstance(event, client_events.InputAppend)
        assert (event.audio, event.event_id) == (sound, "e1")
        assert client_events.event_id(raw, most) == "e1"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('{"type":"input_audio_buffer.append","event_id":7,"audio":"%s"}', "invalid_type"),
        ('{"type":"input_audio_buffer.append","audio":"%s"', "invalid_json"),
        ('{"type":"input_audio_buffer.append","audio":"\\x%s"}', "invalid_json"),
        ('{"type":"input_audio_buffer.append","audio":"%s', "invalid_value"),
        ('{"type":"session.update","session":{"audio":"%s"}}', "invalid_value"),
        ('{"type":"input_audio_buffer.append","x":{"audio":"%s"}}', "missing_required_parameter"),
    ],
)
def test_a_long_message_with_a_mistake_is_told_of_it(message: str, code: str) -> None:
    with pytest.raises(WireError) as told:
        client_events.decode(message % ("A" * 4000), 1000)
    assert told.value.code == code

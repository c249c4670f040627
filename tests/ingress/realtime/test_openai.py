"""The stock openai client against the real app: what it sends is understood, what it gets validates."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from tests.ingress.fake_pop import ANSWER, RECORD, WORDS, FakePop, serving, tone
from voicepipe.audio import g711
from voicepipe.conversation.events import Item, ItemAdded

VALID: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
SPEECH = tone(24_000 // 2, 24_000).tobytes()
SILENCE = bytes(2 * 24_000 // 5)


class Client:
    """Receives and validates; remembers everything."""

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self.connection = connection
        self.events: list[dict[str, Any]] = []

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(60):
            raw = await self.connection.recv_bytes()
        VALID.validate_json(raw)
        self.events.append(json.loads(raw))
        return self.events[-1]

    async def until(self, kind: str) -> dict[str, Any]:
        while (event := await self.next())["type"] != kind:
            assert event["type"] != "error" or kind == "error", event
        return event

    async def say(self, audio: bytes = SPEECH + SILENCE) -> None:
        for start in range(0, len(audio), 4800):
            piece = base64.b64encode(audio[start : start + 4800]).decode()
            await self.connection.input_audio_buffer.append(audio=piece)

    def types(self) -> list[str]:
        """Event types in order, runs of the same one once."""
        types = [event["type"] for event in self.events]
        return [kind for n, kind in enumerate(types) if not n or types[n - 1] != kind]


@asynccontextmanager
async def calling(pop: FakePop, key: str = "unused", model: str = "gpt-realtime") -> AsyncIterator[Client]:
    async with serving(pop) as address:
        openai = AsyncOpenAI(api_key=key, base_url=f"http://{address}/v1", max_retries=0)
        async with openai.realtime.connect(model=model) as connection:
            client = Client(connection)
            await client.until("session.created")
            yield client


GOLDEN = [
    "session.created",
    "input_audio_buffer.speech_started",
    "conversation.item.input_audio_transcription.delta",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
    "conversation.item.input_audio_transcription.completed",
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
]


async def test_a_spoken_turn_is_the_golden_trace() -> None:
    pop = FakePop()
    async with calling(pop) as client:
        await client.say()
        done = await client.until("response.done")
    assert client.types() == GOLDEN
    by_type = {event["type"]: event for event in client.events}
    heard = by_type["conversation.item.input_audio_transcription.completed"]
    assert heard["transcript"] == WORDS
    assert heard["usage"] == {"type": "duration", "seconds": pytest.approx(0.58, abs=0.05)}
    assert by_type["response.content_part.added"]["part"] == {"type": "audio", "transcript": ""}
    answer = "".join(ANSWER)
    item = by_type["response.output_item.done"]["item"]
    assert item["content"] == [{"type": "output_audio", "transcript": answer}] and item["status"] == "completed"
    response = done["response"]
    assert response["status"] == "completed" and response["output"] == [item]
    assert response["usage"]["total_tokens"] == 19
    assert json.loads(response["metadata"]["voicepipe.turn"]) == msgspec.to_builtins(RECORD)
    audio = b"".join(base64.b64decode(e["delta"]) for e in client.events if e["type"] == "response.output_audio.delta")
    assert audio == tone(480, 24_000).tobytes() * 10
    stamps = [block.arrived for block in pop.calls[0].blocks]
    assert stamps == sorted(stamps) and 0 < time.monotonic() - stamps[0] < 10
    ids = [event["event_id"] for event in client.events]
    assert len(set(ids)) == len(ids) and all(ids)


async def test_a_typed_turn_in_text() -> None:
    pop = FakePop()
    async with calling(pop) as client:
        await client.connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        assert (await client.until("session.updated"))["session"]["output_modalities"] == ["text"]
        await client.connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
        )
        await client.until("conversation.item.done")
        await client.connection.response.create(response={"metadata": {"ticket": "7"}, "instructions": "Be kind."})
        done = await client.until("response.done")
    assert pop.calls[0].history[0].text == "hello"
    assert pop.calls[0].requests[0].instructions == "Be kind."
    text = [e["delta"] for e in client.events if e["type"] == "response.output_text.delta"]
    assert tuple(text) == ANSWER
    assert done["response"]["metadata"]["ticket"] == "7"
    assert done["response"]["output"][0]["content"] == [{"type": "output_text", "text": "".join(ANSWER)}]
    assert "response.output_text.done" in client.types() and "response.output_audio.done" not in client.types()


async def test_a_tool_round_trip() -> None:
    pop = FakePop()
    async with calling(pop) as client:
        tool: Any = {"type": "function", "name": "hours", "description": "d", "parameters": {"type": "object"}}
        await client.connection.session.update(session={"type": "realtime", "tools": [tool]})
        await client.until("session.updated")
        await client.connection.response.create()
        added = await client.until("response.output_item.added")
        assert added["item"]["status"] == "in_progress" and added["item"]["arguments"] == ""
        call = await client.until("response.function_call_arguments.done")
        assert (call["name"], call["arguments"]) == ("hours", '{"day":"monday"}')
        done = await client.until("response.done")
        assert done["response"]["output"][0]["type"] == "function_call"
        await client.connection.conversation.item.create(
            item={"type": "function_call_output", "call_id": call["call_id"], "output": "nine to five"}
        )
        await client.connection.response.create()
        done = await client.until("response.done")
        assert done["response"]["output"][0]["type"] == "message"
    assert pop.calls[0].settings.tools[0].name == "hours"


async def test_cancel_truncate_retrieve_delete() -> None:
    pop = FakePop()
    pop.packets = 50
    async with calling(pop) as client:
        await client.connection.response.create()
        for _ in range(10):
            delta = await client.until("response.output_audio.delta")
        item_id = delta["item_id"]
        await client.connection.response.create()
        assert (await client.until("error"))["error"]["code"] == "conversation_already_has_active_response"
        await client.connection.response.cancel(response_id=delta["response_id"])
        done = await client.until("response.done")
        assert done["response"]["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
        assert done["response"]["output"][0]["status"] == "incomplete"
        await client.connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=100)
        assert (await client.until("conversation.item.truncated"))["audio_end_ms"] == 100
        await client.connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=9_000)
        assert (await client.until("error"))["error"]["code"] == "invalid_value"
        await client.connection.conversation.item.retrieve(item_id=item_id)
        assert (await client.until("conversation.item.retrieved"))["item"]["id"] == item_id
        await client.connection.conversation.item.delete(item_id=item_id)
        await client.until("conversation.item.deleted")


@pytest.mark.parametrize("law", ["pcmu", "pcma"])
async def test_g711(law: str) -> None:
    pop = FakePop()
    async with calling(pop) as client:
        format: Any = {"type": f"audio/{law}"}
        audio: Any = {"input": {"format": format, "turn_detection": None}, "output": {"format": format}}
        await client.connection.session.update(session={"type": "realtime", "audio": audio})
        updated = await client.until("session.updated")
        assert updated["session"]["audio"]["output"]["format"] == format
        await client.say(g711.encode(law, tone(8000, 8000)))
        await client.connection.input_audio_buffer.commit()
        await client.until("input_audio_buffer.committed")
        await client.connection.response.create()
        await client.until("response.done")
    call = pop.calls[0]
    assert abs(sum(block.pcm.size for block in call.blocks) - 16_000) <= 320
    assert 9_000 < max(int(block.pcm.max()) for block in call.blocks) < 11_500
    audio = b"".join(base64.b64decode(e["delta"]) for e in client.events if e["type"] == "response.output_audio.delta")
    assert abs(len(audio) - 1600) < 40  # 200 ms; what the converter holds back is lost
    assert 9_000 < int(g711.decode(law, audio).max()) < 11_500


async def test_barge_in() -> None:
    pop = FakePop()
    pop.packets = 200
    async with calling(pop) as client:
        await client.connection.response.create()
        await client.until("response.output_audio.delta")
        await client.say(SPEECH)
        done = await client.until("response.done")
        assert done["response"]["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
        await client.say(SILENCE)
        await client.until("response.output_audio.delta")
        await client.connection.output_audio_buffer.clear()
        await client.until("output_audio_buffer.cleared")


async def test_a_reply_beside_the_conversation() -> None:
    pop = FakePop()
    async with calling(pop) as client:
        message: Any = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "classify"}]}
        await client.connection.response.create(
            response={"conversation": "none", "output_modalities": ["text"], "input": [message]}
        )
        done = await client.until("response.done")
        assert done["response"]["conversation_id"] is None
        assert "conversation.item.added" not in client.types()
        await client.connection.response.create()
        await client.until("conversation.item.added")
        await client.until("response.done")
    request = pop.calls[0].requests[0]
    assert request.input and request.input[0].text == "classify"


async def test_transcription_off() -> None:
    async with calling(FakePop()) as client:
        off: Any = {"type": "realtime", "audio": {"input": {"transcription": None}}}
        await client.connection.session.update(session=off)
        updated = await client.until("session.updated")
        assert updated["session"]["audio"]["input"]["transcription"] is None
        await client.say()
        await client.until("response.done")
        assert not any("transcription" in kind for kind in client.types())


@pytest.mark.parametrize(("languages", "codes"), [(("fr",), ["fr"]), ((), []), (None, None)])
async def test_the_language_that_was_heard_is_where_the_convention_has_it(
    languages: tuple[str, ...] | None, codes: list[str] | None
) -> None:
    """Validated by the SDK's own types, as all events of these tests are."""
    pop = FakePop()
    async with calling(pop) as client:
        said = ItemAdded(Item("item_said", text="une table", audio_ms=900), None, spoken=True, languages=languages)
        pop.calls[0].emit(said)
        heard = await client.until("conversation.item.input_audio_transcription.completed")
    shown = VALID.validate_python(heard).languages
    assert (shown if shown is None else [language.code for language in shown]) == codes
    assert ("languages" in heard) == (codes is not None)

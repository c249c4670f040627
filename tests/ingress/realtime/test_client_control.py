"""What a client asks is carried out, or refused by the convention's codes."""

import base64
from typing import Any

import pytest

from tests.ingress.fake_pop import FakePop, limited
from tests.ingress.realtime.test_openai import calling

ERRORS: list[tuple[str, str | None, dict[str, Any]]] = [
    ("response_cancel_not_active", None, {"type": "response.cancel"}),
    ("input_audio_buffer_commit_empty", None, {"type": "input_audio_buffer.commit"}),
    ("item_retrieve_invalid_item_id", "item_id", {"type": "conversation.item.retrieve", "item_id": "no"}),
    ("item_delete_invalid_item_id", "item_id", {"type": "conversation.item.delete", "item_id": "no"}),
    (
        "item_truncate_invalid_item_id",
        "item_id",
        {"type": "conversation.item.truncate", "item_id": "no", "content_index": 0, "audio_end_ms": 1},
    ),
    (
        "invalid_value",
        "session.audio.input.format.rate",
        {
            "type": "session.update",
            "session": {"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcm", "rate": 8000}}}},
        },
    ),
    ("unknown_parameter", "session.modalities", {"type": "session.update", "session": {"modalities": ["text"]}}),
    ("missing_required_parameter", "item", {"type": "conversation.item.create"}),
    ("invalid_value", "type", {"type": "session.destroy"}),
    ("invalid_type", "response_id", {"type": "response.cancel", "response_id": 7}),
    ("invalid_value", "item.type", {"type": "conversation.item.create", "item": {"type": "item_reference"}}),
    (
        "invalid_value",
        "item.content[0].transcript",
        {
            "type": "conversation.item.create",
            "item": {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "AAAA"}]},
        },
    ),
    (
        "item_create_invalid_previous_item_id",
        "previous_item_id",
        {
            "type": "conversation.item.create",
            "previous_item_id": "no",
            "item": {"type": "function_call_output", "call_id": "c", "output": ""},
        },
    ),
    (
        "invalid_value",
        "response.input[0].id",
        {"type": "response.create", "response": {"input": [{"type": "item_reference", "id": "no"}]}},
    ),
    (
        "invalid_type",
        "response.audio.output.voice",
        {"type": "response.create", "response": {"audio": {"output": {"voice": {}}}}},
    ),
]


@pytest.mark.parametrize(("code", "param", "event"), ERRORS)
async def test_errors_name_code_param_and_event(code: str, param: str | None, event: Any) -> None:
    async with calling(FakePop()) as client:
        await client.connection.send(event | {"event_id": "e1"})
        error = (await client.until("error"))["error"]
        assert (error["code"], error["param"], error["event_id"]) == (code, param, "e1")
        if code == "response_cancel_not_active":
            assert error["message"] == "Cancellation failed: no active response found"
        await client.connection.response.create()  # the connection stays
        await client.until("response.done")


async def test_a_full_conversation() -> None:
    async with calling(FakePop(limited(items=1))) as client:
        for _ in range(2):
            await client.connection.conversation.item.create(
                item={"type": "function_call_output", "call_id": "c", "output": ""}
            )
        assert "full" in (await client.until("error"))["error"]["message"]


async def test_a_duplicate_item_is_refused() -> None:
    async with calling(FakePop()) as client:
        for _ in range(2):
            await client.connection.conversation.item.create(
                item={"id": "mine", "type": "function_call_output", "call_id": "c", "output": ""},
                previous_item_id="root",
            )
        assert (await client.until("error"))["error"]["code"] == "item_create_duplicate_item_id"


async def test_everything_appended_is_heard_before_a_commit() -> None:
    pop = FakePop()
    async with calling(pop) as client:
        await client.connection.session.update(
            session={"type": "realtime", "audio": {"input": {"turn_detection": None}}}
        )
        await client.connection.input_audio_buffer.append(audio=base64.b64encode(bytes(4800)).decode())  # 100 ms
        await client.connection.input_audio_buffer.commit()
        await client.until("conversation.item.input_audio_transcription.completed")
        await client.connection.input_audio_buffer.append(audio=base64.b64encode(bytes(48_000 * 30)).decode())
        await client.connection.input_audio_buffer.commit()
        heard = await client.until("conversation.item.input_audio_transcription.completed")
        assert heard["usage"]["seconds"] == pytest.approx(30, abs=0.1)
        await client.connection.input_audio_buffer.append(audio=base64.b64encode(bytes(48_000)).decode())
        await client.connection.input_audio_buffer.clear()
        await client.until("input_audio_buffer.cleared")
        await client.connection.input_audio_buffer.commit()
        assert (await client.until("error"))["error"]["code"] == "input_audio_buffer_commit_empty"

"""What a client asks is carried out, or refused by the convention's codes."""

import base64
import json
from typing import Any, cast

import httpx
import pytest
import websockets

from tests.ingress.fake_pop import FakePop, limited, serving
from tests.ingress.realtime.test_openai import Client, calling
from voicepipe.agent import Agent

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


# --- voices

VOICES = ["alloy", "marin", "nobody-of-this-name", {"id": "voice_1234"}, "x" * 500, "de\n"]
"""What stock clients and others send; FakePop has en-us, which is the default, and de."""


def audio(voice: object) -> dict[str, Any]:
    return {"audio": {"output": {"voice": voice}}}


async def update(client: Client, session: dict[str, Any]) -> dict[str, Any]:
    """The session that `session.updated` shows."""
    await client.connection.send(cast(Any, {"type": "session.update", "session": session}))
    return dict((await client.until("session.updated"))["session"])


def shown(session: dict[str, Any]) -> str:
    return str(session["audio"]["output"]["voice"])


@pytest.mark.parametrize("voice", VOICES, ids=lambda voice: repr(voice)[:20])
@pytest.mark.parametrize(("agent_has", "speaks"), [("de", "de"), ("en-us", "en-us"), ("", "en-us"), ("gone", "en-us")])
async def test_an_unknown_voice_changes_nothing(
    voice: object, agent_has: str, speaks: str, caplog: pytest.LogCaptureFixture
) -> None:
    pop = FakePop()
    pop.known["front-desk"] = Agent("front-desk", voice=agent_has)
    caplog.set_level("INFO", "voicepipe.ingress.realtime")
    async with calling(pop) as client:
        assert shown(client.events[0]["session"]) == speaks
        for _ in range(3):
            updated = await update(client, {"type": "realtime", **audio(voice)})
        assert shown(updated) == speaks
        [call] = pop.calls
        assert call.settings.voice == agent_has, "as it was: what was made ahead for it is good"
        assert shown(await update(client, updated)) == speaks
        assert call.settings.voice == agent_has, "a session that is sent back as it was shown changes nothing either"
        told = [message for message in caplog.messages if "asks for the voice" in message]
        assert len(told) == 1 and told[0].startswith(f"{call.id}: ") and "\n" not in told[0] and len(told[0]) < 250


@pytest.mark.parametrize("voice", ["de", {"id": "de"}])
async def test_a_voice_that_is_here_speaks(voice: object, caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop()
    caplog.set_level("INFO", "voicepipe.ingress.realtime")
    async with calling(pop) as client:
        for asked in (voice, "alloy"):
            updated = await update(client, {"type": "realtime", **audio(asked)})
            assert shown(updated) == "de", "an unknown one leaves the last"
        assert pop.calls[0].settings.voice == "de"
        await client.connection.send({"type": "response.create"})
        response = (await client.until("response.done"))["response"]
        assert shown(response) == "de"
    assert sum("asks for the voice" in message for message in caplog.messages) == 1


@pytest.mark.parametrize(("voice", "asked"), [("de", "de"), *((voice, None) for voice in VOICES)])
async def test_a_response_with_a_voice(voice: object, asked: str | None, caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop()
    caplog.set_level("INFO", "voicepipe.ingress.realtime")
    async with calling(pop) as client:
        for _ in range(2):
            await client.connection.send(cast(Any, {"type": "response.create", "response": audio(voice)}))
            await client.until("response.done")
        assert [request.voice for request in pop.calls[0].requests] == [asked, asked]
    assert sum("asks for the voice" in message for message in caplog.messages) == (asked is None)


@pytest.mark.parametrize(("voice", "speaks"), [("de", "de"), ({"id": "de"}, "de"), ("alloy", "en-us"), ("", "en-us")])
async def test_a_key_made_with_a_voice(voice: object, speaks: str) -> None:
    pop = FakePop()
    async with serving(pop) as address, httpx.AsyncClient(base_url=f"http://{address}/v1/realtime") as client:
        made = (await client.post("/client_secrets", json={"session": {"type": "realtime", **audio(voice)}})).json()
    assert shown(made["session"]) == speaks


@pytest.mark.parametrize(("voice", "speaks"), [("de", "de"), ("marin", "en-us")])
async def test_a_call_begins_with_the_voice_of_its_key(
    voice: str, speaks: str, caplog: pytest.LogCaptureFixture
) -> None:
    pop = FakePop()
    caplog.set_level("INFO", "voicepipe.ingress.realtime")
    async with serving(pop) as address, httpx.AsyncClient(base_url=f"http://{address}/v1/realtime") as client:
        session = {"type": "realtime", **audio(voice)}
        key = (await client.post("/client_secrets", json={"session": session})).json()["value"]
        headers = {"Authorization": f"Bearer {key}"}
        async with websockets.connect(f"ws://{address}/v1/realtime", additional_headers=headers) as call:
            assert shown(json.loads(await call.recv())["session"]) == speaks
        assert pop.calls[0].settings.voice == speaks
    assert sum("asks for the voice" in message for message in caplog.messages) == (voice == "marin")

"""A client asks for a voice: one that is here speaks, any other changes nothing, and the session shows which speaks."""

import json
from typing import Any, cast

import httpx
import pytest
import websockets

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.realtime.test_openai import Client, calling
from voicepipe.agent import Agent

KINDS = ["alloy", "marin", "nobody-of-this-name", {"id": "voice_1234"}, "x" * 500, "de\n"]
"""What stock clients and others send; FakePop has en-us, which is the default, and de."""


def audio(voice: object) -> dict[str, Any]:
    return {"audio": {"output": {"voice": voice}}}


async def update(client: Client, session: dict[str, Any]) -> dict[str, Any]:
    """The session that `session.updated` shows."""
    await client.connection.send(cast(Any, {"type": "session.update", "session": session}))
    return dict((await client.until("session.updated"))["session"])


def shown(session: dict[str, Any]) -> str:
    return str(session["audio"]["output"]["voice"])


@pytest.mark.parametrize("voice", KINDS, ids=lambda voice: repr(voice)[:20])
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


@pytest.mark.parametrize(("voice", "asked"), [("de", "de"), *((voice, None) for voice in KINDS)])
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

"""Calls by WebRTC with a stock aiortc peer: placed, held, listened in on, hung up, and refused."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from openai import AsyncOpenAI
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.ingress.fake_pop import ANSWER, WORDS, FakePop, limited, serving, settled
from tests.ingress.webrtc.peer import Peer, dialled, post, web
from tests.support.waiting import until
from voicepipe.call_api import Tenant
from voicepipe.config import Config, TenantConfig

SERVER_EVENT: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
KEYED = msgspec.structs.replace(Config(), tenants=(TenantConfig(name="acme", key_env="ACME_KEY"),))
KEYS = {"sk-acme": Tenant("acme"), "sk-other": Tenant("other")}


@pytest.mark.parametrize("codec", [None, "PCMU", "PCMA"])
async def test_a_spoken_turn_both_ways(codec: str | None) -> None:
    pop = FakePop()
    pop.packets, pop.pace = 25, 0.02
    async with serving(pop) as address, dialled(address, codec) as (peer, location):
        assert location.startswith("/v1/realtime/calls/rtc_")
        await until(lambda: peer.frames)
        peer.microphone.loud = True
        await peer.saw("input_audio_buffer.speech_started")
        peer.microphone.loud = False
        await peer.saw("output_audio_buffer.stopped")
        assert peer.loudest > 3000
        types = peer.types()
        told = [
            "session.created", "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped",
            "input_audio_buffer.committed", "response.created", "response.output_item.added",
            "output_audio_buffer.started", "response.done", "output_audio_buffer.stopped",
        ]  # fmt: skip
        assert [kind for kind in types if kind in told] == told
        assert "response.output_audio.delta" not in types, "sound goes by RTP"
        said = (await peer.saw("response.output_audio_transcript.done"))["transcript"]
        assert said == "".join(ANSWER)
        assert (await peer.saw("conversation.item.input_audio_transcription.completed"))["transcript"] == WORDS
        for event in peer.events:
            SERVER_EVENT.validate_python(event)
        blocks = pop.calls[0].blocks
        assert [block.pos for block in blocks] == [n * 320 for n in range(len(blocks))]


async def test_the_caller_goes_on_over_the_reply() -> None:
    pop = FakePop()
    pop.packets, pop.pace = 400, 0.02
    async with serving(pop) as address, dialled(address) as (peer, _):
        peer.send(type="response.create")
        started = await peer.saw("output_audio_buffer.started")
        peer.microphone.loud = True
        cleared = await peer.saw("output_audio_buffer.cleared")
        assert cleared["response_id"] == started["response_id"]
        types = peer.types()
        assert types.index("output_audio_buffer.cleared") < types.index("response.done")
        assert (await peer.saw("conversation.item.truncated"))["content_index"] == 0
        assert "output_audio_buffer.stopped" not in types


async def test_the_client_clears_what_sounds() -> None:
    pop = FakePop()
    pop.packets, pop.pace = 400, 0.02
    async with serving(pop) as address, dialled(address) as (peer, _):
        peer.send(type="response.create")
        await peer.saw("output_audio_buffer.started")
        peer.send(type="output_audio_buffer.clear")
        await peer.saw("response.done")
        assert peer.types().count("output_audio_buffer.cleared") == 1


async def test_sound_in_events_is_refused_and_the_call_goes_on() -> None:
    async with serving(FakePop()) as address, dialled(address) as (peer, _):
        peer.send(type="input_audio_buffer.append", audio="AAAA", event_id="mine")
        error = (await peer.saw("error"))["error"]
        assert error["event_id"] == "mine" and "audio track" in error["message"]
        peer.send(type="session.update", session={"type": "realtime", "instructions": "Be kind."})
        assert (await peer.saw("session.updated"))["session"]["instructions"] == "Be kind."


async def test_openai_places_a_call_with_a_session() -> None:
    """The stock SDK's form: the parts `sdp` and `session`."""
    async with serving(FakePop()) as address:
        peer = Peer()
        client = AsyncOpenAI(base_url=f"http://{address}/v1", api_key="none")
        made = await client.realtime.calls.create(
            sdp=await peer.offer(), session={"type": "realtime", "model": "clinic", "instructions": "Be brief today."}
        )
        await peer.answered(made.response.text)
        session = (await peer.saw("session.created"))["session"]
        assert (session["model"], session["instructions"]) == ("clinic", "Be brief today.")
        call_id = made.response.headers["Location"].rpartition("/")[2]
        await client.realtime.calls.hangup(call_id)
        await until(lambda: peer.connection.connectionState == "closed")
        await peer.close()


@pytest.mark.parametrize("how", ["delete", "hangup", "peer", "agent"])
async def test_hanging_up(how: str) -> None:
    pop = FakePop()
    async with serving(pop) as address, dialled(address) as (peer, location):
        async with web(address) as client:
            if how == "delete":
                assert (await client.delete(location)).status_code == 200
            elif how == "hangup":
                assert (await client.post(f"{location}/hangup")).status_code == 200
            elif how == "peer":
                await peer.close()
            else:
                await pop.calls[0].line.hang_up()
            await settled(pop)
            gone = await client.delete(location)
            assert gone.status_code == 404 and gone.json()["error"]["code"] == "call_id_not_found"
        await until(lambda: peer.connection.connectionState == "closed")


async def test_a_program_beside_the_call_sees_it_and_takes_part() -> None:
    pop = FakePop()
    async with serving(pop) as address, dialled(address) as (peer, location):
        call_id = location.rpartition("/")[2]
        async with connect(f"ws://{address}/v1/realtime?call_id={call_id}", proxy=None) as beside:
            first = json.loads(await beside.recv())
            assert first["type"] == "session.created"
            await beside.send(
                json.dumps({"type": "session.update", "session": {"type": "realtime", "instructions": "Hm."}})
            )
            assert json.loads(await beside.recv())["session"]["instructions"] == "Hm."
            assert (await peer.saw("session.updated"))["session"]["instructions"] == "Hm."
            await beside.send("{}")
            assert json.loads(await beside.recv())["type"] == "error"
            assert "error" not in peer.types(), "who makes a mistake is told, and nobody else"
            peer.send(type="response.create")
            seen = [json.loads(await beside.recv())["type"] for _ in range(3)]
            assert seen[0] == "response.created"
        assert pop.live == 1, "the call goes on without it"
        async with connect(f"ws://{address}/v1/realtime?call_id={call_id}", proxy=None) as beside:
            await peer.close()
            await asyncio.wait_for(beside.wait_closed(), 60)
            assert beside.close_code == 1000


async def test_who_may_listen_in_and_hang_up() -> None:
    pop = FakePop(KEYED, KEYS)
    async with serving(pop) as address:
        peer = Peer()
        offer = await peer.offer()
        assert (await post(address, offer)).status_code == 401
        placed = await post(address, offer, Authorization="Bearer sk-acme")
        await peer.answered(placed.text)
        await peer.saw("session.created")
        location = placed.headers["Location"]
        async with web(address) as client:
            others = {"Authorization": "Bearer sk-other"}
            assert (await client.delete(location, headers=others)).status_code == 404
            with pytest.raises(InvalidStatus) as caught:
                await connect(f"ws://{address}/v1/realtime?call_id={location.rpartition('/')[2]}", proxy=None,
                              additional_headers=others)  # fmt: skip
            assert caught.value.response.status_code == 404
            assert (await client.delete(location, headers={"Authorization": "Bearer sk-acme"})).status_code == 200
        await peer.close()


async def test_who_listens_in_brings_no_sound_so_its_messages_are_short() -> None:
    """They take no slot, and sixteen of them may be connected to one call."""
    pop = FakePop(limited(event_bytes=2048))
    async with serving(pop) as address, web(address) as client:
        peer = Peer()
        location = (await post(address, await peer.offer())).headers["Location"]
        async with connect(f"ws://{address}/v1/realtime?call_id={location.rpartition('/')[2]}", proxy=None) as beside:
            assert json.loads(await beside.recv())["type"] == "session.created"
            await beside.send("x" * 3000)
            await asyncio.wait_for(beside.wait_closed(), 60)
            assert beside.close_code == 1009
        assert (await client.delete(location)).status_code == 200, "and the call goes on"
        await settled(pop)
        await peer.close()


async def test_a_call_has_room_for_so_many_clients() -> None:
    async with serving(FakePop()) as address, dialled(address) as (_, location):
        call_id = location.rpartition("/")[2]
        sockets: list[ClientConnection] = []
        with pytest.raises(InvalidStatus) as caught:
            while len(sockets) < 20:
                sockets.append(await connect(f"ws://{address}/v1/realtime?call_id={call_id}", proxy=None))
        assert caught.value.response.status_code == 503 and len(sockets) == 15
        for socket in sockets:
            await socket.close()

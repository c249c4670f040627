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
from voicepipe.base.errors import PopFull
from voicepipe.call_api import Tenant
from voicepipe.config import Config, LimitsConfig, PopConfig, TenantConfig
from voicepipe.config.pop_config import WebRtcConfig
from voicepipe.ingress import server
from voicepipe.pop import pop_http as http

SERVER_EVENT: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
KEYED = msgspec.structs.replace(Config(), tenants=(TenantConfig(name="acme", key_env="ACME_KEY"),))
KEYS = {"sk-acme": Tenant("acme"), "sk-other": Tenant("other")}


def webrtc(**changes: Any) -> Config:
    return msgspec.structs.replace(Config(), webrtc=WebRtcConfig(**changes))


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


AUDIO = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=rtpmap:111 opus/48000/2\r\n"
HEAD = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"


@pytest.mark.parametrize(
    ("offer", "said"),
    [
        ("", "no audio"),
        ("hello", "no audio"),
        (HEAD + "m=audio x", "no SDP"),
        (HEAD + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 VP8/90000\r\n", "no audio"),
        (HEAD + AUDIO.replace("opus/48000/2", "G729/8000"), "No codec in common: G729"),
        (HEAD + AUDIO, "ice-ufrag"),
        (HEAD + AUDIO + "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n", "fingerprint"),
    ],
)
async def test_an_offer_that_is_none(offer: str, said: str) -> None:
    pop = FakePop()
    async with serving(pop) as address:
        response = await post(address, offer)
        assert response.status_code == 400
        error = response.json()["error"]
        assert error["code"] == "invalid_offer" and said in error["message"]
        assert pop.live == 0


async def test_other_bodies_and_a_full_house() -> None:
    pop = FakePop()
    async with serving(pop) as address, web(address) as client:
        json_body = await client.post("/v1/realtime/calls", json={"sdp": "v=0"})
        assert json_body.status_code == 400 and "application/sdp" in json_body.json()["error"]["message"]
        without = await client.post("/v1/realtime/calls", files={"session": (None, "{}")})
        assert without.status_code == 400 and "'sdp'" in without.json()["error"]["message"]
        broken = await client.post("/v1/realtime/calls", files={"sdp": (None, "v=0"), "session": (None, "{")})
        assert broken.status_code == 400 and "session" in broken.json()["error"]["message"]
        pop.refuse = PopFull("All slots are taken.")
        full = await post(address, HEAD)
        assert full.status_code == 503 and full.headers["Retry-After"]


async def test_a_peer_that_never_comes_gives_back_its_place(caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop(webrtc(connect_ms=300))
    async with serving(pop) as address:
        peer = Peer()
        assert (await post(address, await peer.offer())).status_code == 201
        assert pop.live == 1
        await settled(pop)
        await peer.close()
    assert "not connected" in caplog.text


async def test_offers_that_never_connect_leave_half_of_the_places_to_other_tenants() -> None:
    two = tuple(TenantConfig(name=name, key_env=f"{name.upper()}_KEY") for name in ("acme", "other"))
    config = msgspec.structs.replace(Config(), tenants=two, pop=PopConfig(slots=12))
    pop, acme = FakePop(config, KEYS), {"Authorization": "Bearer sk-acme"}
    async with serving(pop) as address, web(address) as client:
        peer = Peer()
        offer = await peer.offer()
        placed = [await post(address, offer, **acme) for _ in range(20)]
        taken, refused = placed[:6], placed[6:]
        assert {one.status_code for one in taken} == {201} and {one.status_code for one in refused} == {503}
        said = refused[0].json()["error"]
        assert said["code"] == "pop_full" and "wait for their callers to connect" in said["message"]
        answered = await post(address, offer, Authorization="Bearer sk-other")
        await peer.answered(answered.text)
        await peer.saw("session.created")
        for one in taken[:2]:
            await client.delete(one.headers["Location"], headers=acme)
        await until(lambda: pop.live == 5)
        again = [await post(address, offer, **acme) for _ in range(3)]
        assert [one.status_code for one in again] == [201, 201, 503]
        await peer.close()
        for one in [*taken[2:], *again[:2]]:
            await client.delete(one.headers["Location"], headers=acme)


async def test_one_browser_leaves_places_to_the_others_of_its_tenant() -> None:
    acme = TenantConfig(name="acme", key_env="ACME_KEY")
    pop = FakePop(msgspec.structs.replace(Config(), tenants=(acme,), pop=PopConfig(slots=12)), KEYS)
    async with serving(pop) as address, web(address) as client:
        own = {"Authorization": "Bearer sk-acme"}
        made = [await client.post("/v1/realtime/client_secrets", json={}, headers=own) for _ in range(2)]
        first, second = ({"Authorization": f"Bearer {one.json()['value']}"} for one in made)
        peer = Peer()
        offer = await peer.offer()
        placed = [await post(address, offer, **first) for _ in range(5)]
        assert [one.status_code for one in placed] == [201] * 3 + [503] * 2
        assert "calls of this ek_ key wait for their callers" in placed[-1].json()["error"]["message"]
        placed += [await post(address, offer, **second), await post(address, offer, **own)]
        assert [one.status_code for one in placed[5:]] == [201, 201]
        await client.delete(placed[0].headers["Location"], headers=own)
        await until(lambda: pop.live == 4)
        placed.append(await post(address, offer, **first))
        assert placed[-1].status_code == 201
        for one in placed[1:]:
            if one.status_code == 201:
                await client.delete(one.headers["Location"], headers=own)
        await settled(pop)
        await peer.close()


async def test_hanging_up_before_there_is_a_connection_gives_back_the_place() -> None:
    pop = FakePop()
    async with serving(pop) as address, web(address) as client:
        peer = Peer()
        placed = await post(address, await peer.offer())
        location = placed.headers["Location"]
        async with connect(f"ws://{address}/v1/realtime?call_id={location.rpartition('/')[2]}", proxy=None) as beside:
            assert json.loads(await beside.recv())["type"] == "session.created"
            assert (await client.delete(location)).status_code == 200
            await asyncio.wait_for(beside.wait_closed(), 60)
        await settled(pop)
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


async def test_a_server_that_goes_down_tells_its_callers() -> None:
    pop = FakePop()
    listener = server.bind(pop.config.http)
    serve = asyncio.create_task(http.serve(pop, listener))
    await pop.serving.wait()
    async with dialled(f"127.0.0.1:{listener.getsockname()[1]}") as (peer, _):
        serve.cancel()
        assert (await peer.saw("error"))["error"]["code"] == "server_shutdown"
        await until(lambda: peer.connection.connectionState == "closed")
    await asyncio.wait({serve})
    assert not pop.live


async def test_an_event_that_the_channel_cannot_carry_is_told_and_the_call_goes_on() -> None:
    pop = FakePop(msgspec.structs.replace(Config(), limits=LimitsConfig(session_bytes=500_000)))
    async with serving(pop) as address, dialled(address) as (peer, location):
        call_id = location.rpartition("/")[2]
        async with connect(f"ws://{address}/v1/realtime?call_id={call_id}", proxy=None, max_size=None) as beside:
            await beside.recv()
            update = {"type": "session.update", "session": {"type": "realtime", "instructions": "word " * 80_000}}
            await beside.send(json.dumps(update))
            assert json.loads(await beside.recv())["type"] == "session.updated"
            error = (await peer.saw("error"))["error"]
            assert error["code"] == "event_too_long"
            peer.send(type="response.create")
            await peer.saw("response.done")


async def test_a_message_that_is_too_long_is_told_and_hangs_up() -> None:
    """The stock peer heeds what our answer allows; one that does not is stopped before all of its message is here."""
    pop = FakePop(msgspec.structs.replace(Config(), limits=LimitsConfig(message_bytes=4096)))
    async with serving(pop) as address, dialled(address) as (peer, _):
        with pytest.raises(ValueError, match="4096"):
            peer.channel.send("x" * 4097)
        peer.send(type="session.update", session={"type": "realtime", "instructions": "x" * 3900})
        await peer.saw("session.updated")
        sctp = peer.connection.sctp
        assert sctp
        sctp._remote_max_message_size = 0
        peer.channel.send("x" * 100_000)
        error = (await peer.saw("error"))["error"]
        assert error["code"] == "message_too_long" and "4096 bytes" in error["message"]
        await settled(pop)
        await until(lambda: peer.connection.connectionState == "closed")


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


async def test_a_pump_that_fails_ends_its_call() -> None:
    pop = FakePop()
    async with serving(pop) as address, dialled(address):
        line = pop.calls[0].line

        def fails() -> None:
            raise RuntimeError("boom")

        with pytest.raises(RuntimeError, match="boom"):
            await asyncio.wait_for(line.pace(fails, asyncio.Event()), 60)


async def test_ice_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        serving(FakePop()) as address,
        web(address) as client,
    ):
        assert (await client.get("/v1/realtime/ice-servers")).json() == {"ice_servers": []}
    monkeypatch.setenv("TURN_SECRET", "hush")
    config = webrtc(turn_urls=("turn:turn.example.com",), turn_secret_env="TURN_SECRET")
    async with (
        serving(FakePop(config)) as address,
        web(address) as client,
    ):
        (entry,) = (await client.get("/v1/realtime/ice-servers")).json()["ice_servers"]
        assert entry["urls"] == ["turn:turn.example.com"]
        assert entry["username"].endswith(":voicepipe") and len(entry["credential"]) == 28


async def test_the_line_tells_how_its_network_fares() -> None:
    pop = FakePop()
    async with serving(pop) as address, dialled(address) as (peer, _):
        await until(lambda: pop.calls and len(pop.calls[0].blocks) > 25)
        network = pop.calls[0].line.network()
        assert network.loss_percent == 0 and network.jitter_ms is not None

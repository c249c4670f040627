"""Calls from Telnyx against a scripted PoP and a scripted API: webhooks, commands, streams, transfers, refusals."""

import asyncio
import json
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.ingress.fake_pop import FakePop, serving, tone
from voicepipe.agent import Origin
from voicepipe.config import Config
from voicepipe.errors import ConfigError, PopFull, TransferFailed
from voicepipe.ingress.telephony.telnyx import SOUNDS
from voicepipe.ingress.telephony.telnyx_api import CommandFailed, TelnyxApi
from voicepipe.phone_config import RouteConfig, TelephonyConfig, TelnyxConfig

ENV = "TEST_TELNYX_KEY"
SECRET = "KEY0123"
SIGNER = Ed25519PrivateKey.generate()
PUBLIC = b64encode(SIGNER.public_key().public_bytes_raw()).decode()
CALL = "v3:abc-DEF_1"
FROM: Any = {"from": "+1555"}
SMS: Any = {"from": {"phone_number": "+1555"}}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, SECRET)


class Api:
    """Telnyx's: keeps every command, and answers 200 unless `status` says otherwise for an action."""

    def __init__(self) -> None:
        self.url = ""
        self.commands: list[tuple[str, dict[str, Any]]] = []
        self.status: dict[str, tuple[int, dict[str, Any]]] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        body = json.loads(await reader.readexactly(size))
        assert f"authorization: bearer {SECRET}".lower() in head
        version, calls, call_id, actions, action = head.split(" ")[1].strip("/").split("/")
        assert (version, calls, call_id, actions) == ("v2", "calls", CALL.lower(), "actions")
        self.commands.append((action, body))
        status, answer = self.status.get(action, (200, {"data": {"result": "ok"}}))
        data = json.dumps(answer).encode()
        writer.write(f"HTTP/1.1 {status} -\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
        await writer.drain()
        writer.close()

    def did(self, action: str) -> list[dict[str, Any]]:
        return [body for done, body in self.commands if done == action]


@asynccontextmanager
async def telnyx(*routes: RouteConfig, codec: str = "PCMU") -> AsyncIterator[tuple[FakePop, Api, str]]:
    """A PoP that Telnyx calls, and Telnyx."""
    api = Api()
    listening = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    async with listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        config = Config(
            telephony=TelephonyConfig(public_url="https://voice.example.com/x"),
            telnyx=TelnyxConfig(public_key=PUBLIC, api_key_env=ENV, api_url=url, codec=codec),  # type: ignore[arg-type]
            routes=routes,
        )
        pop = FakePop(config)
        async with serving(pop) as address:
            yield pop, api, address


async def post(address: str, event: str, *, age: float = 0, query: str = "", **payload: Any) -> int:
    """A webhook; its status."""
    said = {"data": {"event_type": event, "record_type": "event", "payload": {"call_control_id": CALL} | payload}}
    body = json.dumps(said).encode()
    stamp = str(int(time.time() - age))
    headers = {
        "telnyx-signature-ed25519": b64encode(SIGNER.sign(f"{stamp}|".encode() + body)).decode(),
        "telnyx-timestamp": stamp,
    }
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"http://{address}/telnyx/voice{query}", content=body, headers=headers)
    return answer.status_code


async def call(address: str, **more: Any) -> None:
    """Somebody calls, and Telnyx has answered as it was told."""
    assert await post(address, "call.initiated", direction="incoming", to="+4930123", **FROM, **more) == 200
    assert await post(address, "call.answered", to="+4930123", **FROM) == 200


@asynccontextmanager
async def streaming(address: str, api: Api, format: dict[str, Any] | None = None) -> AsyncIterator[ClientConnection]:
    """The stream that was asked for."""
    [asked] = api.did("streaming_start")
    headers = {"x-telnyx-streaming-auth-token": asked["stream_auth_token"]}
    async with connect(f"ws://{address}/telnyx/stream", additional_headers=headers, proxy=None) as socket:
        await socket.send('{"event":"connected","version":"1.0.0"}')
        custom = {one["name"]: one["value"] for one in asked.get("custom_parameters", [])}
        await socket.send(json.dumps({"event": "start", "sequence_number": "1", "stream_id": "S1", "start": {
            "user_id": "U", "call_control_id": CALL, "from": "+1555", "to": "+4930123", "client_state": None,
            "custom_parameters": custom,
            "media_format": format or {"encoding": "PCMU", "sample_rate": 8000, "channels": 1},
        }}))  # fmt: skip
        yield socket


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_call_is_answered_and_streamed() -> None:
    async with telnyx(RouteConfig(called="+49*", agent="clinic")) as (pop, api, address):
        await call(address)
        assert [action for action, _ in api.commands] == ["answer", "streaming_start"]
        [asked] = api.did("streaming_start")
        assert len(asked.pop("stream_auth_token")) >= 32
        assert asked == {
            "command_id": "voicepipe-stream",
            "stream_url": "wss://voice.example.com/x/telnyx/stream",
            "stream_track": "inbound_track",
            "stream_codec": "PCMU",
            "stream_bidirectional_mode": "rtp",
            "stream_bidirectional_codec": "PCMU",
            "stream_bidirectional_sampling_rate": 8000,
        }
        assert not pop.calls


async def test_l16_with_chunks_out_of_order() -> None:
    async with telnyx(codec="L16") as (pop, api, address):
        pop.packets, pop.pace = 25, 0.002
        await call(address)
        [asked] = api.did("streaming_start")
        assert (asked["stream_bidirectional_codec"], asked["stream_bidirectional_sampling_rate"]) == ("L16", 16_000)
        format = {"encoding": "L16", "sample_rate": 16_000, "channels": 1}
        async with streaming(address, api, format) as socket:
            ramp = np.arange(-16_000, 16_000, dtype=np.int16)  # each sample tells its place
            for chunk in swapped(range(1, 101)):
                pcm = ramp[(chunk - 1) * 320 : chunk * 320]
                payload = b64encode(SOUNDS["L16"].encode(pcm)).decode()
                await socket.send(json.dumps({"event": "media", "stream_id": "S1", "media": {
                    "track": "inbound", "chunk": str(chunk), "timestamp": "1", "payload": payload}}))  # fmt: skip
            await until(lambda: pop.calls and len(pop.calls[0].blocks) == 100)
            heard = np.concatenate([block.pcm for block in pop.calls[0].blocks])
            assert np.array_equal(heard, ramp)
            pop.calls[0].line.send(tone(320, 16_000))
            said = json.loads(await socket.recv())
            assert said["event"] == "media" and "stream_id" not in said
            assert np.array_equal(SOUNDS["L16"].decode(b64decode(said["media"]["payload"])),
                                  tone(320, 16_000))  # fmt: skip


def swapped(chunks: range) -> list[int]:
    """Every third pair changes places."""
    out = list(chunks)
    for at in range(0, len(out) - 1, 6):
        out[at], out[at + 1] = out[at + 1], out[at]
    return out


async def test_keys_errors_and_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (pop, api, address):
        assert await post(address, "call.initiated", direction="incoming", query="?agent=clinic", to="+49") == 200
        await post(address, "call.answered")
        async with streaming(address, api) as socket:
            await until(lambda: pop.calls)
            [fake] = pop.calls
            assert fake.settings.agent.name == "clinic" and fake.line.kind == "telnyx"
            assert fake.settings.origin == Origin("+1555", "+4930123", {})
            await socket.send(
                '{"event":"error","stream_id":"S1","payload":{"code":100003,"title":"malformed","detail":"x"}}'
            )
            await socket.send('{"event":"dtmf","stream_id":"S1","occurred_at":"t","dtmf":{"digit":"9"}}')
            await socket.send('{"event":"stop","stream_id":"S1","stop":{"call_control_id":"c"}}')
            await socket.wait_closed()
        await until(lambda: api.did("hangup"))
    assert "100003: malformed: x" in caplog.text


async def test_our_end_hangs_up_since_telnyx_would_hold_the_call() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api) as socket:
            await until(lambda: pop.calls)
            async with httpx.AsyncClient(trust_env=False) as client:
                await client.delete(f"http://{address}/v1/realtime/calls/{CALL}")
            await socket.wait_closed()
            assert socket.close_code == 1000
        await until(lambda: api.did("hangup"))


@pytest.mark.parametrize("way", ["gone", "nonsense"])
async def test_a_stream_that_breaks_leaves_nobody_in_silence(way: str) -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api) as socket:
            await until(lambda: pop.live)
            if way == "gone":
                socket.transport.abort()
            else:
                for _ in range(10):
                    await socket.send("{")
            await until(lambda: api.did("hangup"))
            assert not pop.live


async def test_a_stream_that_cannot_be_taken_ends_the_call(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        opus = {"encoding": "OPUS", "sample_rate": 16_000, "channels": 1}
        async with streaming(address, api, opus) as socket:
            for _ in range(10):
                await socket.send('{"event":"media","media":{"track":"inbound","chunk":"1","payload":"AA=="}}')
            await socket.wait_closed()
        await until(lambda: api.did("hangup"))
        assert not pop.calls
    assert "offers sound as OPUS at 16000 Hz; what can be taken is pcmu, pcma, l16" in caplog.text


# --- transfers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "to"),
    [("+49 (0)40", "+4940"), ("tel:+1-415-555", "+1415555"), ("sip:ann@a.example", "sip:ann@a.example")],
)
async def test_a_transfer_is_over_once_somebody_has_taken_the_call(target: str, to: str) -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.calls)
            transfer = asyncio.create_task(pop.calls[0].line.transfer(target))
            await until(lambda: api.did("transfer"))
            [asked] = api.did("transfer")
            assert asked["to"] == to and asked["timeout_secs"] == 30
            await post(address, "call.initiated", direction="outgoing", client_state=asked["target_leg_client_state"])
            await post(address, "call.answered")
            assert not transfer.done() and len(api.did("answer")) == len(api.did("streaming_start")) == 1
            await post(address, "call.bridged")
            await transfer


async def test_a_transfer_that_nobody_takes() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.calls)
            line = pop.calls[0].line
            transfer = asyncio.create_task(line.transfer("+4940"))
            await until(lambda: api.did("transfer"))
            state = api.did("transfer")[0]["target_leg_client_state"]
            await post(address, "call.hangup", call_control_id="v3:other", client_state=state, hangup_cause="user_busy")
            with pytest.raises(TransferFailed, match="user_busy"):
                await transfer
            api.status["transfer"] = 422, {"errors": [{"code": "10015", "title": "Bad", "detail": "no such number"}]}
            with pytest.raises(TransferFailed, match="no such number"):
                await line.transfer("+0")


async def test_a_call_that_somebody_has_taken_is_not_hung_up_when_its_stream_ends() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api) as socket:
            await until(lambda: pop.calls)
            transfer = asyncio.create_task(pop.calls[0].line.transfer("+4940"))
            await until(lambda: api.did("transfer"))
            await post(address, "call.bridged")
            await transfer
            await socket.send('{"event":"stop","stream_id":"S1","stop":{}}')
            await socket.wait_closed()
        await until(lambda: not pop.live)
        await post(address, "call.hangup")
        assert not api.did("hangup")


async def test_a_stream_that_breaks_during_a_transfer_leaves_nobody_in_silence_whom_nobody_takes() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api) as socket:
            await until(lambda: pop.calls)
            transfer = asyncio.create_task(pop.calls[0].line.transfer("+4940"))
            await until(lambda: api.did("transfer"))
            socket.transport.abort()
            await until(lambda: not pop.live)
            assert not api.did("hangup"), "somebody may yet take it"
            state = api.did("transfer")[0]["target_leg_client_state"]
            await post(address, "call.hangup", call_control_id="v3:other", client_state=state, hangup_cause="timeout")
            await until(lambda: api.did("hangup"))
        transfer.cancel()
        await asyncio.wait({transfer})


# --- who is refused ---------------------------------------------------------------------------------------------


async def test_a_pop_that_is_full_is_busy_and_a_number_without_a_route_is_rejected() -> None:
    async with telnyx(RouteConfig(called="+33*")) as (pop, api, address):
        await post(address, "call.initiated", direction="incoming", to="+49")
        pop.refuse = PopFull("full")
        await post(address, "call.initiated", direction="incoming", to="+33")
        assert api.commands == [("reject", {"cause": "CALL_REJECTED"}), ("reject", {"cause": "USER_BUSY"})]


async def test_what_telnyx_has_not_signed(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (_, api, address):
        assert await post(address, "call.initiated", age=400, direction="incoming") == 403
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.post(f"http://{address}/telnyx/voice", content=b"{}")).status_code == 403
        assert not api.commands
    assert "signed 400 s ago" in caplog.text or "signed 401 s ago" in caplog.text


async def test_those_who_go_on_asking_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (_, _, address), httpx.AsyncClient(trust_env=False) as client:
        for _ in range(200):
            assert (await client.post(f"http://{address}/telnyx/voice", content=b"{}")).status_code == 403
    told = [record for record in caplog.records if "telnyx" in record.getMessage()]
    assert 1 < len(told) < 150 and any("are refused in masses" in record.getMessage() for record in told)


async def test_a_token_is_for_one_stream_of_its_call() -> None:
    async with telnyx() as (pop, api, address):
        for headers in ({}, {"x-telnyx-streaming-auth-token": "guess"}):
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"ws://{address}/telnyx/stream", additional_headers=headers, proxy=None)
            assert refused.value.response.status_code == 403
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.live)
            with pytest.raises(InvalidStatus):
                async with streaming(address, api):
                    raise AssertionError("a token was taken twice")
        api.commands.clear()
        await call(address)
        [asked] = api.did("streaming_start")
        headers = {"x-telnyx-streaming-auth-token": asked["stream_auth_token"]}
        async with connect(f"ws://{address}/telnyx/stream", additional_headers=headers, proxy=None) as socket:
            start = {"call_control_id": "v3:other", "media_format": {"encoding": "PCMU", "sample_rate": 8000}}
            await socket.send(json.dumps({"event": "start", "stream_id": "S", "start": start}))
            await socket.wait_closed()
            assert socket.close_code == 1008 and len(pop.calls) == 1


async def test_webhooks_that_are_not_about_calls_are_ignored() -> None:
    async with telnyx() as (_, api, address):
        assert await post(address, "call.speak.ended") == 200
        assert await post(address, "message.received", **SMS) == 200
        assert await post(address, "call.answered") == 200, "of a call that we have not answered"
        assert not api.commands


async def test_without_a_key_there_is_nothing() -> None:
    async with serving(FakePop()) as address:
        assert await post(address, "call.initiated", direction="incoming") in (404, 405)


def test_a_public_key_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        telnyx = TelnyxConfig(public_key="abc", api_key_env=ENV)
        async with serving(FakePop(Config(telnyx=telnyx, telephony=TelephonyConfig(public_url="https://a")))):
            pass

    with pytest.raises(ConfigError, match=r"telnyx\.public_key: 'abc' is no Ed25519 key"):
        asyncio.run(run())


# --- the API ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "answer", "why"),
    [
        (401, {}, "does not accept the key in $TEST_TELNYX_KEY"),
        (422, {"errors": [{"code": "90018", "title": "Call has already ended"}]}, ""),
        (
            422,
            {"errors": [{"code": 90015, "title": "Invalid", "detail": "no stream_url"}]},
            "HTTP 422: Invalid no stream",
        ),
        (500, {"oh": "no"}, 'HTTP 500: {"oh": "no"}'),
    ],
)
async def test_what_telnyx_answers(status: int, answer: dict[str, Any], why: str) -> None:
    async with telnyx() as (pop, api, _):
        api.status["hangup"] = status, answer
        command = TelnyxApi(pop.config.telnyx, SECRET).command(CALL, "hangup")
        if not why:
            return await command
        with pytest.raises(CommandFailed) as caught:
            await command
        assert why in str(caught.value) and SECRET not in str(caught.value)


async def test_telnyx_cannot_be_reached(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (pop, api, address):
        api.status["streaming_start"] = 422, {"errors": [{"title": "Invalid", "detail": "stream_url"}]}
        await call(address)
        assert api.did("hangup"), "a caller who would hear nothing"
        await post(address, "streaming.failed", failure_reason="connection_failed")
        config = TelnyxConfig(public_key=PUBLIC, api_key_env=ENV, api_url="http://127.0.0.1:9")
        with pytest.raises(CommandFailed, match=r"http://127\.0\.0\.1:9 does not answer"):
            await TelnyxApi(config, SECRET).command(CALL, "answer")
    assert "streaming_start: Telnyx answers HTTP 422: Invalid stream_url" in caplog.text
    assert "cannot be streamed to this server: connection_failed" in caplog.text

"""Calls from Telnyx against a scripted PoP and a scripted API: webhooks, commands, streams, and how they end."""

import json
from base64 import b64decode, b64encode
from typing import Any

import httpx
import numpy as np
import pytest

from tests.ingress.fake_pop import tone
from tests.ingress.telephony.telnyx_provider import CALL, call, post, streaming, telnyx
from tests.support.waiting import until
from voicepipe.agent import Origin
from voicepipe.config.phone_config import RouteConfig
from voicepipe.ingress.telephony.telnyx import SOUNDS

SMS: Any = {"from": {"phone_number": "+1555"}}


async def test_a_call_is_answered_and_streamed() -> None:
    async with telnyx(RouteConfig(called="+49*", agent="clinic")) as (pop, api, address):
        await call(address)
        assert [action for action, _ in api.commands] == ["answer", "streaming_start"]
        [asked] = api.did("streaming_start")
        assert len(asked.pop("stream_auth_token")) >= 32
        assert asked.pop("client_state") == api.did("answer")[0]["client_state"]
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


@pytest.mark.parametrize("way", ["gone", "nonsense", "a huge message"])
async def test_a_stream_that_breaks_leaves_nobody_in_silence(way: str) -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api) as socket:
            await until(lambda: pop.live)
            if way == "gone":
                socket.transport.abort()
            elif way == "a huge message":
                await socket.send(json.dumps({"event": "dtmf", "more": "x" * pop.config.limits.event_bytes}))
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


async def test_webhooks_that_are_not_about_calls_are_ignored() -> None:
    async with telnyx() as (_, api, address):
        assert await post(address, "call.speak.ended") == 200
        assert await post(address, "message.received", **SMS) == 200
        assert await post(address, "call.answered") == 200, "of a call that we have not answered"
        assert not api.commands

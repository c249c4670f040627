"""Calls from Telnyx against a scripted PoP and a scripted API: webhooks, commands, streams, and how they end."""

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest

from tests.ingress.fake_pop import FakePop, tone
from tests.ingress.telephony.telnyx_provider import CALL, FROM, call, post, streaming, telnyx
from tests.ingress.telephony.test_hooked_calls import CLINIC, hooked, says
from tests.support.waiting import until
from voicepipe.base.errors import PopFull, PopLate
from voicepipe.call_api import HookAnswer
from voicepipe.call_settings import Origin
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


async def rings(address: str) -> int:
    """Somebody calls; the status of the webhook."""
    return await post(address, "call.initiated", direction="incoming", to="+4930123", **FROM)


async def test_a_webhook_that_comes_again_while_the_hook_is_asked_changes_nothing() -> None:
    asked = asyncio.Event()

    async def slowly() -> HookAnswer:
        await asked.wait()
        return CLINIC

    async with telnyx() as (pop, api, address):
        hooked(pop, slowly)
        await rings(address)
        await until(lambda: pop.asked)
        pop.refuse = PopFull("its own call has the last slot")
        assert await rings(address) == 200
        assert not api.commands, "it rings on"
        asked.set()
        await until(lambda: api.did("answer"))
        assert await rings(address) == 200
        assert {action for action, _ in api.commands} == {"answer"} and len(api.carried_out("answer")) == 1
        assert len(pop.asked) == pop.live == 1 and not pop.refusals
        await post(address, "call.answered", to="+4930123", **FROM)
        async with streaming(address, api):
            await until(lambda: pop.calls)
            assert pop.calls[0].settings.agent.name == "clinic"


async def test_a_webhook_that_comes_again_to_a_call_without_a_hook_is_not_checked_again() -> None:
    async with telnyx() as (pop, api, address):
        await rings(address)
        pop.refuse = PopFull("others have come")
        await rings(address)
        assert not api.did("reject") and len(api.carried_out("answer")) == 1


async def test_a_call_whose_hook_is_asked_is_admitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PoP lets fewer callers in just after it has let one in (`Pop._allowed_lag_ms`)."""
    async with telnyx() as (pop, api, address):
        hooked(pop, says(CLINIC))
        admit = pop.admit

        @contextmanager
        def once(*args: Any) -> Iterator[FakePop]:
            with admit(*args) as slot:
                pop.refuse = PopLate("one was let in just now")
                yield slot

        monkeypatch.setattr(pop, "admit", once)
        assert await rings(address) == 200
        await until(lambda: api.commands)
        assert api.did("answer")


@pytest.mark.parametrize("late", [False, True])
async def test_whatever_is_raised_rejects_the_call(late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller is not left to listen to the ringing."""

    async def breaks() -> HookAnswer:
        raise RuntimeError("a fault of ours")

    def fails(*args: Any) -> Any:
        raise RuntimeError("a fault of ours")

    async with telnyx() as (pop, api, address):
        hooked(pop, breaks)
        if not late:
            monkeypatch.setattr(pop, "admit", fails)
        await rings(address)
        await until(lambda: api.commands)
        assert api.commands == [("reject", {"cause": "CALL_REJECTED"})]
        assert [refusal.reason for refusal in pop.refusals] == ["error"] and not pop.live


@pytest.mark.parametrize("late", [False, True])
async def test_what_the_hook_said_of_a_ringing_call_is_handed_over(late: bool) -> None:
    """Telnyx reports to the new process that the call is answered. `late`: that runs already when the hook answers."""
    accepted = msgspec.structs.replace(CLINIC, session=b'{"instructions": "Be kind."}')

    async def asks_again() -> HookAnswer:
        raise AssertionError("it was asked before")

    async with telnyx() as (old, api, address), telnyx() as (new, new_api, other):
        hooked(old, says(accepted))
        hooked(new, asks_again)
        if late:
            old.takeover_parts.publish = new.takeover_parts.taken
        await rings(address)
        await until(lambda: api.did("answer"))
        if not late:
            for name, state in old.takeover_parts.given().items():
                new.takeover_parts.taken(name, state)
        [answer] = api.did("answer")
        await post(other, "call.answered", to="+4930123", client_state=answer["client_state"], **FROM)
        async with streaming(other, new_api):
            await until(lambda: new.calls)
            assert new.calls[0].settings.agent.name == "clinic" and not new.asked
        await post(address, "call.hangup")

"""OpenAI's `realtime.call.incoming`, by telephones that dial a whole PoP and a receiver with the stock SDK."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import APIStatusError, AsyncOpenAI
from openai.types.webhooks import RealtimeCallIncomingWebhookEvent

from tests.ingress.sip.peer import Phone
from tests.ingress.telephony import twilio_provider
from tests.ingress.telephony.twilio_provider import verbs
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe import config as configuration
from voicepipe.agent import Agent
from voicepipe.call_api import HookRun
from voicepipe.call_settings import CallSettings, Origin
from voicepipe.ingress.telephony import twilio
from voicepipe.pop.incoming_calls import LONGEST, MOST_HEADERS, _event, with_session
from voicepipe.pop.pop import Pop
from voicepipe.pop.running import member

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KEYS = {"ACME_KEY": "sk-acme", "OTHER_KEY": "sk-other", "INCOMING_SECRET": SECRET,
        twilio_provider.ENV: twilio_provider.TOKEN}  # fmt: skip
Decides = Callable[[AsyncOpenAI, str], Awaitable[None]]


@dataclass
class Receiver:
    """A developer's server: it checks each webhook by the SDK, and decides. `status`: its answer."""

    sdk: AsyncOpenAI
    decides: Decides
    status: int = 200
    url: str = ""
    events: list[RealtimeCallIncomingWebhookEvent] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    deciding: list[asyncio.Task[None]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])}
        body = await reader.readexactly(int(headers["content-length"]))
        event = self.sdk.webhooks.unwrap(body, headers)
        assert isinstance(event, RealtimeCallIncomingWebhookEvent)
        assert event.id == headers["webhook-id"] and event.object == "event"
        self.events.append(event)
        self.deciding.append(asyncio.create_task(self._decide(event.data.call_id)))
        writer.write(f"HTTP/1.1 {self.status} -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        writer.close()

    async def _decide(self, call_id: str) -> None:
        try:
            await self.decides(self.sdk, call_id)
        except Exception as error:
            self.errors.append(error)


@dataclass
class Here:
    pop: Pop
    receiver: Receiver
    phone: Phone

    async def dial(self, **more: Any) -> int:
        return (await self.phone.dial(**more)).code


def agent_file(name: str, url: str = "", **keys: Any) -> str:
    text = f'name = "{name}"\ninstructions = "Be brief."\nlanguage = "en"\n'
    text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items() if key != "hooks")
    hooks = {"incoming_call": url, "secret_env": "INCOMING_SECRET", **keys.get("hooks", {})}
    return text + ("[hooks]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in hooks.items()) if url else "")


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A PoP whose front desk has the receiver; `down`: nobody listens there."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)

    @asynccontextmanager
    async def here(decides: Decides, *, down: bool = False, key: str = "sk-acme", **keys: Any) -> AsyncIterator[Here]:
        http, sip = free_port(), free_port()
        sdk = AsyncOpenAI(api_key=key, base_url=f"http://127.0.0.1:{http}/v1", webhook_secret=SECRET, max_retries=0)
        receiver = Receiver(sdk, decides)
        listening = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
        receiver.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/incoming"
        if down:
            listening.close()
        agents = tmp_path / "agents"
        agents.mkdir()
        (agents / "front-desk.toml").write_text(agent_file("front-desk", receiver.url, **keys))
        (agents / "clinic.toml").write_text(agent_file("clinic"))
        (agents / "night.toml").write_text(agent_file("night"))
        config = configuration.parse({
            "pop": {"id": "fra1", "agents": str(agents), "drain_ms": 0},
            "http": {"port": http},
            "engines": {"asr": "scripted", "llm": "scripted", "tts": "scripted"},
            "sip": {"port": sip},
            "twilio": {"auth_token_env": twilio_provider.ENV},
            "tenants": [{"name": "acme", "key_env": "ACME_KEY"}, {"name": "other", "key_env": "OTHER_KEY"}],
            "routes": [{"tenant": "acme", "agent": "front-desk"}],
        })  # fmt: skip
        async with listening, member(config, None) as pop, Phone(("127.0.0.1", sip)) as phone:
            yield Here(pop, receiver, phone)
            if phone.to_tag:
                await phone.hang_up()
            await asyncio.gather(*receiver.deciding)
            await until(lambda: not pop.calls)

    return here


async def nothing(sdk: AsyncOpenAI, call_id: str) -> None:
    """It has not made up its mind."""


def rejects(**more: Any) -> Decides:
    async def decide(sdk: AsyncOpenAI, call_id: str) -> None:
        await sdk.realtime.calls.reject(call_id, **more)

    return decide


def accepts(**session: Any) -> Decides:
    async def decide(sdk: AsyncOpenAI, call_id: str) -> None:
        await sdk.realtime.calls.accept(call_id, type="realtime", **{"model": "gpt-realtime", **session})

    return decide


TOOL: Any = {"type": "function", "name": "look_up", "description": "Looks up.", "parameters": {"type": "object"}}


async def test_a_call_is_accepted_with_a_session_and_followed_by_its_id(at: Any) -> None:
    seen: list[Any] = []

    async def decide(sdk: AsyncOpenAI, call_id: str) -> None:
        session: Any = {"instructions": "You speak with Ann.", "tools": [TOOL], "model": "clinic"}
        await accepts(**session)(sdk, call_id)
        async with sdk.realtime.connect(extra_query={"call_id": call_id}) as connection:
            seen.append(json.loads(await connection.recv_bytes()))
        await sdk.realtime.calls.hangup(call_id)

    async with at(decide, hooks={"agents": ["clinic"]}) as here:
        headers = [("X-Tier", "gold")]
        assert await here.dial(uri="sip:+49301234@127.0.0.1", headers=headers) == 200
        await here.phone.got("BYE")
        here.phone.to_tag = ""
        [event] = here.receiver.events
        assert abs(event.created_at - time.time()) < 600
        said = {one.name: one.value for one in event.data.sip_headers}
        assert said == {"From": "sip:ann@fra1", "To": "sip:+49301234@fra1", "X-Tier": "gold"} | said
        await until(lambda: seen)
        session = seen[0]["session"]
        assert (session["model"], session["instructions"]) == ("clinic", "You speak with Ann.")
        assert [tool["name"] for tool in session["tools"]] == ["look_up"]
        assert not here.receiver.errors


@pytest.mark.parametrize(("asked", "code"), [({}, 603), ({"status_code": 486}, 486)])
async def test_a_call_is_rejected_with_a_code(at: Any, asked: dict[str, int], code: int) -> None:
    async with at(rejects(**asked)) as here:
        assert await here.dial() == code
        here.phone.to_tag = ""
        assert not here.receiver.errors


async def test_a_call_that_a_directory_has_sent_here_is_rejected_for_all_pops(at: Any) -> None:
    async with at(rejects(status_code=486)) as here:
        assert await here.dial(uri="sip:front@127.0.0.1;vp-call=call_0123456789abcdef") == 600
        here.phone.to_tag = ""


async def test_a_receiver_that_does_not_decide_in_time_leaves_the_call_to_the_file(at: Any) -> None:
    async with at(nothing, hooks={"incoming_call_ms": 300}) as here:
        assert await here.dial() == 200


async def test_one_that_is_down(at: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with at(nothing, down=True) as here:
        assert await here.dial() == 200
    assert "hooks.incoming_call of front-desk: 127.0.0.1 cannot be reached" in caplog.text


async def test_one_that_fails(at: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with at(nothing) as here:
        here.receiver.status = 500
        assert await here.dial() == 200
    assert "answers with HTTP status 500" in caplog.text


async def test_a_caller_who_has_gone_cannot_be_accepted(at: Any) -> None:
    gone = asyncio.Event()

    async def decide(sdk: AsyncOpenAI, call_id: str) -> None:
        await gone.wait()
        await accepts()(sdk, call_id)

    async with at(decide) as here:
        here.phone.invite()
        await until(lambda: here.receiver.events)
        here.phone.request("CANCEL", seq=here.phone.seq, branch=here.phone.branch)
        assert (await here.phone.final("INVITE")).code == 487
        await until(lambda: not here.pop.calls)
        gone.set()
        await until(lambda: here.receiver.errors)
        [error] = here.receiver.errors
        assert isinstance(error, APIStatusError) and error.status_code == 404


@pytest.mark.parametrize(("session", "said"), [
    ({"model": "night"}, "hooks.agents of front-desk does not name 'night'"),
    ({"instructions": "Swear."}, "'instructions' is locked"),
    ({"audio": {"output": {"speed": 9}}}, "speed"),
    ({"tools": [{"type": "mcp", "server_label": "x"}]}, "tools"),
])  # fmt: skip
async def test_a_session_that_cannot_be_had_is_an_error_and_the_call_rings_on(
    at: Any, session: dict[str, Any], said: str
) -> None:
    async def decide(sdk: AsyncOpenAI, call_id: str) -> None:
        with pytest.raises(APIStatusError) as refused:
            await accepts(**session)(sdk, call_id)
        assert refused.value.status_code == 400 and said in refused.value.message
        await rejects(status_code=480)(sdk, call_id)

    async with at(decide, locked=["instructions"], hooks={"agents": ["clinic"]}) as here:
        assert await here.dial() == 480
        here.phone.to_tag = ""
        assert not here.receiver.errors


async def test_only_its_tenant_decides(at: Any) -> None:
    async def decide(sdk: AsyncOpenAI, call_id: str) -> None:
        with pytest.raises(APIStatusError) as refused:
            await accepts()(sdk, call_id)
        assert refused.value.status_code == 404
        await rejects()(sdk.with_options(api_key="sk-acme"), call_id)

    async with at(decide, key="sk-other") as here:
        assert await here.dial() == 603
        here.phone.to_tag = ""
        assert not here.receiver.errors
        async with httpx.AsyncClient(trust_env=False) as client:
            url = f"http://127.0.0.1:{here.pop.config.http.port}/v1/realtime/calls/rtc_fra1.000000000000"
            headers = {"Authorization": "Bearer sk-acme"}
            for what in ("accept", "reject"):
                assert (await client.post(f"{url}/{what}", headers=headers)).status_code == 404
                assert (await client.post(f"{url}/{what}")).status_code == 401


async def test_by_twilio_it_rings_too_and_accept_waits_for_the_stream(at: Any) -> None:
    accepted = asyncio.Event()

    async def decide(sdk: AsyncOpenAI, call_id: str) -> None:
        await accepts(instructions="You speak with Ann.")(sdk, call_id)
        accepted.set()
        async with sdk.realtime.connect(extra_query={"call_id": call_id}) as connection:
            session = json.loads(await connection.recv_bytes())["session"]
            assert session["instructions"] == "You speak with Ann."
        await sdk.realtime.calls.hangup(call_id)

    async with at(decide) as here:
        address = f"127.0.0.1:{here.pop.config.http.port}"
        form = {"CallSid": "CA1", "From": "+1555", "To": "+4930123", "SipHeader_X-Tier": "gold"}
        [connect] = verbs(await twilio_provider.post(f"http://{address}/twilio/voice", form))
        assert connect.tag == "Connect" and here.pop.calls == 1 and not accepted.is_set()
        [event] = here.receiver.events
        said = [(one.name, one.value) for one in event.data.sip_headers]
        assert said == [("From", "sip:+1555@fra1"), ("To", "sip:+4930123@fra1"), ("X-Tier", "gold")]
        async with twilio_provider.streaming(connect[0].get("url") or "") as stream:
            await stream.start({one.get("name", ""): one.get("value", "") for one in connect[0]})
            await stream.closed.wait()
        assert accepted.is_set() and not here.receiver.errors


async def test_by_twilio_a_rejected_call_is_busy(at: Any) -> None:
    async with at(rejects(status_code=486)) as here:
        url = f"http://127.0.0.1:{here.pop.config.http.port}/twilio/voice"
        [reject] = verbs(await twilio_provider.post(url, {"CallSid": "CA1", "From": "+1555", "To": "+4930123"}))
        assert (reject.tag, reject.get("reason")) == ("Reject", "busy")


async def test_by_twilio_the_record_says_that_nobody_has_decided_in_time(
    at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twilio, "ASKED_MS", 50)
    runs: list[HookRun] = []
    monkeypatch.setattr("voicepipe.pop.pop._AdmittedCall.hook_has_run", lambda slot, run: runs.append(run))
    async with at(nothing) as here:
        url = f"http://127.0.0.1:{here.pop.config.http.port}/twilio/voice"
        [connect] = verbs(await twilio_provider.post(url, {"CallSid": "CA1", "From": "+1555", "To": "+4930123"}))
        assert connect.tag == "Connect"
        [run] = runs
        assert run.outcome == "timeout"
        assert run.why == (
            "the call was not accepted within 50 ms, the most that a caller may wait here: accept it sooner"
        )


async def test_by_websocket_nobody_is_told(at: Any) -> None:
    async with at(rejects()) as here:
        async with here.receiver.sdk.realtime.connect(model="front-desk") as connection:
            assert json.loads(await connection.recv_bytes())["type"] == "session.created"
        assert not here.receiver.events


def test_what_a_caller_writes_is_data() -> None:
    hostile = Origin('"><sip:x@y>;tag=1\r\nEvil: 1', "+49 30", {f"X-{n}": "v" * 5000 for n in range(200)})
    event_id, body = _event("rtc_fra1.000000000000", hostile, "fra1")
    event = json.loads(body)
    assert event["id"] == event_id
    headers = event["data"]["sip_headers"]
    assert headers[0]["value"] == "sip:%22%3E%3Csip%3Ax%40y%3E%3Btag%3D1%0D%0AEvil%3A%201@fra1"
    assert len(headers) == MOST_HEADERS and max(len(one["value"]) for one in headers) == LONGEST
    _, body = _event("rtc_fra1.000000000000", Origin("\udcff1", "", {"X-A": "\udcff", "X-\udcff": ""}), "fra1")
    assert [one["value"] for one in json.loads(body)["data"]["sip_headers"]] == ["sip:%3F1@fra1", "sip:@fra1", "?", ""]


def test_a_session_that_a_changed_agent_does_not_allow_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    settings = CallSettings.of(Agent("desk", instructions="Be kind.", locked=("instructions",)), Origin("+1"))
    assert with_session(settings, b'{"instructions": "Swear."}') == settings
    assert "is left out: " in caplog.text
    changed = with_session(settings, b'{"audio": {"output": {"speed": 1.5}}}')
    assert (changed.speed, changed.origin) == (1.5, Origin("+1"))

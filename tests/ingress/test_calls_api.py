"""Calls in progress: listed, found, transferred; by their own tenant alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from tests.ingress.fake_pop import FakePop
from tests.support.waiting import until
from voicepipe.base.errors import KeysFailed, TransferFailed
from voicepipe.base.token_bucket import Rate
from voicepipe.call_api import Tenant
from voicepipe.call_settings import CallSettings, Origin
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.realtime.clients import RealtimeClients
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import PcmFormat, Session
from voicepipe.ingress.telephony.telephony_http import Providers
from voicepipe.line import OnKeys
from voicepipe.pop import pop_http
from voicepipe.rtp.clock import MediaClock
from voicepipe.rtp.transport import UdpNetwork
from voicepipe.turn.keypad import MOST

ACME, OTHER = Tenant("acme"), Tenant("other")
ORIGIN = Origin("+4930123456", "+4930999", {"X-Account": "42"})


class PhoneLine(WebSocketLine):
    kind = "sip"
    transfers = True


class PhoneCall:
    """A call that was adopted, without the phone."""

    def __init__(self, pop: FakePop, line: WebSocketLine, origin: Origin) -> None:
        settings = msgspec.structs.replace(CallSettings.of(pop.agent(None)), origin=origin)
        self.hosted = HostedCall(line, pop, settings, pop.config.limits)

    async def run(self, clock: MediaClock) -> None:
        await self.hosted.run()


@asynccontextmanager
async def holding(pop: FakePop, *lines: WebSocketLine) -> AsyncIterator[tuple[httpx.AsyncClient, list[PhoneCall]]]:
    """A client of the PoP's API, and a call of acme's on each of `lines`."""
    calls = Calls()
    running = asyncio.create_task(calls.run())
    await asyncio.sleep(0)
    adopted = [PhoneCall(pop, line, ORIGIN) for line in lines]
    for call in adopted:
        calls.adopt(call, Caller(ACME), ExitStack())
    await asyncio.sleep(0.01)
    app = await asyncio.to_thread(pop_http.app, pop, calls, UdpNetwork(("127.0.0.1",)), Providers(pop, calls))
    transport = httpx.ASGITransport(app)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            client.headers["authorization"] = "Bearer sk-acme"
            yield client, adopted
    finally:
        running.cancel()
        await asyncio.wait({running})


def line(kind: type[WebSocketLine] = PhoneLine) -> WebSocketLine:
    format = Session.of(CallSettings.of(FakePop().agent(None)), id="", expires_at=0).audio.input.format
    return kind(format, format)


@pytest.fixture
def pop() -> FakePop:
    return FakePop(keys={"sk-acme": ACME, "sk-other": OTHER})


async def listed(client: httpx.AsyncClient, **said: Any) -> list[dict[str, Any]]:
    answer = (await client.get("/v1/realtime/calls", **said)).json()
    assert answer["object"] == "list"
    return list(answer["data"])


async def test_a_program_finds_its_calls(pop: FakePop) -> None:
    async with holding(pop, line(), line()) as (client, (first, second)):
        rows = await listed(client)
        assert [row["id"] for row in rows] == [first.hosted.id, second.hosted.id]
        assert rows[0].pop("since") > 1_600_000_000
        assert rows[0] == {
            "id": pop.calls[0].id, "kind": "sip", "agent": "front-desk", "caller": "+4930123456", "called": "+4930999",
        }  # fmt: skip
        assert await listed(client, headers={"authorization": "Bearer sk-other"}) == []
        assert (await client.post(f"/v1/realtime/calls/{first.hosted.id}/hangup")).status_code == 200
        await asyncio.sleep(0.05)
        assert [row["id"] for row in await listed(client)] == [second.hosted.id]


async def test_a_program_transfers_a_call(pop: FakePop) -> None:
    async with holding(pop, line()) as (client, (call,)):
        path = f"/v1/realtime/calls/{call.hosted.id}/refer"
        for target in ("tel:+14155550123", "sip:ann@example.com;transport=tls"):
            assert (await client.post(path, json={"target_uri": target})).status_code == 200
        assert pop.calls[0].transferred == ["tel:+14155550123", "sip:ann@example.com;transport=tls"]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b"{}", "missing_required_parameter"),
        (b'{"target_uri": 5}', "invalid_type"),
        (b'{"target_uri": "+14155550123"}', "invalid_value"),
        (b'{"target_uri": "https://example.com"}', "invalid_value"),
        (b'{"target_uri": "tel:ann"}', "invalid_value"),
        (b'{"target_uri": "sip:a@b>\\r\\nX: y"}', "invalid_value"),
    ],
)
async def test_what_is_no_target(pop: FakePop, sent: bytes, code: str) -> None:
    async with holding(pop, line()) as (client, (call,)):
        answer = await client.post(f"/v1/realtime/calls/{call.hosted.id}/refer", content=sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
        assert not pop.calls[0].transferred


async def test_a_call_that_is_over_is_not_transferred(pop: FakePop) -> None:
    async with holding(pop, line()) as (_, (call,)):
        early = PhoneCall(pop, line(), ORIGIN).hosted
        with pytest.raises(TransferFailed, match="not in progress"):
            early.transfer("tel:+1")
        early.close()
        call.hosted.end("agent")
        await call.hosted.hung_up.wait()
        await asyncio.sleep(0.05)
        with pytest.raises(TransferFailed, match="not in progress"):
            call.hosted.transfer("tel:+1")


async def test_a_line_that_cannot_transfer_says_so(pop: FakePop) -> None:
    async with holding(pop, line(WebSocketLine)) as (client, (call,)):
        path = f"/v1/realtime/calls/{call.hosted.id}/refer"
        answer = await client.post(path, json={"target_uri": "tel:+1"})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "transfer_failed")
        assert error["message"] == (
            "The call was not transferred: this caller cannot be transferred: only phone calls can."
        )


class Keypad(PhoneLine):
    """A line that can be sent keys."""

    digits = ""

    @property
    def lacks_keys(self) -> str:
        return ""

    async def _dial(self, keys: str, on_sent: OnKeys) -> None:
        self.digits += keys


async def test_a_program_sends_keys(pop: FakePop) -> None:
    taken = Keypad(PcmFormat(), PcmFormat())
    async with holding(pop, taken) as (client, (call,)):
        path = f"/v1/realtime/calls/{call.hosted.id}/dtmf"
        assert (await client.post(path, json={"digits": "12#"})).status_code == 200
        assert (await client.post(path, json={"digits": "AD*" + "0" * 37})).status_code == 200
        await until(lambda: taken.digits == "12#AD*" + "0" * 37)
        for digits in ("", "12 3", "E", "a", "1" * 41):
            answer = await client.post(path, json={"digits": digits})
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, "digits")
        for sent, code in ((b"{}", "missing_required_parameter"), (b"{", "invalid_json")):
            answer = await client.post(path, content=sent)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
        other = {"authorization": "Bearer sk-other"}
        assert (await client.post(path, json={"digits": "1"}, headers=other)).status_code == 404
        assert len(taken.digits) == 43


async def test_a_line_without_a_telephone_takes_no_keys(pop: FakePop) -> None:
    async with holding(pop, line()) as (client, (call,)):
        answer = await client.post(f"/v1/realtime/calls/{call.hosted.id}/dtmf", json={"digits": "1"})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "dtmf_failed")
        assert error["message"] == "Keys are sent to telephones, and this caller has none."
        call.hosted.close()
        with pytest.raises(KeysFailed, match="not in progress"):
            call.hosted.send_keys("1")
        call.hosted.end("agent")


async def test_only_the_tenants_own_key_may(pop: FakePop) -> None:
    async with holding(pop, line()) as (client, (call,)):
        path = f"/v1/realtime/calls/{call.hosted.id}/refer"
        made = await client.post("/v1/realtime/client_secrets", json={})
        browser = {"authorization": f"Bearer {made.json()['value']}"}
        other = {"authorization": "Bearer sk-other"}
        target = {"target_uri": "tel:+1"}
        assert (await client.post(path, json=target, headers=browser)).status_code == 401
        assert (await client.get("/v1/realtime/calls", headers=browser)).status_code == 401
        keys = await client.post(path.replace("refer", "dtmf"), json={"digits": "1"}, headers=browser)
        assert keys.status_code == 401
        assert (await client.post(path, json=target, headers=other)).status_code == 404
        assert (await client.get("/v1/realtime/calls", headers={"authorization": "Bearer no"})).status_code == 401
        assert not pop.calls[0].transferred


async def test_keys_are_told_to_programs_beside_the_call(pop: FakePop) -> None:
    async with holding(pop, line()) as (_, (call,)):
        clients = RealtimeClients.of(call.hosted)
        beside = clients.join(lambda: None)
        call.hosted.press("5")
        clients.leave(beside)
        told = []
        while (message := await beside.get()) is not None:
            told.append(msgspec.json.decode(message))
        assert (told[-1]["type"], told[-1]["event"]) == ("input_audio_buffer.dtmf_event_received", "5")


async def test_keys_before_a_call_runs_are_pressed_then_as_many_as_one_turn_has(
    pop: FakePop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voicepipe.ingress.hosted_call.KEYS", Rate(1000, 0))
    call = PhoneCall(pop, line(), ORIGIN)
    beside = RealtimeClients.of(call.hosted).join(lambda: None)
    for key in "12" * MOST:
        call.hosted.press(key)
    running = asyncio.create_task(call.hosted.run())
    await asyncio.sleep(0.01)
    call.hosted.press("#")
    call.hosted.end("caller")
    await running
    told = []
    while (message := await beside.get()) is not None:
        told.append(msgspec.json.decode(message).get("event"))
    assert "".join(filter(None, told)) == "12" * (MOST // 2) + "#"

"""Each door tells the PoP of each call that it refuses, once: why, whose, and what the caller was given."""

from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import calling, phone, sip
from tests.ingress.sip.test_sip_access import DESK, ELSEWHERE, TRUNK, logged_in
from tests.ingress.telephony import telnyx_provider, test_twilio
from tests.ingress.telephony.telnyx_provider import telnyx
from tests.ingress.telephony.twilio_provider import ENV, TOKEN, post, streaming
from tests.ingress.webrtc.peer import web
from tests.ingress.webrtc.test_webrtc_http import HEAD
from tests.pop.test_pop_http import bearer, keyed
from tests.support.waiting import until
from voicepipe.base.errors import (
    Draining,
    EngineDown,
    NoPort,
    OverShare,
    PopFull,
    PopLate,
    Reason,
    Refused,
    SessionMissing,
    TenantFull,
)
from voicepipe.call_api import DoorKind, Refusal
from voicepipe.config.phone_config import RouteConfig

FULL = PopFull("All slots are taken.")
BY_THE_POP: list[tuple[Refused, Reason, int, int]] = [
    (FULL, "full", 503, 503),
    (PopLate("Late."), "late", 503, 503),
    (TenantFull("All slots of acme are taken."), "tenant_full", 503, 486),
    (Draining("It is being shut down."), "draining", 503, 503),
    (EngineDown("An engine is down."), "engine_down", 503, 503),
    (NoPort("No port."), "no_port", 503, 503),
    (OverShare("Too much."), "too_many_requests", 429, 503),
    (SessionMissing("Nothing came."), "not_briefed", 503, 503),
]
"""Why, and what is told by HTTP and by SIP."""


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_PASSWORD", "s3cret")
    monkeypatch.setenv(ENV, TOKEN)


def refusing(pop: FakePop, error: Exception | None) -> FakePop:
    pop.refuse = error
    return pop


async def asked(door: DoorKind, address: str, query: str = "?model=front-desk", **headers: str) -> int:
    """A program asks for a call; the status that it gets."""
    if door == "webrtc":
        async with web(address) as client:
            return (await client.post(f"/v1/realtime/calls{query}", content=HEAD,
                                      headers={"Content-Type": "application/sdp"} | headers)).status_code  # fmt: skip
    origin = Origin(headers.pop("Origin")) if "Origin" in headers else None
    url = f"ws://{address}/v1/realtime{query}"
    try:
        async with connect(url, proxy=None, additional_headers=headers, origin=origin) as socket:
            await socket.recv()
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


HTTP: list[DoorKind] = ["websocket", "webrtc"]


@pytest.mark.parametrize("door", HTTP)
@pytest.mark.parametrize(("error", "reason", "status", "_"), BY_THE_POP)
async def test_by_http_for_want_of_a_place(
    door: DoorKind, error: Exception, reason: Reason, status: int, _: int
) -> None:
    pop = refusing(FakePop(), error)
    async with serving(pop) as address:
        assert await asked(door, address) == status
    assert pop.refusals == [Refusal(reason, door, "local", "front-desk", status)]


@pytest.mark.parametrize("door", HTTP)
@pytest.mark.parametrize(
    ("key", "refusal"),
    [
        ({}, ("unauthorized", "", "", 401)),
        (bearer("sk-guess"), ("unauthorized", "", "", 401)),
        (bearer("ek_guess"), ("unauthorized", "", "", 401)),
        (bearer("sk-clinic"), ("unknown_agent", "clinic", "", 404)),
    ],
)
async def test_by_http_for_want_of_a_right(
    door: DoorKind, key: dict[str, str], refusal: tuple[Reason, str, str, int]
) -> None:
    pop, (reason, tenant, agent, status) = keyed(), refusal
    async with serving(pop) as address:
        assert await asked(door, address, **key) == status
    assert pop.refusals == [Refusal(reason, door, tenant, agent, status)]


@pytest.mark.parametrize("door", HTTP)
async def test_pages_of_others(door: DoorKind) -> None:
    pop = FakePop()
    async with serving(pop) as address:
        assert await asked(door, address, Origin="http://evil.example") == 403
        async with web(address) as client:  # Who asks for no call is refused none.
            assert (await client.get("/v1/models", headers={"Origin": "http://evil.example"})).status_code == 403
            assert (await client.get("/v1/realtime/calls", headers={"Origin": "http://x"})).status_code == 403
        assert await asked("websocket", address, "?call_id=rtc_1", Origin="http://evil.example") == 403
    assert pop.refusals == [Refusal("forbidden", door, status=403)]


async def test_offers_that_make_no_call() -> None:
    pop = FakePop()
    async with serving(pop) as address, web(address) as client:
        assert (await client.post("/v1/realtime/calls", json={"sdp": "v=0"})).status_code == 400
        assert await asked("webrtc", address) == 400
    assert pop.refusals == [
        Refusal("bad_request", "webrtc", "local", status=400),
        Refusal("not_acceptable", "webrtc", "local", "front-desk", 400),
    ]


async def test_a_call_that_is_taken_and_one_that_is_only_listened_to_are_not_refused() -> None:
    pop = keyed()
    async with serving(pop) as address:
        assert await asked("websocket", address, **bearer("sk-acme")) == 101
        assert await asked("websocket", address, "?call_id=rtc_1", **bearer("sk-acme")) == 404
        assert await asked("websocket", address, "?call_id=rtc_1") == 401
    assert pop.refusals == []


async def test_a_fault_of_ours() -> None:
    pop = refusing(FakePop(), RuntimeError("a fault"))
    async with calling(refusing(FakePop(sip()), pop.refuse)) as ann:
        assert (await ann.dial()).code == 500
    async with serving(pop) as address:
        assert await asked("webrtc", address) == 500
    assert pop.refusals == [Refusal("error", "webrtc", "local", "front-desk", 500)]


@pytest.mark.parametrize(("error", "reason", "_", "code"), BY_THE_POP)
async def test_by_sip_for_want_of_a_place(error: Exception, reason: Reason, _: int, code: int) -> None:
    pop = refusing(FakePop(sip()), error)
    async with calling(pop) as ann:
        assert (await ann.dial()).code == code
    assert pop.refusals == [Refusal(reason, "sip", "local", "front-desk", code)]


NO_CODEC = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 18\r\n"


@pytest.mark.parametrize(
    ("settings", "invite", "refusal"),
    [
        ({"trunks": (ELSEWHERE,)}, {}, Refusal("forbidden", "sip", status=403)),
        ({}, {"body": NO_CODEC}, Refusal("not_acceptable", "sip", "local", "front-desk", 488)),
        ({}, {"body": "x", "kind": "text/plain"}, Refusal("not_acceptable", "sip", "local", "front-desk", 415)),
        ({}, {"headers": [("Require", "100rel")]}, Refusal("not_acceptable", "sip", status=420)),
        ({}, {"uri": "sip:nobody@127.0.0.1"}, Refusal("no_route", "sip", status=404)),
    ],
)
async def test_invites_that_make_no_call(settings: Any, invite: Any, refusal: Refusal) -> None:
    config = msgspec.structs.replace(sip(**settings), routes=(RouteConfig(called="front"),))
    pop = FakePop(config)
    async with calling(pop) as ann:
        assert (await ann.dial(**invite)).code == refusal.status
        ann.request("OPTIONS", [("Require", "100rel")])
        await ann.final("OPTIONS")
    assert pop.refusals == [refusal]


async def test_wrong_passwords() -> None:
    pop = FakePop(sip(users=(DESK,)))
    async with calling(pop) as ann:
        assert (await logged_in(ann, "INVITE", password="guess")).code == 403
    assert pop.refusals == [Refusal("unauthorized", "sip", status=403)], "that a password is asked for is no refusal"


async def test_a_trunk_with_all_its_calls() -> None:
    pop = FakePop(sip(trunks=(msgspec.structs.replace(TRUNK, calls=1),)))
    async with serving(pop), phone(pop) as ann, phone(pop) as ben:
        assert (await ann.dial()).code == 200
        assert (await ben.dial()).code == 486
        await ann.hang_up()
    assert pop.refusals == [Refusal("sender_full", "sip", "local", "front-desk", 486)]


async def test_an_invite_that_cannot_be_read() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.contact = "<sip:"  # The parser reads it, and we do not.
        ann.invite()
        await until(lambda: pop.refusals)
        ann.contact, ann.call_id = "", "another"
        sent = ann.request("OPTIONS", to_tag="ours")
        ann.send(sent.replace(b"OPTIONS", b"INVITE").replace(b";tag=ours", b"").replace(b"Max-Forwards: 70", b"Via: x"))
        await until(lambda: len(pop.refusals) > 1)
    assert pop.refusals == [
        Refusal("bad_request", "sip", "local", "front-desk", 400),
        Refusal("bad_request", "sip", status=400),
    ]


async def test_a_call_that_rings_while_the_pop_is_shut_down() -> None:
    pop = FakePop(sip(ring_ms=60_000))
    async with phone(pop) as ann:
        async with serving(pop):
            ann.invite()
            await ann.got("INVITE", 180)
            pop.live = 0  # It ends with the server.
    assert pop.refusals == [Refusal("draining", "sip", "local", "front-desk", 503)]


async def test_what_twilio_has_not_signed() -> None:
    pop = test_twilio.opened()
    async with serving(pop) as address:
        forged = {"X-Twilio-Signature": "bm9wZQ=="}
        assert (await post(f"http://{address}/twilio/voice", test_twilio.CALL, forged)).status_code == 403
        with pytest.raises(InvalidStatus):
            await connect(f"ws://{address}/twilio/stream", additional_headers=forged, proxy=None)
        async with streaming(f"ws://{address}/twilio/stream") as stream:
            await stream.start({"voicepipe": "guess"})
            await stream.closed.wait()
    assert pop.refusals == [Refusal("bad_signature", "twilio", status=status) for status in (403, 403, 1008)]


async def test_calls_by_twilio_without_a_place_or_a_route() -> None:
    pop = test_twilio.opened(RouteConfig(called="+49*"))
    async with serving(pop) as address, streaming(f"ws://{address}/twilio/stream") as stream:
        parameters = await test_twilio.rung(address)
        refusing(pop, FULL)
        await stream.start(parameters)
        await stream.closed.wait()
        await post(f"http://{address}/twilio/voice", test_twilio.CALL | {"CallSid": "CA2"})
        await post(f"http://{address}/twilio/voice", test_twilio.CALL | {"CallSid": "CA3", "To": "+33"})
    assert pop.refusals == [
        Refusal("full", "twilio", "local", "front-desk", 1008),
        Refusal("full", "twilio", "local", "front-desk"),
        Refusal("no_route", "twilio"),
    ]


async def test_calls_by_telnyx() -> None:
    async with telnyx(RouteConfig(called="+33*")) as (pop, _, address):
        await telnyx_provider.post(address, "call.initiated", direction="incoming", to="+49")
        refusing(pop, FULL)
        await telnyx_provider.post(address, "call.initiated", direction="incoming", to="+33")
        assert await telnyx_provider.post(address, "call.initiated", age=400, direction="incoming") == 403
        async with web(address) as client:
            assert (await client.post("/telnyx/voice", content=b"x" * 70_000)).status_code == 400
    assert pop.refusals == [
        Refusal("no_route", "telnyx"),
        Refusal("full", "telnyx", "local", "front-desk"),
        Refusal("bad_signature", "telnyx", status=403),
        Refusal("bad_request", "telnyx", status=400),
    ]

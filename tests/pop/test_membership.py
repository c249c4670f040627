"""A PoP among others: whom it lets in, what it says to those it turns away, and what it is ordered."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import websockets
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.directory.fleets import FRANKFURT, LONDON, LONG_S, VIRGINIA, fleet, obeys, public_key, settings
from tests.directory.reports import condition, report
from tests.ingress.fake_pop import FakePop
from tests.support.waiting import until
from voicepipe.base.errors import (
    CallFull,
    ConfigError,
    Draining,
    EngineDown,
    NoPort,
    OverShare,
    PopFull,
    Refused,
    TenantFull,
    Unauthorized,
    UnknownCall,
)
from voicepipe.base.places import Place
from voicepipe.call_api import Alternate
from voicepipe.config import Config, HttpConfig
from voicepipe.config.fleet_config import FleetConfig
from voicepipe.directory import key_sessions
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.directory.key_sessions import KeySessions
from voicepipe.directory.router import alternates
from voicepipe.ingress.access import AccessControl
from voicepipe.ingress.api_keys import ClientSecrets
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.loopback_only import API, LocalOnly, check_exposure
from voicepipe.ingress.telephony.telephony_http import Providers
from voicepipe.pop.pop_http import app
from voicepipe.rtp.transport import UdpNetwork


@pytest.fixture
def public(tmp_path: Path) -> str:
    return public_key(tmp_path)


# --- who gets in


def local(**options: Any) -> Starlette:
    async def answered(request: Request) -> PlainTextResponse:
        return PlainTextResponse("in")

    paths = [Route(path, answered) for path in ("/rtt", "/dashboard", "/v1/realtime", "/v1/models", "/v1/dashboard")]
    app = Starlette(routes=paths)
    app.add_middleware(LocalOnly, log=lambda *_: None, **options)
    return app


async def status(app: Starlette, path: str, client: str = "198.51.100.7", **headers: str) -> int:
    transport = httpx.ASGITransport(app, client=(client, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asking:
        return (await asking.get(path, headers=headers)).status_code


async def test_a_token_lets_another_machine_into_the_api_and_nowhere_else() -> None:
    app = local(public=("/rtt",), tokens=True)
    token = {"Authorization": "Bearer vp_some.to.ken"}
    assert await status(app, "/v1/realtime", **token) == 200
    assert await status(app, "/v1/models?token=vp_some.to.ken") == 200
    assert await status(app, "/rtt") == 200
    for path in ("/dashboard", "/v1/dashboard"):
        assert await status(app, path, **token) == 403, "its endpoint asks for no token"
    for path in ("/v1/realtime", "/v1/models"):
        assert await status(app, path) == 403, "whatever Host says"
        assert await status(app, path, client="127.0.0.1") == 200
    assert await status(local(), "/v1/realtime", **token) == 403


def test_a_pop_of_a_fleet_may_be_reached_by_others_without_keys_of_its_own() -> None:
    everywhere = HttpConfig(host="0.0.0.0")
    check_exposure(Config(http=everywhere, fleet=FleetConfig(keys=("directory.pub.pem",))))
    with pytest.raises(ConfigError, match="no tenant has a key"):
        check_exposure(Config(http=everywhere))


@pytest.mark.e2e
async def test_every_endpoint_that_a_token_reaches_asks_whose_it_is(public: str) -> None:
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT)) as (_, (pop,)):
        routes = await asyncio.to_thread(
            lambda: app(pop, Calls(), UdpNetwork(("127.0.0.1",)), Providers(pop, Calls())).routes
        )
        reached = [route for route in routes if isinstance(route, Route) and route.path.startswith(API)]
        assert len(reached) > 8
        base = f"http://127.0.0.1:{pop.config.http.port}"
        async with httpx.AsyncClient(base_url=base, headers={"Authorization": "Bearer vp_for.g.ed"}) as client:
            for route in reached:
                for method in route.methods or ():
                    answer = await client.request(method, route.path.format(call_id="rtc_x", model_id="x"))
                    assert answer.status_code == 401, route.path


@pytest.mark.e2e
async def test_a_page_from_anywhere_may_bring_a_token_and_measure(public: str) -> None:
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT)) as (_, (pop,)):
        page = {"Origin": "https://directory.example"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{pop.config.http.port}") as client:
            answer = await client.get("/rtt", headers=page)
            assert (answer.status_code, answer.content) == (204, b"")
            assert answer.headers["timing-allow-origin"] == answer.headers["access-control-allow-origin"] == "*"
            assert answer.headers["cache-control"] == "no-store"
            asks = {**page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
            assert (await client.options("/v1/realtime/calls", headers=asks)).status_code == 200
            assert (await client.post("/v1/realtime/calls", headers=page)).status_code == 403


@pytest.mark.e2e
async def test_a_load_balancer_of_another_machine_may_ask_how_a_pop_is(public: str) -> None:
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT)) as (_, (pop,)):
        port = pop.config.http.port
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"Host": "fra1.example"}) as client:
            assert (await client.get("/readyz")).status_code == (await client.get("/healthz")).status_code == 200
            assert (await client.get("/v1/models")).status_code == 403


# --- who is turned away


@pytest.mark.e2e
async def test_a_full_pop_names_others(public: str) -> None:
    configs = [settings("fra", public, FRANKFURT, pop={"slots": 1}), settings("iad", public, VIRGINIA),
               settings("lhr", public, LONDON)]  # fmt: skip
    async with asyncio.timeout(LONG_S), fleet(*configs) as (_, (fra, _, _)):
        await until(lambda: len(fra.tokens.alternates()) == 2)  # type: ignore[union-attr]
        url = configs[0].fleet.url.replace("http", "ws") + "/v1/realtime"
        first = await websockets.connect(url, max_queue=None)
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(url)
        said = json.loads(refused.value.response.body)
        assert said["error"]["code"] == "pop_full"
        assert said["alternates"] == [{"pop": config.pop.id, "url": config.fleet.url} for config in configs[:0:-1]]
        await first.close()


class Knows:
    """Of `call_api.Tokens`: where else a caller may go."""

    def alternates(self) -> list[Alternate]:
        return [Alternate("lhr", "https://lhr.example")]


@pytest.mark.parametrize(("error", "named"), [
    (PopFull("x"), True), (TenantFull("x"), True), (NoPort("x"), True), (Draining("x"), True), (EngineDown("x"), True),
    (Unauthorized("x"), False), (OverShare("x"), False), (UnknownCall("x"), False), (CallFull("x"), False),
])  # fmt: skip
def test_others_are_named_wherever_room_is_what_is_missing(error: Refused, named: bool) -> None:
    doors = AccessControl(FakePop(), ClientSecrets(), tokens=Knows())  # type: ignore[arg-type]
    request = Request({"type": "http", "path": "/v1/realtime/calls", "headers": []})
    said = json.loads(bytes(doors.refuse(request, error).body))
    assert said.get("alternates") == ([{"pop": "lhr", "url": "https://lhr.example"}] if named else None)


def seen(pop: str, **changes: Any) -> SeenPop:
    return SeenPop(pop, msgspec.structs.replace(report(), condition=condition(**changes)), age_s=0.1, pending=0)


def test_alternates_are_the_nearest_that_have_room_within_the_zone() -> None:
    here = condition(place=Place(*FRANKFURT))
    near, far = seen("lhr", place=Place(*LONDON)), seen("waw", place=Place(52.2, 21.0))
    full, away = seen("ams", place=Place(52.4, 4.9), calls=36), seen("iad", place=Place(*VIRGINIA), zone="us")
    draining = seen("par", place=Place(48.9, 2.4), status="draining")
    assert [other.pop for other in alternates([far, full, away, draining, near], here)] == ["lhr", "waw"]
    nowhere = condition(place=Place(*FRANKFURT), zone="")
    assert [other.pop for other in alternates([far, away, near], nowhere)] == ["lhr", "waw"]


# --- what directories say


async def test_a_briefing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeySessions()
    asking = asyncio.create_task(kept.get("acme", "call_1"))
    await asyncio.sleep(0.01)
    await kept.put("acme", "call_2", b"{}")
    await kept.put("clinic", "call_1", b"{}")
    assert not asking.done()
    await kept.put("acme", "call_1", b'{"voice": "x"}')
    assert await asking == b'{"voice": "x"}'
    monkeypatch.setattr(key_sessions, "WAIT_S", 0.01)
    assert await kept.get("acme", "call_3") is None


async def test_one_tenants_briefings_push_out_none_of_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_sessions, "WAIT_S", 0.01)
    monkeypatch.setattr(key_sessions, "KEPT_BYTES", 1000)
    kept = KeySessions()
    await kept.put("clinic", "call_0", b"z" * 100)
    for number in range(100):
        await kept.put("acme", f"call_{number}", b"x" * 100)
        await kept.put("acme", f"call_{number}", b"y" * 100)
    assert await kept.get("acme", "call_99") == b"y" * 100
    assert await kept.get("acme", "call_89") is None
    assert await kept.get("clinic", "call_0") == b"z" * 100


async def test_briefings_are_forgotten_once_no_token_can_be_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_sessions, "WAIT_S", 0.01)
    now = 0.0
    kept = KeySessions(lambda: now)
    await kept.put("acme", "call_1", b"{}")
    now = key_sessions.KEPT_S
    await kept.put("acme", "call_2", b"{}")
    assert await kept.get("acme", "call_1") is None
    assert await kept.get("acme", "call_2") == b"{}"


@pytest.mark.e2e
async def test_orders_that_cannot_be_read_change_nothing(public: str, caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT)) as (directory, (pop,)):
        bus = directory._bus
        for data in (b"", b"{}", b'{"do": "fly"}', b"\xff", b"[" * 5000):
            await bus.publish("vp.cmd.fra", data)
            await bus.publish("vp.brief.fra", data)
        await bus.publish("vp.cmd.lhr", b'{"do": "drain"}')
        await asyncio.sleep(0.05)
        assert pop.membership and not pop.membership.dismissed.is_set()
        assert "cannot be read" in caplog.text
        obeying = asyncio.create_task(obeys(pop))
        await directory.drain("fra")
        await obeying

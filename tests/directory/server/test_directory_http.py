"""A directory's HTTP API, in the process."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.directory.reports import FRANKFURT
from tests.directory.server.in_process import KEY, asking, three_pops, told
from voicepipe.directory.bus import BusMessage
from voicepipe.directory.directory import Directory
from voicepipe.directory.tokens import TokenVerifier, audience

EPOCH = 1_700_000_000_000


@pytest.fixture
def directory() -> Directory:
    return three_pops()


@pytest_asyncio.fixture
async def client(directory: Directory) -> AsyncIterator[httpx.AsyncClient]:
    async with asking(directory) as made:
        yield made


async def test_a_caller_is_told_where_to_call_with_a_token_for_each_place(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/calls", json={"kind": "websocket"})
    assert answer.status_code == 200
    said = answer.json()
    assert [candidate["pop"] for candidate in said["candidates"]] == ["fra", "lhr", "iad"]
    assert said["degraded"] is False
    assert said["expires_in"] == 60
    assert answer.headers["cache-control"] == "no-store"
    gate = TokenVerifier(audience("fra", EPOCH), {"k": KEY.public_key()}, lambda: EPOCH / 1000)
    grant = gate.read(said["candidates"][0]["token"])
    assert (grant.id, grant.tenant, grant.agents, grant.slots) == (said["call_id"], "acme", ("front-desk",), 3)


async def test_a_token_allows_what_was_asked_for_and_no_more(client: httpx.AsyncClient, directory: Directory) -> None:
    both = {"front-desk": "en", "clinic": "en"}
    directory.take(told("fra", place=FRANKFURT, agents=both, seq=9))
    gate = TokenVerifier(audience("fra", EPOCH), {"k": KEY.public_key()}, lambda: EPOCH / 1000)
    asked = {"kind": "webrtc", "require": {"agent": "clinic"}}
    answer = await client.post("/v1/calls", json=asked, headers={"Authorization": "Bearer k-clinic"})
    grant = gate.read(answer.json()["candidates"][0]["token"])
    assert (grant.kind, grant.agents) == ("webrtc", ("clinic",))
    refused = await client.post("/v1/calls", json=asked)
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")
    assert "'clinic'" in refused.json()["error"]["message"]


async def test_where_the_caller_is_and_what_they_need_decide(client: httpx.AsyncClient) -> None:
    async def first(**asked: Any) -> str:
        answer = await client.post("/v1/calls", json=asked)
        return str(answer.json()["candidates"][0]["pop"])

    assert await first(place={"latitude": 40.7, "longitude": -74.0}) == "iad"
    assert await first(rtt_ms={"lhr": 3}) == "lhr"
    assert await first(require={"language": "de"}) == "iad"
    assert await first(require={"zone": "uk"}) == "lhr"
    assert await first(tried=["fra"]) == "lhr"


async def test_pops_of_unknown_place_are_the_last_to_be_measured(
    client: httpx.AsyncClient, directory: Directory
) -> None:
    directory.take(told("ams", place=None))
    rows = (await client.get("/v1/regions")).json()["regions"]
    assert [row["pop"] for row in rows] == ["fra", "lhr", "iad", "ams"]


async def test_a_tenants_zone_holds_whatever_the_caller_asks_for(
    client: httpx.AsyncClient, directory: Directory
) -> None:
    headers = {"Authorization": "Bearer k-clinic"}
    answer = await client.post("/v1/calls", headers=headers)
    assert [candidate["pop"] for candidate in answer.json()["candidates"]] == ["fra"]
    elsewhere = await client.post("/v1/calls", json={"require": {"zone": "us"}}, headers=headers)
    assert elsewhere.status_code == 400, "to come again would not help"
    assert "'eu'" in elsewhere.json()["error"]["message"] and "'us'" in elsewhere.json()["error"]["message"]
    directory.take(BusMessage("vp.pop.fra.bye", b'{"epoch": %d}' % EPOCH))
    refused = await client.post("/v1/calls", json={"place": {"latitude": 50, "longitude": 8}}, headers=headers)
    assert refused.status_code == 503
    assert refused.headers["retry-after"]
    assert refused.json()["error"]["code"] == "no_pop"
    assert "'eu'" in refused.json()["error"]["message"]


@pytest.mark.parametrize(("sent", "said"), [
    (b"{", "JSON"), (b'{"kind": "fax"}', "kind"), (b'{"rtt_ms": {"fra": -1}}', "rtt_ms"),
    (b'{"require": {"agnet": "x"}}', "agnet"), (b'{"place": {"latitude": 91, "longitude": 0}}', "latitude"),
    (b"x" * 20_000, "16384 bytes"),
])  # fmt: skip
async def test_what_cannot_be_read_is_answered_with_what_is_wrong(
    client: httpx.AsyncClient, sent: bytes, said: str
) -> None:
    answer = await client.post("/v1/calls", content=sent)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


@pytest.mark.parametrize("key", ["", "Bearer wrong", "Basic k-acme"])
async def test_nobody_gets_a_token_without_a_key(client: httpx.AsyncClient, key: str) -> None:
    for answer in (
        await client.post("/v1/calls", headers={"Authorization": key}),
        await client.get("/v1/regions", headers={"Authorization": key}),
    ):
        assert answer.status_code == 401
        assert "directory" in answer.json()["error"]["message"]


async def test_the_regions_are_listed_the_nearest_first(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/regions")
    assert [region["pop"] for region in answer.json()["regions"]] == ["fra", "lhr", "iad"]
    assert answer.json()["regions"][1]["region"] == "london"
    assert answer.headers["cache-control"] == "max-age=30"


async def test_a_directory_without_pops_or_without_its_bus_is_not_ready(client: httpx.AsyncClient,
                                                                        directory: Directory) -> None:  # fmt: skip
    assert (await client.get("/readyz")).json() == {"status": "ok", "pops": 3, "relayed": 0}
    for pop in ("fra", "lhr", "iad"):
        directory.take(BusMessage(f"vp.pop.{pop}.bye", b'{"epoch": %d}' % EPOCH))
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "no_pops")
    directory._bus.is_connected = lambda: False  # type: ignore[method-assign]
    assert (await client.get("/readyz")).json()["status"] == "cut_off"
    assert (await client.get("/healthz")).status_code == 200


async def test_who_looks_for_a_dashboard_finds_the_fleets(client: httpx.AsyncClient) -> None:
    answer = await client.get("/dashboard")
    assert (answer.status_code, answer.headers["location"]) == (307, "map")
    assert "fleet" in (await client.get("/dashboard", follow_redirects=True)).text


async def test_there_is_nothing_else(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/nothing")).status_code == 404

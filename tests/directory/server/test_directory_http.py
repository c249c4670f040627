"""A directory's HTTP API, in the process."""

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import httpx
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from prometheus_client.parser import text_string_to_metric_families

from tests.directory.reports import FRANKFURT, LONDON, VIRGINIA, report
from voicepipe.config.credentials import OperatorKeys
from voicepipe.config.directory_config import DirectoryConfig, DirectorySection, DirectoryTenant
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.report import encoded
from voicepipe.directory.server.call_placement import Rules
from voicepipe.directory.server.directory_http import app
from voicepipe.directory.signed_keys import SignedKeys
from voicepipe.directory.tokens import Signer, TokenVerifier, audience
from voicepipe.observe.recent_turns import RecentTurns
from voicepipe.observe.tally import Tally

KEY = Ed25519PrivateKey.generate()
ACME = DirectoryTenant(name="acme", key_env="ACME_KEY", agents=("front-desk",), slots=3)
CLINIC = DirectoryTenant(name="clinic", key_env="CLINIC_KEY", zone="eu")
CONFIG = DirectoryConfig(directory=DirectorySection(place=(50.1, 8.7)), tenants=(ACME, CLINIC))
EPOCH = 1_700_000_000_000


def told(pop: str, **changes: Any) -> BusMessage:
    return BusMessage(f"vp.pop.{pop}.report", encoded(report(**changes)))


@pytest.fixture
def directory() -> Directory:
    made = Directory(MemoryBus(), Signer("k", KEY), Random(0))
    made.take(told("fra", place=FRANKFURT))
    made.take(told("lhr", place=LONDON, zone="uk", region="london"))
    made.take(told("iad", place=VIRGINIA, zone="us", agents={"front-desk": "de"}))
    return made


@pytest_asyncio.fixture
async def client(directory: Directory) -> AsyncIterator[httpx.AsyncClient]:
    rules = Rules(CONFIG, {"k-acme": ACME, "k-clinic": CLINIC})
    references = SignedKeys(MemoryBus(), Signer("k", KEY), {"k": KEY.public_key()})
    application = await asyncio.to_thread(
        app, rules, directory, references, OperatorKeys("k-operator", "k-metrics"), httpx.AsyncClient()
    )
    transport = httpx.ASGITransport(application)
    headers = {"Authorization": "Bearer k-acme"}
    async with httpx.AsyncClient(transport=transport, base_url="http://directory", headers=headers) as made:
        yield made


async def test_a_caller_is_told_where_to_call_with_a_token_for_each_place(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/calls", json={"kind": "websocket"})
    assert answer.status_code == 200
    said = answer.json()
    assert [candidate["pop"] for candidate in said["candidates"]] == ["fra", "lhr", "iad"]
    assert said["degraded"] is False
    assert said["expires_in"] == 60
    assert answer.headers["cache-control"] == "no-store"
    verifier = TokenVerifier(audience("fra", EPOCH), {"k": KEY.public_key()}, lambda: EPOCH / 1000)
    grant = verifier.read(said["candidates"][0]["token"])
    assert (grant.id, grant.tenant, grant.agents, grant.slots) == (said["call_id"], "acme", ("front-desk",), 3)


async def test_a_token_allows_what_was_asked_for_and_no_more(client: httpx.AsyncClient, directory: Directory) -> None:
    both = {"front-desk": "en", "clinic": "en"}
    directory.take(told("fra", place=FRANKFURT, agents=both, seq=9))
    verifier = TokenVerifier(audience("fra", EPOCH), {"k": KEY.public_key()}, lambda: EPOCH / 1000)
    asked = {"kind": "webrtc", "require": {"agent": "clinic"}}
    answer = await client.post("/v1/calls", json=asked, headers={"Authorization": "Bearer k-clinic"})
    grant = verifier.read(answer.json()["candidates"][0]["token"])
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


HOUR = Tally(calls=7, latencies={100: 2})


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_an_operator_is_told_of_pops_that_fell_silent_for_a_day() -> None:
    clock = Clock()
    directory = Directory(MemoryBus(), Signer("k", KEY), Random(0), clock)
    for pop in ("fra", "lhr", "iad", "nrt"):
        directory.take(told(pop, place=FRANKFURT, recent=RecentTurns(turns=3, p50_ms=180.5)))
    clock.now += 30
    for pop in ("fra", "lhr", "iad"):
        directory.take(BusMessage(f"vp.pop.{pop}.report", encoded(report(30, hour=HOUR))))
    references = SignedKeys(MemoryBus(), Signer("k", KEY), {"k": KEY.public_key()})
    application = await asyncio.to_thread(
        app,
        Rules(CONFIG, {}),
        directory,
        references,
        OperatorKeys("k-operator", ""),
        httpx.AsyncClient(),
    )
    headers = {"Authorization": "Bearer k-operator"}

    async def listed() -> tuple[list[str], list[dict[str, Any]]]:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://directory", headers=headers) as operator:
            seen = (await operator.get("/v1/pops")).json()
            assert all(row["hour"] is None for row in seen["pops"])
            seen = (await operator.get("/v1/pops?hour=1")).json()
        assert all(row["hour"] == {"calls": 7, "latencies": {"100": 2}} for row in seen["pops"])
        return [row["pop"] for row in seen["pops"]], seen["lost"]

    pops, lost = await listed()
    assert pops == ["fra", "iad", "lhr"]
    assert [(row["pop"], row["status"], row["age_s"]) for row in lost] == [("nrt", "silent", 30)]
    assert lost[0]["recent"]["turns"] == 3 and lost[0]["recent"]["p50_ms"] == 180.5
    clock.now += 24 * 3600
    assert await listed() == ([], [])


async def test_who_looks_for_a_dashboard_finds_the_fleets(client: httpx.AsyncClient) -> None:
    answer = await client.get("/dashboard")
    assert (answer.status_code, answer.headers["location"]) == (307, "map")
    assert "fleet" in (await client.get("/dashboard", follow_redirects=True)).text


async def test_there_is_nothing_else(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/nothing")).status_code == 404


async def test_prometheus_reads_where_calls_went_and_how_the_pops_are(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/calls", json={"kind": "websocket"})).status_code == 200
    nowhere = {"kind": "websocket", "require": {"zone": "nowhere"}}
    assert (await client.post("/v1/calls", json=nowhere)).status_code == 503
    tried = {"kind": "websocket", "tried": ["lhr", "nobody-knows-it"]}
    assert (await client.post("/v1/calls", json=tried)).status_code == 200
    assert (await client.get("/metrics")).status_code == 401  # a tenant's key
    answer = await client.get("/metrics", headers={"Authorization": "Bearer k-metrics"})
    seen = {
        (sample.name.removeprefix("voicepipe_directory_"), *(sample.labels[name] for name in ("pop", "reason")
                                                            if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }  # fmt: skip
    assert seen["placements_total", "fra", "nearest"] == 2
    assert seen["placements_failed_total", "none_answers"] == 1 and seen["placements_failed_total", "no_room"] == 0
    assert seen["placements_bounced_total", "lhr", "told"] == 1
    assert not any(labels[1:2] == ("nobody-knows-it",) for labels in seen)
    assert seen["placements_bounced_total", "fra", "refused"] == 0, "it is there before the first one"
    assert seen["pop_takes_calls", "lhr"] == 1 and seen["pop_calls_coming", "fra"] == 2
    assert seen["pop_report_age_seconds", "iad"] < 60
    assert seen["calls_relayed",] == 0

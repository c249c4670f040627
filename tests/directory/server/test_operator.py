"""What operators see of a fleet, order, and push."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio

from tests.directory.pushing import GOOD_DAY, HELLO, taking
from tests.directory.reports import FRANKFURT, report
from tests.directory.server.in_process import KEY, asking, three_pops, told
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.tokens import Signer
from voicepipe.observe.recent_turns import RecentTurns
from voicepipe.observe.tally import Tally

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
        directory.take(BusMessage(f"vp.pop.{pop}.report", msgspec.json.encode(report(30, hour=HOUR))))

    async def listed() -> tuple[list[str], list[dict[str, Any]]]:
        async with asking(directory, "k-operator", {}) as operator:
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


async def test_only_the_operators_key_opens_what_operators_see() -> None:
    for key, status in (("k-acme", 401), ("k-metrics", 401), ("", 401), ("k-operator", 200)):
        async with asking(three_pops(), key) as client:
            for path in ("/v1/pops", "/v1/round-trips"):
                assert (await client.get(path)).status_code == status, key
    async with asking(three_pops(), "k-acme") as tenant:
        assert (await tenant.post("/v1/pops/fra/drain")).status_code == 401


async def test_a_pop_is_listed_as_it_reports() -> None:
    directory = three_pops()
    directory.take(told("fra", seq=1, place=FRANKFURT, calls=7, model="qwen", version="2.1", price_per_hour=2.5,
                        agents={"zoo": "en", "desk": "en"}, status="draining"))  # fmt: skip
    async with asking(directory, "k-operator") as operator:
        seen = (await operator.get("/v1/pops")).json()
    row = next(row for row in seen["pops"] if row["pop"] == "fra")
    assert {key: row[key] for key in ("status", "calls", "coming", "slots", "model", "version", "price_per_hour")} == {
        "status": "draining", "calls": 7, "coming": 0, "slots": 36, "model": "qwen", "version": "2.1",
        "price_per_hour": 2.5,
    }  # fmt: skip
    assert row["agents"] == ["desk", "zoo"] and row["hour"] is None
    assert (seen["cut_off"], seen["edition"], seen["placed"]) == (False, None, [])


async def test_calls_that_were_placed_are_listed_the_newest_first() -> None:
    directory = three_pops()
    async with asking(directory) as client, asking(directory, "k-operator") as operator:
        for zone in ("eu", "uk"):
            assert (await client.post("/v1/calls", json={"require": {"zone": zone}})).status_code == 200
        placed = (await operator.get("/v1/pops")).json()["placed"]
    assert [(call["pop"], call["tenant"]) for call in placed] == [("lhr", "acme"), ("fra", "acme")]


async def test_a_pop_is_ordered_to_drain_and_that_it_does_is_awaited() -> None:
    directory = three_pops()
    async with asking(directory, "k-operator") as operator:
        assert (await operator.post("/v1/pops/nowhere/drain")).status_code == 503
        ordering = asyncio.create_task(operator.post("/v1/pops/fra/drain"))
        await asyncio.sleep(0.05)
        assert not ordering.done()
        directory.take(told("fra", seq=1, place=FRANKFURT, status="draining"))
        answer = await ordering
    assert (answer.status_code, answer.json()) == (202, {"pop": "fra", "ordered": "drain"})


@pytest_asyncio.fixture
async def operator(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Of a directory that takes pushes; there are no PoPs."""
    async with taking(MemoryBus(), tmp_path) as (editions, directory, _):
        async with asking(directory, "k-operator", editions=editions) as made:
            yield made


async def test_a_push_is_numbered_listed_and_rolled_back(operator: httpx.AsyncClient) -> None:
    assert (await operator.get("/v1/editions")).json() == {"current": 0, "editions": []}
    for number, files in ((1, HELLO), (2, GOOD_DAY)):
        answer = await operator.post("/v1/editions", json={"files": files})
        assert answer.status_code == 201
        assert {key: answer.json()[key] for key in ("number", "files", "like", "unheard")} == {
            "number": number, "files": ["agents/front-desk.toml"], "like": None, "unheard": [],
        }  # fmt: skip
    back = (await operator.post("/v1/editions", json={"like": 1})).json()
    assert (back["number"], back["like"]) == (3, 1)
    listed = (await operator.get("/v1/editions")).json()
    assert listed["current"] == 3 and [row["number"] for row in listed["editions"]] == [3, 2, 1]
    assert listed["editions"][0]["digest"] == listed["editions"][2]["digest"] == back["digest"]


async def test_a_dry_run_changes_nothing(operator: httpx.AsyncClient) -> None:
    answer = await operator.post("/v1/editions", json={"files": HELLO, "dry_run": True})
    assert (answer.status_code, answer.json()["number"]) == (200, 1)
    assert (await operator.get("/v1/editions")).json()["current"] == 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "Send either files, or like"),
        ({"files": HELLO, "like": 1}, "Send either files, or like"),
        ({"fils": HELLO}, "fils"),
        ({"like": 7}, "There is no edition 7 here"),
        ({"files": {"agents/x.toml": "name ="}}, "agents/x.toml"),
    ],
)
async def test_what_is_wrong_with_a_push_is_answered(
    operator: httpx.AsyncClient, body: dict[str, object], said: str
) -> None:
    answer = await operator.post("/v1/editions", json=body)
    assert answer.status_code == 400 and said in answer.json()["error"]["message"]
    assert (await operator.get("/v1/editions")).json()["current"] == 0


async def test_tenants_push_nothing_and_see_nothing() -> None:
    async with asking(three_pops(), "k-acme") as tenant:
        assert (await tenant.get("/v1/editions")).status_code == 401
        assert (await tenant.post("/v1/editions", json={"files": HELLO})).status_code == 401


async def test_a_directory_that_keeps_none_says_what_to_set() -> None:
    async with asking(three_pops(), "k-operator") as operator:
        answer = await operator.post("/v1/editions", json={"files": HELLO})
        assert "set directory.editions to a folder" in answer.json()["error"]["message"]

"""What operators see of a fleet."""

import asyncio
from random import Random
from typing import Any

from tests.directory.reports import FRANKFURT, report
from tests.directory.server.in_process import KEY, asking, three_pops, told
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.report import encoded
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
        directory.take(BusMessage(f"vp.pop.{pop}.report", encoded(report(30, hour=HOUR))))

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

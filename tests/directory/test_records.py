"""Records through a directory: lists of all PoPs, and one call at the PoP that has it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import websockets

from tests.directory.fleets import FRANKFURT, LONDON, LONG_S, Served, fleet, public_key, served, settings
from voicepipe.base import call_ids
from voicepipe.directory.bus import MemoryBus

pytestmark = pytest.mark.e2e


@pytest_asyncio.fixture
async def through(tmp_path: Path) -> AsyncIterator[Served]:
    """A directory, and two PoPs that keep records."""
    public = await asyncio.to_thread(public_key, tmp_path)
    bus = MemoryBus()
    keeps = {"records": {"folder": str(tmp_path / "kept")}, "pop": {"slots": 1, "price_per_hour": 3.6}}
    configs = [settings("fra", public, FRANKFURT, **keeps), settings("lhr", public, LONDON, **keeps)]
    async with asyncio.timeout(LONG_S), fleet(*configs, bus=bus) as (directory, _), served(directory, bus) as at:
        yield at


async def call(at: Served, key: str = "k-acme") -> websockets.ClientConnection:
    url = f"ws{at.url.removeprefix('http')}/v1/realtime"
    socket = await websockets.connect(url, additional_headers={"Authorization": f"Bearer {key}"}, max_queue=None)
    assert json.loads(await socket.recv())["type"] == "session.created"
    return socket


async def listed(at: Served, query: str = "", key: str = "k-acme") -> dict[str, Any]:
    async with at.client(key) as client:
        answer: dict[str, Any] = (await client.get(f"/v1/records{query}")).json()
    return answer


async def two_calls(at: Served) -> list[str]:
    """Their ids, the newest first: each PoP had one."""
    first = await call(at)
    second = await call(at)
    for socket in (first, second):
        await socket.close()
    rows: list[dict[str, Any]] = []
    while len([row for row in rows if row["ended"]]) < 2:
        await asyncio.sleep(0.05)
        rows = (await listed(at))["data"]
    return [row["id"] for row in rows]


async def test_the_list_has_the_calls_of_all_pops(through: Served) -> None:
    ids = await two_calls(through)
    assert {call_ids.pop_of(call_id) for call_id in ids} == {"lhr", "fra"}
    first = await listed(through, "?limit=1")
    assert [row["id"] for row in first["data"]] == ids[:1] and first["missing"] == []
    rest = await listed(through, f"?limit=1&before={first['next']}")
    assert [row["id"] for row in rest["data"]] == ids[1:] and rest["next"] is None
    assert (await listed(through, key="k-clinic"))["data"] == []


async def test_a_call_is_asked_of_the_pop_that_has_it(through: Served) -> None:
    ids = await two_calls(through)
    async with through.client() as client:
        for call_id in ids:
            assert (await client.get(f"/v1/records/{call_id}")).json()["id"] == call_id
        assert (await client.get("/v1/records/rtc_fra.000000000000")).status_code == 404
        assert (await client.get("/v1/records/rtc_ber.000000000000")).status_code == 404
        costs = (await client.get("/v1/costs")).json()
        assert sorted(row["pop"] for row in costs["data"]) == ["fra", "lhr"]
        assert all(row["cost_per_minute"] == pytest.approx(0.06) for row in costs["data"])
    async with through.client("k-clinic") as client:
        assert (await client.get(f"/v1/records/{ids[0]}")).status_code == 404


async def test_a_dead_pop_is_named(through: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when its lease is over, and when the directory has forgotten what it said of itself."""
    ids = await two_calls(through)
    (dead,) = (call_id for call_id in ids if call_ids.pop_of(call_id) == "fra")
    view = through.directory._view
    hear = view.heard
    monkeypatch.setattr(view, "heard", lambda pop, *rest: pop != "fra" and hear(pop, *rest))
    for silent_s in (10, 600):
        view._known["fra"].sent_at -= silent_s
        said = await listed(through)
        assert said["missing"] == ["fra"] and [row["id"] for row in said["data"]] == [
            each for each in ids if each != dead
        ]
        async with through.client() as client:
            answer = await client.get(f"/v1/records/{dead}")
            assert answer.status_code == 503 and "'fra' does not answer" in answer.json()["error"]["message"]
            assert (await client.get("/v1/costs")).json()["missing"] == ["fra"]


async def test_who_asks_wrongly_is_told_how(through: Served) -> None:
    async with through.client() as client:
        for asked in ("records?limit=0", "records?before=x", "costs?by=line", "costs?since=x"):
            assert (await client.get(f"/v1/{asked}")).status_code == 400


async def test_a_pop_that_keeps_none_is_not_missing(tmp_path: Path) -> None:
    public = await asyncio.to_thread(public_key, tmp_path)
    bus = MemoryBus()
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT), bus=bus) as (directory, _):
        async with served(directory, bus) as at:
            assert await listed(at) == {"object": "list", "data": [], "next": None, "missing": []}

"""Pushes over HTTP: what is asked, and what is answered."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from tests.directory.pushing import GOOD_DAY, HELLO, taking
from tests.directory.server.in_process import asking, three_pops
from voicepipe.directory.bus import MemoryBus


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

"""`voicepipe push`, as an operator types it, against a directory and PoPs that run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.directory.fleets import LONG_S, OPERATOR, Served, public_key, served
from tests.directory.pushing import AGENT, ROUTES, pop_settings, pops, taking
from tests.support.waiting import until
from voicepipe.commands.cli import main
from voicepipe.directory.bus import MemoryBus
from voicepipe.pop.pop import Pop

pytestmark = pytest.mark.e2e


@pytest.fixture
def public(tmp_path: Path) -> str:
    return public_key(tmp_path)


@pytest.fixture(autouse=True)
def operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICEPIPE_OPERATOR_KEY", OPERATOR)


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A folder with one agent."""
    (folder := tmp_path / "mine").mkdir()
    (folder / "front-desk.toml").write_text(AGENT.format(name="front-desk", greeting="Hello."))
    return folder


@asynccontextmanager
async def fleet(folder: Path, public: str) -> AsyncIterator[tuple[Served, list[Pop]]]:
    """A directory over HTTP, and two PoPs that take editions."""
    bus = MemoryBus()
    configs = [await pop_settings(name, public, folder) for name in ("fra", "lhr")]
    async with (
        taking(bus, folder) as (editions, directory, _),
        pops(bus, directory, *configs) as (made, _),
        served(directory, bus, editions=editions) as at,
    ):
        yield at, made


async def typed(at: Served, *words: str) -> int:
    return await asyncio.to_thread(main, [*words, "--directory", at.url])


async def test_a_folder_is_pushed_and_rolled_back(
    tmp_path: Path, public: str, agents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with fleet(tmp_path, public) as (at, made):
        assert await typed(at, "push", str(agents)) == 0
        assert "edition 1 (" in (said := capsys.readouterr().out) and "2 of 2 PoPs go by it" in said
        assert [pop.agent(None).greeting for pop in made] == ["Hello.", "Hello."]
        (agents / "front-desk.toml").write_text(AGENT.format(name="front-desk", greeting="Good day."))
        assert await typed(at, "push", str(agents)) == 0
        await until(lambda: made[1].agent(None).greeting == "Good day.", LONG_S)
        assert await typed(at, "push", "--version", "1") == 0
        assert "edition 3 (" in (said := capsys.readouterr().out) and "as 1 was" in said
        assert made[0].agent(None).greeting == "Hello."
        assert await typed(at, "push", "--list") == 0
        assert "3 (as 1) now" in capsys.readouterr().out
        assert await typed(at, "push", str(agents), "--check") == 0
        assert "would take these 1 files" in capsys.readouterr().out and made[0].agent(None).greeting == "Hello."
        assert await typed(at, "pops") == 0
        assert " edition " in capsys.readouterr().out


async def test_what_is_wrong_is_told_by_file_and_key_and_nothing_is_pushed(
    tmp_path: Path, public: str, agents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with fleet(tmp_path, public) as (at, made):
        (bad := agents / "bad.toml").write_text('name = "bad"\nspeed = "fast"\n')
        assert await typed(at, "push", str(agents)) == 2
        assert f"{bad}: speed: cannot be" in capsys.readouterr().err
        bad.unlink()
        (rules := tmp_path / "fleet.toml").write_text(ROUTES.replace("sales", "nobody"))
        assert await typed(at, "push", str(agents), "--with", str(rules)) == 2
        assert "fleet.toml: routes[0].agent: there is no agent nobody" in capsys.readouterr().err
        assert await typed(at, "push", "--version", "7") == 2
        assert "There is no edition 7 here; kept: none." in capsys.readouterr().err
        assert await typed(at, "push") == 2
        assert await typed(at, "push", "--version", "7", str(agents)) == 2
        assert "give one of the three" in capsys.readouterr().err
        assert made[0].agent(None).greeting != "Hello."


async def test_a_push_needs_the_operators_key_and_a_directory_that_takes_it(
    tmp_path: Path, public: str, agents: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet(tmp_path, public) as (at, _):
        async with httpx.AsyncClient(base_url=at.url, headers={"Authorization": "Bearer k-acme"}) as tenant:
            assert (await tenant.post("/v1/editions", json={"like": 1})).status_code == 401
            assert (await tenant.get("/v1/editions")).status_code == 401
        async with served(at.directory, MemoryBus()) as other:
            assert await typed(other, "push", str(agents)) == 2
            assert "takes no pushes: set directory.editions" in capsys.readouterr().err
        wrong: list[dict[str, object]] = [{}, {"files": {"x": ""}, "like": 1}, {"files": {"../x": ""}}, {"file": {}}]
        for body in wrong:
            async with httpx.AsyncClient(base_url=at.url, headers={"Authorization": f"Bearer {OPERATOR}"}) as client:
                assert (await client.post("/v1/editions", json=body)).status_code == 400

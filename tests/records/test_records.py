"""A whole PoP keeps records: of calls by WebSocket, with scripted engines. Over its own HTTP server."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.records.receiver import SECRET, receiving
from tests.records.typist import Typist
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe import config as configuration
from voicepipe.base.errors import ConfigError
from voicepipe.base.secret_source import SecretSource
from voicepipe.commands import records
from voicepipe.commands.remote_server import RemoteServer
from voicepipe.config import Config
from voicepipe.pop import pop_http  # noqa: F401, imported here since the loop of a test may not read files
from voicepipe.pop.pop import Pop
from voicepipe.pop.running import running

SCRIPTED = dict.fromkeys(("vad", "asr", "llm", "tts"), "scripted")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HOOKS = '\n[hooks]\nafter_call = "{url}"\nsecret_env = "HOOK"\n'


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_A", "k-acme")
    monkeypatch.setenv("KEY_B", "k-clinic")
    monkeypatch.setenv("OPERATOR", "k-operator")
    monkeypatch.setenv("HOOK", SECRET)


def settings(folder: Path, hook: str = "", **changes: Any) -> Config:
    """Of a PoP that keeps its records below `folder`; its agent tells `hook` of its calls."""
    agents = folder / "agents"
    agents.mkdir(exist_ok=True)
    hooks = HOOKS.format(url=hook) if hook else ""
    (agents / "front-desk.toml").write_text(f'name = "front-desk"\ngreeting = "Good day."{hooks}')
    tables: dict[str, Any] = {
        "pop": {"id": "fra1", "agents": str(agents), "slots": 10, "price_per_hour": 36.0, "drain_ms": 5000},
        "http": {"port": free_port(), "operator_key_env": "OPERATOR"},
        "tenants": [{"name": "acme", "key_env": "KEY_A"}, {"name": "clinic", "key_env": "KEY_B"}],
        "engines": SCRIPTED,
        "records": {"folder": str(folder / "kept")},
    }
    for table, keys in changes.items():
        tables[table] = {**tables.get(table, {}), **keys}
    return msgspec.convert(tables, Config)


def caller(pop: Pop, key: str = "k-acme", **headers: str) -> Typist:
    return Typist(f"http://127.0.0.1:{pop.config.http.port}", key, **headers)


async def got(pop: Pop, path: str, key: str = "k-acme") -> httpx.Response:
    address = f"http://127.0.0.1:{pop.config.http.port}{path}"
    async with httpx.AsyncClient() as client:
        return await client.get(address, headers={"Authorization": f"Bearer {key}"})


async def over(pop: Pop, calls: int = 1) -> list[dict[str, Any]]:
    """The list, once so many calls have ended in it."""
    rows: list[dict[str, Any]] = []
    async with asyncio.timeout(60):
        while len([row for row in rows if row["ended"]]) < calls:
            await asyncio.sleep(0.02)
            rows = (await got(pop, "/v1/records", "k-operator")).json()["data"]
    return rows


async def test_a_record_names_the_trace_of_its_call(tmp_path: Path) -> None:
    told = {"traces": {"endpoint": f"http://127.0.0.1:{free_port()}"}, "records": {"lines": str(tmp_path / "lines")}}
    with receiving() as receiver:
        async with running(settings(tmp_path, receiver.url, **told)) as pop:
            async with caller(pop, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01"):
                pass
            (row,) = await over(pop)
            full = (await got(pop, f"/v1/records/{row['id']}")).json()
            await until(lambda: receiver.told)
    (line,) = (tmp_path / "lines").read_text().splitlines()
    for record in (row, full, json.loads(line), receiver.told[0]["data"]):
        assert record["trace"] == TRACE


@pytest.mark.parametrize("traces", [{}, {"endpoint": "http://127.0.0.1:4318", "sample": 0.0}])
async def test_a_record_of_a_call_that_is_not_traced_names_no_trace(tmp_path: Path, traces: dict[str, Any]) -> None:
    async with running(settings(tmp_path, traces=traces)) as pop:
        async with caller(pop):
            pass
        (row,) = await over(pop)
        assert row["trace"] == ""


async def test_a_terminal_shows_what_a_call_cost_and_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = {"endpoint": f"http://127.0.0.1:{free_port()}"}
    async with running(settings(tmp_path, traces=traces, pop={"price_per_hour": 0.5})) as pop:
        async with caller(pop, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01"):
            pass
        (row,) = await over(pop)
        server = RemoteServer(url=f"http://127.0.0.1:{pop.config.http.port}", key=SecretSource("KEY_A"))
        asked = records.RecordsQuery(server=server, as_json=False)
        assert await asyncio.to_thread(records.one, asked, row["id"]) == 0
    said = capsys.readouterr().out
    assert f"trace {TRACE}" in said
    cost = float(said.partition("cost ")[2].split()[0])
    assert cost == pytest.approx(row["cost"], rel=0.01), "a cheap call costs something, too"


async def test_records_outlive_the_pop(tmp_path: Path) -> None:
    config = settings(tmp_path)
    async with running(config) as pop, caller(pop):
        pass
    async with running(config) as pop:
        (row,) = await over(pop)
        assert row["reason"] in ("caller", "shutdown")


async def test_lines_for_who_ships_logs(tmp_path: Path) -> None:
    async with running(settings(tmp_path, records={"lines": str(tmp_path / "calls.jsonl")})) as pop:
        async with caller(pop):
            pass
        await over(pop)
    (line,) = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert line["tenant"] == "acme" and line["said"][0]["answered"]


async def test_two_pops_of_one_name_do_not_share_a_folder(tmp_path: Path) -> None:
    config = settings(tmp_path)
    async with running(config):
        with pytest.raises(ConfigError, match="another PoP fra1 keeps its records in"):
            async with running(settings(tmp_path)):
                pass


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="records cannot be kept in"):
        async with running(settings(tmp_path, records={"folder": str(tmp_path / "file" / "kept")})):
            pass


async def test_what_was_in_progress_when_a_pop_was_killed_is_marked_at_its_next_start(tmp_path: Path) -> None:
    config = settings(tmp_path)
    async with running(config) as pop, caller(pop):
        await asyncio.sleep(0)
    path = tmp_path / "kept" / "fra1.db"
    with sqlite3.connect(path) as db:
        db.execute("UPDATE calls SET ended = NULL, reason = ''")
    db.close()
    async with running(config) as pop:
        (row,) = await over(pop)
        assert row["reason"] == "cut"


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"records": {"lines": "-"}}, "records.lines: needs records of calls; say where they are kept"),
        ({"tenants": [{"name": "a", "key_env": "K", "hooks": {"after_call": "https://a.example/", "secret_env": "H"}}]},
         r"tenants\[0\].hooks: needs records of calls"),
        ({"tenants": [{"name": "a", "key_env": "K", "hooks": {"after_call": "https://a.example/"}}]},
         "after_call and secret_env go together"),
        ({"tenants": [{"name": "a", "key_env": "K", "hooks": {"after_call": "a.example", "secret_env": "H"}}]},
         "'a.example' is no address"),
    ],
)  # fmt: skip
def test_what_needs_records_says_so(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        configuration.check_together(configuration.parse(tables))

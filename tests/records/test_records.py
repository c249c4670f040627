"""A whole PoP keeps records: of calls by WebSocket, with scripted engines. Over its own HTTP server."""

import asyncio
import json
import sqlite3
import time
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
from voicepipe.commands import records
from voicepipe.config import Config
from voicepipe.pop.pop import Pop
from voicepipe.pop.running import running
from voicepipe.records import deliveries

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


async def test_a_call_is_kept_and_found_by_its_tenant(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        async with caller(pop) as typist:
            await typist.asks("when are you open")
            (row,) = (await got(pop, "/v1/records")).json()["data"]
            assert row["ended"] is None and row["reason"] == "", "it goes on"
        (row,) = await over(pop)
        assert (row["tenant"], row["line"], row["reason"], row["turns"]) == ("acme", "websocket", "caller", 0)
        assert 0 < row["cost"] <= 36 / 3600 / 10 * 60
        full = (await got(pop, f"/v1/records/{row['id']}")).json()
        assert [(said["heard"], bool(said["answered"])) for said in full["said"]] == [
            ("", True), ("when are you open", True)]  # fmt: skip
        assert (await got(pop, f"/v1/records/{row['id']}", "k-clinic")).status_code == 404
        assert (await got(pop, "/v1/records", "k-clinic")).json()["data"] == []
        assert (await got(pop, "/v1/records", "wrong")).status_code == 401


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
        asked = records.RecordsQuery(url=f"http://127.0.0.1:{pop.config.http.port}", key_env="KEY_A", as_json=False)
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


async def test_lists_in_pages_and_by_what_is_asked(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        for key in ("k-acme", "k-clinic", "k-acme"):
            async with caller(pop, key):
                pass
        rows = await over(pop, 3)
        first = (await got(pop, "/v1/records?limit=2", "k-operator")).json()
        rest = (await got(pop, f"/v1/records?limit=2&before={first['next']}", "k-operator")).json()
        assert [row["id"] for row in (*first["data"], *rest["data"])] == [row["id"] for row in rows]
        assert rest["next"] is None
        assert (await got(pop, f"/v1/records?since={time.time() + 5}")).json()["data"] == []
        assert len((await got(pop, "/v1/records?reason=caller&agent=front-desk")).json()["data"]) == 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("limit=0", "limit must be a whole number from 1 to 1000"),
        ("since=yesterday", "since must be a Unix time in seconds"),
        ("since=nan", "since must be a Unix time in seconds"),
        ("before=x", "before must be what a list gave as next"),
        ("tennant=acme", "Unknown parameter 'tennant': expected one of limit, before, since"),
    ],
)
async def test_who_asks_wrongly_is_told_how(tmp_path: Path, asked: str, said: str) -> None:
    async with running(settings(tmp_path)) as pop:
        answer = await got(pop, f"/v1/records?{asked}")
        assert answer.status_code == 400 and said in answer.json()["error"]["message"]


async def test_a_pop_that_keeps_none_says_so(tmp_path: Path) -> None:
    async with running(settings(tmp_path, records={"folder": ""})) as pop:
        answer = await got(pop, "/v1/records")
        assert answer.status_code == 404 and "records.folder" in answer.json()["error"]["message"]


async def test_what_calls_and_empty_places_cost(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        async with caller(pop) as typist:
            await typist.asks("when are you open")
        await over(pop)
        mine = (await got(pop, "/v1/costs")).json()
        (cost,) = mine["data"]
        assert (cost["name"], cost["calls"], cost["region"]) == ("front-desk", 1, "local")
        assert cost["cost_per_minute"] == pytest.approx(36 / 60 / 10)
        assert cost["cost"] == pytest.approx(cost["minutes"] * cost["cost_per_minute"])
        assert mine["host_cost"] is None, "the operator's to see"
        everything = (await got(pop, f"/v1/costs?by=tenant&since={time.time() - 3600}", "k-operator")).json()
        assert [cost["name"] for cost in everything["data"]] == ["acme"]
        assert everything["since"] > time.time() - 600, "nothing is said of a time before the first call"
        assert everything["host_cost"] == pytest.approx((everything["until"] - everything["since"]) * 36 / 3600)
        assert everything["idle_cost"] == pytest.approx(everything["host_cost"] - everything["data"][0]["cost"])


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


async def test_a_receiver_is_told_of_a_call_that_has_ended(tmp_path: Path) -> None:
    with receiving() as receiver:
        async with running(settings(tmp_path, receiver.url)) as pop:
            async with caller(pop) as typist:
                await typist.asks("when are you open")
            await until(lambda: receiver.told)
        (event,) = receiver.told
        assert event["type"] == "call.ended" and event["timestamp"].endswith("Z")
        assert [said["heard"] for said in event["data"]["said"]] == ["", "when are you open"]
        assert event["data"]["reason"] == "caller"


async def test_a_receiver_that_was_down_is_told_by_the_pops_next_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "LAST_S", 0.1)
    monkeypatch.setattr(deliveries, "FIRST_S", 0.1)
    port = free_port()
    config = settings(tmp_path, f"http://127.0.0.1:{port}/after-call")
    async with running(config) as pop:
        for _ in range(3):
            async with caller(pop):
                pass
        await over(pop, 3)
        assert pop.records
        kept = pop.records
        await until(lambda: kept.deliveries.failed >= 3)
    with receiving(port) as receiver:
        receiver.status = 503
        async with running(config) as pop:
            await until(lambda: len(receiver.ids) >= 3)
            receiver.status = 200
            await until(lambda: len(receiver.told) == 3)
            assert len({event["data"]["id"] for event in receiver.told}) == 3
            assert len(set(receiver.ids)) == 3, "each try has the id of the one before"


async def test_a_receiver_that_does_not_want_one_record_gets_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "LAST_S", 0.1)
    with receiving() as receiver:
        receiver.status = 400
        async with running(settings(tmp_path, receiver.url)) as pop:
            async with caller(pop):
                pass
            await until(lambda: receiver.ids)
            receiver.status = 200
            async with caller(pop):
                pass
            await until(lambda: len(set(receiver.ids)) == 2)
            second = next(row["id"] for row in await over(pop, 2))
            await until(lambda: second in [event["data"]["id"] for event in receiver.told])


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


async def test_a_secret_that_cannot_sign_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOOK", "guess-me")
    hook = {"after_call": "https://example.com/", "secret_env": "HOOK"}
    with pytest.raises(ConfigError, match=r'tenants\[0\].hooks.secret_env: .* HOOK cannot sign: it must be "whsec_"'):
        tenants = [{"name": "acme", "key_env": "KEY_A", "hooks": hook}]
        tables = msgspec.to_builtins(settings(tmp_path)) | {"tenants": tenants}
        async with running(msgspec.convert(tables, Config)):
            pass
    async with running(settings(tmp_path, "https://example.com/")):
        assert "Agent front-desk: hooks.secret_env: the environment variable HOOK cannot sign" in caplog.text
    async with running(settings(tmp_path, "https://example.com/", records={"folder": ""})):
        assert "Agent front-desk names a hooks.after_call, and nothing is sent: set records.folder" in caplog.text


async def test_a_tenants_receiver_is_told_where_the_agent_names_none(tmp_path: Path) -> None:
    with receiving() as receiver:
        hook = {"after_call": receiver.url, "secret_env": "HOOK"}
        tables = msgspec.to_builtins(settings(tmp_path))
        tables["tenants"] = [
            {"name": "acme", "key_env": "KEY_A", "hooks": hook},
            {"name": "clinic", "key_env": "KEY_B"},
        ]
        async with running(msgspec.convert(tables, Config)) as pop:
            for key in ("k-clinic", "k-acme"):
                async with caller(pop, key):
                    pass
            await until(lambda: receiver.told)
        assert [event["data"]["tenant"] for event in receiver.told] == ["acme"]


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

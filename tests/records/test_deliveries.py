"""Receivers are told of calls, also those that were down. Whole PoPs, with scripted engines."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from tests.records.receiver import SECRET, receiving
from tests.records.test_records import caller, over, secrets, settings  # noqa: F401
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe.config import Config
from voicepipe.pop.running import running
from voicepipe.records import deliveries


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


async def test_a_function_gets_the_record_of_a_call_that_has_ended(tmp_path: Path) -> None:
    config = settings(tmp_path)
    code = "import json, pathlib\n\ndef over(record):\n    here = pathlib.Path(__file__).parent\n"
    (tmp_path / "agents" / "hooks.py").write_text(f"{code}    (here / 'told.json').write_text(json.dumps(record))\n")
    agent = 'name = "front-desk"\ngreeting = "Good day."\n[hooks]\nafter_call = "hooks:over"\n'
    (tmp_path / "agents" / "front-desk.toml").write_text(agent)
    async with running(config) as pop:
        async with caller(pop) as typist:
            await typist.asks("when are you open")
        [row] = await over(pop)
    record = json.loads(await asyncio.to_thread((tmp_path / "agents" / "told.json").read_text))
    assert record["id"] == row["id"] and record["reason"] == "caller"
    assert [said["heard"] for said in record["said"]] == ["", "when are you open"]


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


async def test_the_key_in_a_file_is_read_when_a_receiver_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a delivery that waits is signed with the key that is there then."""
    monkeypatch.setattr(deliveries, "FIRST_S", 0.1)
    key = tmp_path / "hook.key"
    with receiving() as receiver:
        tables = msgspec.to_builtins(settings(tmp_path))
        tables["tenants"][0]["hooks"] = {"after_call": receiver.url, "secret_file": str(key)}
        key.write_text(f"{SECRET}\n")
        async with running(await asyncio.to_thread(msgspec.convert, tables, Config)) as pop:
            key.unlink()
            async with caller(pop):
                pass
            assert pop.records
            kept = pop.records
            await until(lambda: kept.deliveries.failed)
            assert not receiver.ids
            key.write_text(f"{SECRET}\n")
            await until(lambda: receiver.told)

"""A tenant or the operator deletes what is kept of a call, or of a caller: over a PoP's own HTTP server."""

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from tests.records.phoning import NUMBER, phoning
from tests.records.receiver import receiving
from tests.records.test_records import got, over, secrets, settings
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe.operator_views import Deleted
from voicepipe.pop.pop import Pop
from voicepipe.pop.running import running
from voicepipe.records import deliveries, records, store
from voicepipe.records.store import Store

__all__ = ["secrets"]


async def deleted(pop: Pop, path: str, key: str = "k-acme") -> httpx.Response:
    address = f"http://127.0.0.1:{pop.config.http.port}{path}"
    async with httpx.AsyncClient(timeout=60) as client:
        return await client.delete(address, headers={"Authorization": f"Bearer {key}"})


async def phoned(pop: Pop, *calls: dict[str, Any]) -> list[str]:
    """Ids of such calls, which have ended and are kept."""
    ids = []
    for number, its in enumerate(calls):
        with phoning(pop, number, **its) as call_id:
            ids.append(call_id)
    await over(pop, len(calls))
    return ids


def held(folder: Path, text: str) -> bool:
    """In the database or its write-ahead log."""
    return any(text.encode() in path.read_bytes() for path in folder.glob("fra1.db*"))


async def test_a_call_is_deleted_by_its_tenant(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        one, other = await phoned(pop, {}, {})
        assert (await deleted(pop, f"/v1/records/{one}", "k-clinic")).status_code == 404
        assert (await deleted(pop, f"/v1/records/{one}", "wrong")).status_code == 401
        said = await deleted(pop, f"/v1/records/{one}")
        assert (said.status_code, said.json()) == (200, {"id": one, "object": "record.deleted", "deleted": True})
        assert said.headers["cache-control"] == "no-store"
        assert (await got(pop, f"/v1/records/{one}")).status_code == 404
        assert [row["id"] for row in (await got(pop, "/v1/records")).json()["data"]] == [other]
        again = await deleted(pop, f"/v1/records/{one}")
        assert (again.status_code, again.json()["error"]["code"]) == (404, "record_not_found")


async def test_its_words_are_gone_at_once_from_the_file_its_log_and_the_dashboard(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        one, _ = await phoned(pop, {}, {})
        kept, words = tmp_path / "kept", "Rumpelstiltskin, number 0"
        assert await asyncio.to_thread(held, kept, words)
        assert (await got(pop, "/v1/dashboard/turns/turn_0")).status_code == 200
        await deleted(pop, f"/v1/records/{one}")
        assert not await asyncio.to_thread(held, kept, words) and not await asyncio.to_thread(held, kept, one)
        assert await asyncio.to_thread(held, kept, "Rumpelstiltskin, number 1")
        assert (await got(pop, "/v1/dashboard/turns/turn_0")).status_code == 404
        assert (await got(pop, "/v1/dashboard/turns/turn_1")).status_code == 200


async def test_a_call_that_goes_on_is_not_deleted(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        with phoning(pop, 0) as call_id:
            said = await deleted(pop, f"/v1/records/{call_id}")
            assert (said.status_code, said.json()["error"]["code"]) == (409, "call_in_progress")
            assert "wait for its end or hang up" in said.json()["error"]["message"]
        assert (await deleted(pop, f"/v1/records/{call_id}")).status_code == 200, "as soon as it has ended"


async def test_a_callers_calls_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "AT_A_TIME", 2)
    async with running(settings(tmp_path)) as pop:
        others = [{"caller": "30123456"}, {"caller": NUMBER, "tenant": "clinic"}, {"caller": ""}]
        ids = await phoned(pop, *[{}] * 5, *others)
        with phoning(pop, 99) as goes_on:
            said = await deleted(pop, "/v1/records?caller=%2B4930123456")
        assert said.status_code == 200
        assert said.json() == {"object": "records.deleted", "caller": NUMBER, "tenant": "", "since": None,
                               "until": None, "deleted": 5, "in_progress": 1, "calls_in_progress": [goes_on],
                               "not_permitted": 0, "complete": False}  # fmt: skip
        left = {row["id"] for row in (await got(pop, "/v1/records", "k-operator")).json()["data"]}
        assert left == {goes_on, *ids[5:]}
        assert [(await got(pop, f"/v1/dashboard/turns/turn_{n}", "k-operator")).status_code for n in (0, 5, 6)] == [
            404, 200, 200]  # fmt: skip
        assert not await asyncio.to_thread(held, tmp_path / "kept", "Rumpelstiltskin, number 4")


async def test_a_tenant_is_told_of_calls_of_no_tenant_and_of_no_others(tmp_path: Path) -> None:
    """They were kept before the PoP had tenants, or came by phone to a PoP that leaves keys to its directory."""
    async with running(settings(tmp_path)) as pop:
        ids = await phoned(pop, {"tenant": "local"}, {"tenant": "clinic"}, {})
        with phoning(pop, 99, tenant="local"):
            said = (await deleted(pop, "/v1/records?caller=%2B4930123456")).json()
        assert (said["deleted"], said["in_progress"], said["not_permitted"]) == (1, 0, 2)
        one = await deleted(pop, f"/v1/records/{ids[0]}")
        assert (one.status_code, one.json()["error"]["code"]) == (403, "not_permitted")
        assert "belongs to no tenant" in one.json()["error"]["message"]
        assert (await deleted(pop, f"/v1/records/{ids[1]}")).status_code == 404, "that it is another's is not told"
        said = (await deleted(pop, "/v1/records?caller=%2B4930123456", "k-operator")).json()
        assert (said["deleted"], said["not_permitted"]) == (3, 0)
        assert (await deleted(pop, "/v1/records?caller=%2B4930123456")).json()["not_permitted"] == 0


async def test_a_dashboard_without_records_does_not_deny_a_call_of_no_tenant(tmp_path: Path) -> None:
    async with running(settings(tmp_path, records={"folder": ""})) as pop:
        with phoning(pop, 0, tenant="local") as one:
            assert (await deleted(pop, f"/v1/records/{one}")).status_code == 403
        assert (await deleted(pop, f"/v1/records/{one}")).status_code == 403
        assert (await deleted(pop, f"/v1/records/{one}", "k-operator")).status_code == 200
        assert (await deleted(pop, f"/v1/records/{one}")).status_code == 404


async def test_the_operator_deletes_everyones(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        ids = await phoned(pop, {}, {"tenant": "clinic"}, {"tenant": "clinic", "caller": "+1"})
        assert (await deleted(pop, f"/v1/records/{ids[2]}", "k-operator")).status_code == 200
        said = await deleted(pop, "/v1/records?caller=%2B4930123456", "k-operator")
        assert said.json()["deleted"] == 2
        assert (await got(pop, "/v1/records", "k-operator")).json()["data"] == []


async def test_a_number_that_nobody_called_from_and_a_plus_as_it_is(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        await phoned(pop, {})
        assert (await deleted(pop, "/v1/records?caller=3456")).json()["deleted"] == 0, (
            "the end of one is not the number"
        )
        assert len((await got(pop, f"/v1/records?caller={NUMBER}")).json()["data"]) == 1
        said = (await deleted(pop, f"/v1/records?caller={NUMBER}")).json()
        assert (said["caller"], said["deleted"]) == (NUMBER, 1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("", "Say which calls are to be deleted: DELETE /v1/records?caller=%2B4930123456, the whole number"),
        ("?caller=", "Say which calls are to be deleted"),
        ("?caller=1&agent=x", "Unknown parameter 'agent': expected one of caller"),
        ("?callers=1", "Unknown parameter 'callers': expected one of caller"),
    ],
)
async def test_who_does_not_say_whose_is_told_how(tmp_path: Path, asked: str, said: str) -> None:
    async with running(settings(tmp_path)) as pop:
        await phoned(pop, {"caller": ""}, {"caller": "1"})
        answered = await deleted(pop, f"/v1/records{asked}")
        assert answered.status_code == 400 and said in answered.json()["error"]["message"]
        assert len((await got(pop, "/v1/records")).json()["data"]) == 2


async def test_a_pop_that_keeps_none_says_so(tmp_path: Path) -> None:
    async with running(settings(tmp_path, records={"folder": ""})) as pop:
        said = await deleted(pop, "/v1/records/rtc_fra1.000000000000")
        assert said.status_code == 404 and "records.folder" in said.json()["error"]["message"]


async def test_a_pop_that_keeps_none_forgets_what_its_dashboard_shows_of_a_caller(tmp_path: Path) -> None:
    async with running(settings(tmp_path, records={"folder": ""})) as pop:
        calls = (NUMBER, "acme"), ("+1", "acme"), (NUMBER, "clinic"), (NUMBER, "local")
        for number, (caller, tenant) in enumerate(calls):
            with phoning(pop, number, caller, tenant):
                pass
        with phoning(pop, 9) as goes_on:
            said = (await deleted(pop, "/v1/records?caller=%2B49-30-123456")).json()
        assert (said["deleted"], said["calls_in_progress"], said["not_permitted"]) == (1, [goes_on], 1)
        said = (await deleted(pop, "/v1/records?caller=%2B4930123456")).json()
        assert (said["deleted"], said["not_permitted"], said["complete"]) == (1, 1, False), "it has ended meanwhile"

        async def shown(key: str) -> list[int]:
            return [n for n in (0, 1, 2, 3, 9)
                    if (await got(pop, f"/v1/dashboard/turns/turn_{n}", key)).status_code == 200]  # fmt: skip

        assert await shown("k-operator") == [1, 2, 3]
        said = (await deleted(pop, "/v1/records?caller=%2B4930123456", "k-operator")).json()
        assert (said["deleted"], said["complete"]) == (2, True) and await shown("k-operator") == [1]
        assert (await deleted(pop, "/v1/records?tenant=acme", "k-operator")).json()["deleted"] == 1
        assert await shown("k-operator") == []


async def test_calls_of_a_tenant_or_of_a_time_are_deleted(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        await phoned(pop, {}, {"tenant": "clinic"}, {})
        assert (await deleted(pop, "/v1/records?tenant=clinic")).status_code == 403
        assert (await deleted(pop, "/v1/records?until=1")).json()["deleted"] == 0
        assert (await deleted(pop, "/v1/records?since=1")).json()["deleted"] == 2, "the tenant's alone"
        listed = await got(pop, "/v1/records?tenant=clinic", "k-operator")
        assert [row["tenant"] for row in listed.json()["data"]] == ["clinic"]
        assert (await deleted(pop, "/v1/records?tenant=clinic", "k-operator")).json()["deleted"] == 1
        assert (await got(pop, "/v1/records", "k-operator")).json()["data"] == []


async def test_a_pop_that_keeps_none_forgets_what_its_dashboard_shows_of_a_call(tmp_path: Path) -> None:
    async with running(settings(tmp_path, records={"folder": ""})) as pop:
        with phoning(pop, 0) as one:
            assert (await deleted(pop, f"/v1/records/{one}")).status_code == 409
        with phoning(pop, 1):
            pass
        assert (await deleted(pop, f"/v1/records/{one}", "k-clinic")).status_code == 404
        assert (await got(pop, "/v1/dashboard/turns/turn_0")).status_code == 200
        said = await deleted(pop, f"/v1/records/{one}")
        assert (said.status_code, said.json()) == (200, {"id": one, "object": "record.deleted", "deleted": True})
        assert [(await got(pop, f"/v1/dashboard/turns/turn_{n}")).status_code for n in (0, 1)] == [404, 200]
        assert (await deleted(pop, f"/v1/records/{one}")).status_code == 404


async def test_a_receiver_is_not_sent_what_was_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "FIRST_S", 0.1)
    port = free_port()
    async with running(settings(tmp_path, f"http://127.0.0.1:{port}/after-call")) as pop:
        gone, stays = await phoned(pop, {}, {})
        await until(lambda: pop.records and pop.records.deliveries.failed >= 2)
        assert (await deleted(pop, f"/v1/records/{gone}")).status_code == 200
        with receiving(port) as receiver:
            await until(lambda: receiver.told)
            await until(lambda: pop.records and not pop.records.deliveries.spool.waiting)
            assert [event["data"]["id"] for event in receiver.told] == [stays]


async def test_a_file_that_cannot_be_written_is_told_and_all_is_deleted_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SOON_S", 0.1)
    async with running(settings(tmp_path)) as pop:
        one, other = await phoned(pop, {}, {})
        assert pop.records
        hold = threading.Event()
        pop.records.writer.put(lambda its: None if hold.wait() else None)
        for path in (f"/v1/records/{one}", "/v1/records?caller=1"):
            said = await deleted(pop, path)
            assert (said.status_code, said.json()["error"]["code"]) == (503, "records_failing")
            assert "the disk is too slow" in said.json()["error"]["message"]
            assert "may still be deleted: ask again" in said.json()["error"]["message"]
        hold.set()
        await until(lambda: not held(tmp_path / "kept", "Rumpelstiltskin, number 0"))
        assert (await got(pop, "/v1/dashboard/turns/turn_0")).status_code == 404
        assert [row["id"] for row in (await got(pop, "/v1/records")).json()["data"]] == [other]


async def test_what_was_deleted_before_a_later_part_took_too_long_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SOON_S", 0.5)
    monkeypatch.setattr(records, "AT_A_TIME", 1)
    async with running(settings(tmp_path)) as pop:
        await phoned(pop, {}, {})
        hold, delete, asked = threading.Event(), Store.delete, list[str]()

        def slow(its: Store, ids: Sequence[str], tenant: str | None) -> Deleted:
            asked.extend(ids)
            if len(asked) > 1:
                hold.wait()
            return delete(its, ids, tenant)

        monkeypatch.setattr(Store, "delete", slow)
        assert (await deleted(pop, "/v1/records?caller=%2B4930123456")).status_code == 503
        first = int(asked[0].rpartition(".")[2], 16)
        assert (await got(pop, f"/v1/dashboard/turns/turn_{first}")).status_code == 404
        assert (await got(pop, f"/v1/dashboard/turns/turn_{1 - first}")).status_code == 200
        hold.set()
        await until(lambda: not held(tmp_path / "kept", "Rumpelstiltskin"))
        assert (await got(pop, f"/v1/dashboard/turns/turn_{1 - first}")).status_code == 404


async def test_others_write_while_somebody_reads_the_file(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        one, _ = await phoned(pop, {}, {})
        assert pop.records
        with closing(sqlite3.connect(tmp_path / "kept" / "fra1.db")) as db:
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM calls").fetchone()
            deletes = asyncio.create_task(deleted(pop, f"/v1/records/{one}"))
            await until(lambda: pop.dashboard.turn(None, "turn_0") is None)
            for _ in range(20):
                async with asyncio.timeout(store.BUSY_S / 2):
                    await pop.records.writer.carried_out(lambda its: None)
                await asyncio.sleep(0.01)
            assert not deletes.done()
        assert (await deletes).status_code == 200
        assert not await asyncio.to_thread(held, tmp_path / "kept", "Rumpelstiltskin, number 0")


async def test_who_reads_the_file_for_long_is_told_of_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(records, "BUSY_S", 0.1)
    async with running(settings(tmp_path)) as pop:
        (one,) = await phoned(pop, {})
        with sqlite3.connect(tmp_path / "kept" / "fra1.db") as db:
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM calls").fetchone()
            assert (await deleted(pop, f"/v1/records/{one}")).status_code == 200
        db.close()
        assert "what was deleted is still in fra1.db-wal" in caplog.text


async def test_its_line_for_log_shippers_is_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "calls.jsonl"
    async with running(settings(tmp_path, records={"lines": str(file)})) as pop:
        one, other = await phoned(pop, {}, {})
        with monkeypatch.context() as failing:
            failing.setattr(records, "erase_lines", Mock(side_effect=OSError(28, "No space left on device")))
            said = await deleted(pop, "/v1/records?caller=%2B4930123456")
            assert said.status_code == 503 and "records.lines" in said.json()["error"]["message"]
        assert len((await got(pop, "/v1/records")).json()["data"]) == 2, "so that the lines are found later"
        assert (await deleted(pop, f"/v1/records/{one}")).status_code == 200
        text = await asyncio.to_thread(file.read_text)
        assert "number 0" not in text and "number 1" in text
        assert (await deleted(pop, "/v1/records?caller=%2B4930123456")).json()["complete"]
        text = await asyncio.to_thread(file.read_text)
        assert "Rumpelstiltskin" not in text and NUMBER not in text and other in text

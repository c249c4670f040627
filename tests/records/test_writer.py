"""The thread that writes: in order, together, and again where the disk was full."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.records.kept_calls import HOST, call
from tests.support.waiting import until
from voicepipe.operator_views import RecordQuery
from voicepipe.records import store, writer
from voicepipe.records.store import Store
from voicepipe.records.writer import RecordWriter, Then


@pytest.fixture
def its(tmp_path: Path) -> Store:
    return Store(tmp_path / "fra1.db", HOST)


@pytest.fixture
def writes(its: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordWriter]:
    monkeypatch.setattr(writer, "AGAIN_S", 0.02)
    made = RecordWriter(its)
    yield made
    made.close()


async def ids(path: Path) -> list[str]:
    """Of the calls that are kept."""
    return await asyncio.to_thread(_ids, path)


def _ids(path: Path) -> list[str]:
    with store.reading(path / "fra1.db") as db:
        return [row.id for row in store.listed(db, RecordQuery(limit=1000))]


async def test_what_was_put_is_on_the_disk_once_something_later_is(writes: RecordWriter, tmp_path: Path) -> None:
    for number in range(300):
        writes.put(lambda its, number=number: its.began(call(number)))  # type: ignore[misc]
    assert await writes.carried_out(lambda its: "done") == "done"
    assert await ids(tmp_path) == [call(number).id for number in range(299, -1, -1)]


async def test_a_job_that_fails_does_not_take_others_along(
    writes: RecordWriter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hold = threading.Event()
    writes.put(lambda its: None if hold.wait() else None)
    writes.put(lambda its: its.began(call(1)))
    writes.put(lambda its: its.began(None))  # type: ignore[arg-type]
    writes.put(lambda its: its.began(call(2)))
    hold.set()
    await writes.carried_out(lambda its: None)
    assert await ids(tmp_path) == [call(2).id, call(1).id]
    assert "a record was not written" in caplog.text


async def test_what_is_on_the_disk_is_not_carried_out_again(writes: RecordWriter) -> None:
    """Where one job of several is of no use, and the disk is full for another: each then runs alone."""
    hold, told, full = threading.Event(), list[str](), [True]

    def later(its: Store) -> None:
        if full.pop() if full else False:
            raise sqlite3.OperationalError("database or disk is full")

    def ends(its: Store) -> Then:
        return lambda: told.append("a line")

    writes.put(lambda its: None if hold.wait() else None)
    await until(lambda: (figures := writes.figures()) and figures.running == 1)
    writes.put(ends)
    writes.put(lambda its: its.began(None))  # type: ignore[arg-type]
    writes.put(later)
    hold.set()
    await until(lambda: not full and not writes.failing)
    await writes.carried_out(lambda its: None)
    assert told == ["a line"]


async def test_a_full_disk_is_waited_for(
    writes: RecordWriter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full = threading.Event()
    full.set()

    def job(its: Store) -> None:
        if full.is_set():
            raise sqlite3.OperationalError("database or disk is full")
        its.began(call(1))

    writes.put(job)
    writes.put(lambda its: its.began(call(2)))
    await until(lambda: writes.failing)
    assert writes.failing == "database or disk is full"
    full.clear()
    await writes.carried_out(lambda its: None)
    assert len(await ids(tmp_path)) == 2 and not writes.failing
    assert caplog.text.count("records cannot be written: database or disk is full; they wait") == 1
    assert "records are written again" in caplog.text


async def test_beyond_what_may_wait_records_are_lost_and_counted(
    writes: RecordWriter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "MOST", 3)
    hold = threading.Event()
    writes.put(lambda its: None if hold.wait() else None)
    await until(lambda: (figures := writes.figures()) and figures.running == 1)
    for number in range(5):
        writes.put(lambda its, number=number: its.began(call(number)))  # type: ignore[misc]
    figures = writes.figures()
    assert figures and (figures.waiting, figures.running, figures.refused) == (2, 1, 3)
    assert caplog.text.count("records are lost") == 1
    hold.set()


def test_what_waits_is_written_before_the_end(its: Store, tmp_path: Path) -> None:
    made = RecordWriter(its)
    for number in range(50):
        made.put(lambda its, number=number: its.began(call(number)))  # type: ignore[misc]
    made.close()
    assert len(_ids(tmp_path)) == 50


def test_a_disk_that_stays_full_does_not_keep_the_pop_from_ending(
    its: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "AGAIN_S", 0.02)
    monkeypatch.setattr(writer, "LAST_S", 0.1)
    made = RecordWriter(its)

    def job(its: Store) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    made.put(job)
    made.close()
    assert "could not be written: database or disk is full" in caplog.text

"""What Prometheus reads of records, and of who is to be told of calls."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.records.kept_calls import HOST
from voicepipe.agent import Hooks
from voicepipe.base.takeover import TakeoverParts
from voicepipe.records.deliveries import Deliveries
from voicepipe.records.records import Records
from voicepipe.records.store import Spool, Store
from voicepipe.records.writer import RecordWriter


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    loop = asyncio.new_event_loop()
    path = tmp_path / "fra1.db"
    parts = TakeoverParts()
    deliveries = Deliveries(path, RecordWriter(Store(path, HOST)), loop, "", parts)
    made = Records(path, HOST, deliveries, "", 60.0, lambda agent, tenant: Hooks(), parts)
    yield made
    made.close()
    loop.close()


def told(records: Records) -> dict[str, float]:
    samples = [sample for metric in records.read_metrics(("fra1", "eu")) for sample in metric.samples]
    assert all(sample.labels == {"pop": "fra1", "region": "eu"} for sample in samples)
    return {sample.name.removeprefix("voicepipe_"): sample.value for sample in samples}


def test_where_all_is_well_they_are_there_and_0(records: Records) -> None:
    assert told(records) == {
        "records_failing": 0, "deliveries_waiting": 0, "deliveries_oldest_seconds": 0, "deliveries_failed_total": 0,
    }  # fmt: skip


def test_what_waits_is_told_with_its_age(records: Records) -> None:
    records.deliveries.spool = Spool(waiting=3, next_due=None, since=time.time() - 60)
    records.deliveries.failed = 7
    records.writer.failing = "the disk is full"
    seen = told(records)
    assert (seen["records_failing"], seen["deliveries_waiting"], seen["deliveries_failed_total"]) == (1, 3, 7)
    assert seen["deliveries_oldest_seconds"] == pytest.approx(60, abs=5)


def test_after_the_clock_was_set_back_nothing_is_younger_than_0(records: Records) -> None:
    records.deliveries.spool = Spool(waiting=1, next_due=None, since=time.time() + 3600)
    assert told(records)["deliveries_oldest_seconds"] == 0

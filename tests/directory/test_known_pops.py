"""Which PoPs a directory remembers, and for how long."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.directory.fleets import LONG_S, SIGNER
from tests.directory.server.in_process import told
from tests.support.waiting import until
from voicepipe.base.errors import ConfigError
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.known_pops import DAY_S, KnownPops


class _Clock:
    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_pop_is_known_until_nothing_can_be_left_of_what_it_kept() -> None:
    clock = _Clock()
    known = KnownPops(clock=clock)
    known.heard("fra1", 30)
    known.heard("nrt1", 0)
    assert known.names() == {"fra1"}, "the other keeps nothing"
    clock.now += 30 * DAY_S
    assert known.names() == {"fra1"}
    clock.now += 2 * DAY_S
    assert known.names() == set()


def test_a_pop_that_keeps_records_no_more_or_was_taken_away_is_not_known() -> None:
    known = KnownPops()
    for pop in ("fra1", "iad1", "nrt1"):
        known.heard(pop, 30)
    known.heard("fra1", 0)
    assert known.forget("iad1") and not known.forget("iad1")
    assert known.names() == {"nrt1"}


async def written(file: Path, names: set[str]) -> None:
    """Returns once a directory that begins with this file knows these PoPs."""
    async with asyncio.timeout(LONG_S):
        while (await asyncio.to_thread(KnownPops, file)).names() != names:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_pops_are_known_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "made" / "pops.json"
    known = await asyncio.to_thread(KnownPops, file)
    running = asyncio.create_task(known.run())
    known.heard("fra1", 30)
    await written(file, {"fra1"})
    known.heard("iad1", 7.5)
    await written(file, {"fra1", "iad1"})
    known.forget("fra1")
    await written(file, {"iad1"})
    running.cancel()


async def test_a_file_that_cannot_be_written_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("voicepipe.directory.known_pops.AGAIN_S", 0.01)
    known = await asyncio.to_thread(KnownPops, tmp_path / "pops.json")
    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", lambda descriptor: os.write(-1, b""))
        running = asyncio.create_task(known.run())
        known.heard("fra1", 30)
        await until(lambda: "may not know of all PoPs" in caplog.text)
    await written(tmp_path / "pops.json", {"fra1"})
    running.cancel()


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pops.json").write_text("[directory]")
    with pytest.raises(ConfigError, match="directory.known_pops: .*pops.json cannot be read"):
        KnownPops(tmp_path / "pops.json")


def test_a_directory_names_pops_that_it_knows_though_it_never_heard_them(tmp_path: Path) -> None:
    known = KnownPops()
    known.heard("fra1", 30)
    directory = Directory(MemoryBus(), SIGNER, known=known)
    assert directory.keepers() == {"fra1"} and directory.heard() == []
    assert directory.forget("fra1") and not directory.forget("fra1")
    assert directory.keepers() == set()


def test_a_directory_remembers_who_reports_that_it_keeps_records() -> None:
    directory = Directory(MemoryBus(), SIGNER, known=(known := KnownPops()))
    directory.take(told("fra1", keep_days=30))
    directory.take(told("nrt1"))
    assert known.names() == {"fra1"}

"""How a host keeps editions, and which one it goes by."""

from pathlib import Path

import pytest

from tests.directory.pushing import GOOD_DAY, HELLO
from voicepipe.base.errors import ConfigError
from voicepipe.directory.editions.edition import Edition
from voicepipe.directory.editions.edition_store import MOST, EditionStore


def test_a_shelf_knows_what_counts_after_a_restart(tmp_path: Path) -> None:
    store = EditionStore(tmp_path / "editions", "fra", "fleet.editions")
    assert list(store._best_first(0)) == store.all() == [] and store.find(1) is None
    one, two = Edition(1, HELLO, 1.0), Edition(2, GOOD_DAY, 2.0)
    for edition in (one, two):
        folder = store.keep(edition)
        store.use(edition)
    assert (folder / "agents" / "front-desk.toml").read_text() == GOOD_DAY["agents/front-desk.toml"]
    again = EditionStore(tmp_path / "editions", "fra", "fleet.editions")
    assert list(again._best_first(0)) == again.all() == [two, one] and again.find(1) == one
    assert list(again._best_first(1)) == [one, two]
    again.use(one)
    assert list(again._best_first(0)) == [one, two]
    assert list(EditionStore(tmp_path / "editions", "lhr", "fleet.editions")._best_first(0)) == []


def test_an_edition_whose_file_is_broken_is_left_out(tmp_path: Path) -> None:
    store = EditionStore(tmp_path, "fra", "fleet.editions")
    one, two = Edition(1, HELLO, 1.0), Edition(2, GOOD_DAY, 2.0)
    for edition in (one, two):
        folder = store.keep(edition)
        store.use(edition)
    (folder / "edition.json").write_text("")
    assert list(store._best_first(0)) == store.all() == [one] and store.find(2) is None
    store.keep(two)  # It comes again.
    assert list(store._best_first(0)) == [two, one]


def test_a_shelf_keeps_the_last_ones_and_the_one_that_counts(tmp_path: Path) -> None:
    store = EditionStore(tmp_path, "fra", "fleet.editions")
    editions = [Edition(number, HELLO, 1.0) for number in range(1, MOST + 4)]
    for edition in editions:
        store.keep(edition)
    store.use(editions[0])
    assert [edition.number for edition in store.all()] == [*range(MOST + 3, 3, -1), 1]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "editions").write_text("a file")
    with pytest.raises(ConfigError, match="fleet.editions: editions cannot be written into .*: give a folder"):
        EditionStore(tmp_path / "editions", "fra", "fleet.editions").keep(Edition(1, HELLO, 1.0))

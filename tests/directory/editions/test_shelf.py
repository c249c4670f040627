"""How a host keeps editions, and which one it goes by."""

from pathlib import Path

import pytest

from tests.directory.pushing import GOOD_DAY, HELLO
from voicepipe.base.errors import ConfigError
from voicepipe.directory.editions.edition import Edition
from voicepipe.directory.editions.shelf import MOST, Shelf


def test_a_shelf_knows_what_counts_after_a_restart(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "editions", "fra", "fleet.editions")
    assert list(shelf._best_first(0)) == shelf.all() == [] and shelf.find(1) is None
    one, two = Edition(1, HELLO, 1.0), Edition(2, GOOD_DAY, 2.0)
    for edition in (one, two):
        folder = shelf.keep(edition)
        shelf.go_by(edition)
    assert (folder / "agents" / "front-desk.toml").read_text() == GOOD_DAY["agents/front-desk.toml"]
    again = Shelf(tmp_path / "editions", "fra", "fleet.editions")
    assert list(again._best_first(0)) == again.all() == [two, one] and again.find(1) == one
    assert list(again._best_first(1)) == [one, two]
    again.go_by(one)
    assert list(again._best_first(0)) == [one, two]
    assert list(Shelf(tmp_path / "editions", "lhr", "fleet.editions")._best_first(0)) == []


def test_an_edition_whose_file_is_broken_is_left_out(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "fra", "fleet.editions")
    one, two = Edition(1, HELLO, 1.0), Edition(2, GOOD_DAY, 2.0)
    for edition in (one, two):
        folder = shelf.keep(edition)
        shelf.go_by(edition)
    (folder / "edition.json").write_text("")
    assert list(shelf._best_first(0)) == shelf.all() == [one] and shelf.find(2) is None
    shelf.keep(two)  # It comes again.
    assert list(shelf._best_first(0)) == [two, one]


def test_a_shelf_keeps_the_last_ones_and_the_one_that_counts(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "fra", "fleet.editions")
    editions = [Edition(number, HELLO, 1.0) for number in range(1, MOST + 4)]
    for edition in editions:
        shelf.keep(edition)
    shelf.go_by(editions[0])
    assert [edition.number for edition in shelf.all()] == [*range(MOST + 3, 3, -1), 1]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "editions").write_text("a file")
    with pytest.raises(ConfigError, match="fleet.editions: editions cannot be written into .*: give a folder"):
        Shelf(tmp_path / "editions", "fra", "fleet.editions").keep(Edition(1, HELLO, 1.0))

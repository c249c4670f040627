"""What a directory begins with."""

from pathlib import Path

import pytest

from tests.directory.pushing import RULED, TENANTS, WITH_KEY
from voicepipe.base.errors import ConfigError
from voicepipe.config.directory_config import DirectoryConfig, DirectorySection
from voicepipe.directory.editions.directory_editions import begun, store_of
from voicepipe.directory.editions.edition import Edition


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every host has them."""
    monkeypatch.setenv("HARBOUR_KEY", "k-harbour")
    monkeypatch.setenv("OPS_KEY", "k-ops")
    return monkeypatch


def test_a_directory_begins_with_the_newest_edition_whose_rules_are_still_good(
    tmp_path: Path, keys: pytest.MonkeyPatch
) -> None:
    config = DirectoryConfig(directory=DirectorySection(editions=str(tmp_path)), http=WITH_KEY)
    store = store_of(config)
    assert store
    for edition in (
        Edition(1, RULED, 1.0),
        Edition(2, {**RULED, "fleet.toml": TENANTS.replace("HARBOUR", "OTHER")}, 2.0),
    ):
        store.keep(edition)
        store.use(edition)
    its = begun(config, store)
    assert its.edition and its.edition.number == 1 and its.config.tenants and its.problem.startswith("edition 2: ")
    keys.delenv("HARBOUR_KEY")
    with pytest.raises(ConfigError, match="None of the editions in .* can be begun with"):
        begun(config, store)

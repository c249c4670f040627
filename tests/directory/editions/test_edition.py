"""An edition's files, and what hosts begin with."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.directory.fleets import (
    FRANKFURT,
    public_key,
    settings,
)
from tests.directory.pushing import GOOD_DAY, HELLO, ROUTES, RULED
from voicepipe.base.errors import ConfigError
from voicepipe.directory.editions import pop_editions
from voicepipe.directory.editions.edition import Edition, check, gathered, packed, unpacked


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every host has them."""
    monkeypatch.setenv("HARBOUR_KEY", "k-harbour")
    monkeypatch.setenv("OPS_KEY", "k-ops")
    return monkeypatch


def test_a_folder_is_gathered_with_what_its_agents_name(tmp_path: Path) -> None:
    (tmp_path / "agents" / "intents").mkdir(parents=True)
    (tmp_path / "agents" / "desk.toml").write_text('name = "desk"\nintents_file = "intents/desk.toml"\n')
    (tmp_path / "agents" / "intents" / "desk.toml").write_text("[[intents]]\n")
    (tmp_path / "agents" / "tools.py").write_text("def book(): ...\n")
    (tmp_path / "fleet.toml").write_text(ROUTES)
    files = gathered(tmp_path / "agents", tmp_path / "fleet.toml")
    assert sorted(files) == ["agents/desk.toml", "agents/intents/desk.toml", "fleet.toml"]
    edition = Edition(3, files, 1.0)
    assert unpacked(packed(edition)) == edition
    assert (
        edition.digest == Edition(4, dict(reversed(files.items())), 2.0, like=3).digest != Edition(3, HELLO, 1.0).digest
    )


@pytest.mark.parametrize("path", ["agents/../x.toml", "/etc/x.toml", "agents/a/b/c.toml", "agents/x.py", "x.toml",
                                  "agents/.hidden.toml", "agents//x.toml", "agents/x.toml\n"])  # fmt: skip
def test_no_file_is_taken_that_would_lie_elsewhere(path: str) -> None:
    with pytest.raises(ConfigError, match="cannot be pushed"):
        check({**HELLO, path: ""})


@pytest.mark.parametrize("said", [b"", b"x", b"\x78\x9c\x03\x00\x00\x00\x00\x01"])
def test_what_is_no_edition_is_told(said: bytes) -> None:
    with pytest.raises(ValueError, match="no edition"):
        unpacked(said)


def test_a_pop_begins_with_the_newest_edition_that_is_still_good(tmp_path: Path, keys: pytest.MonkeyPatch) -> None:
    config = settings("fra", public_key(tmp_path), FRANKFURT, fleet={"editions": str(tmp_path / "editions")})
    store = pop_editions.store_of(config)
    assert store
    for edition in (Edition(1, HELLO, 1.0), Edition(2, {**RULED, **GOOD_DAY}, 2.0)):
        store.keep(edition)
        store.use(edition)
    its = pop_editions.begun(config, store)
    assert its.edition and its.edition.number == 2 and its.config.tenants and not its.problem
    keys.delenv("HARBOUR_KEY")
    its = pop_editions.begun(config, store)
    assert its.edition and its.edition.number == 1 and not its.config.tenants
    assert its.problem.startswith("edition 2: ") and "HARBOUR_KEY" in its.problem
    pinned = replace(config, fleet=replace(config.fleet, edition=7))
    assert "It is to stay at edition 7" not in its.problem
    keys.setenv("HARBOUR_KEY", "k-harbour")
    its = pop_editions.begun(pinned, store)
    assert (
        its.edition
        and its.edition.number == 2
        and its.problem == "It is to stay at edition 7, which it has not got yet."
    )

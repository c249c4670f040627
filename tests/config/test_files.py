"""Configuration files: those that are shipped, what lies over what, and where their paths lead."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.config.told import problem
from tests.support.paths import ROOT
from voicepipe import config
from voicepipe.base.errors import ConfigError
from voicepipe.config import Config
from voicepipe.config.agent_store import open_agents

TENANTS = """[[tenants]]
name = "a"
key_env = "A"
[[tenants]]
name = "b"
key_env = "B"
"""


def test_the_routes_of_a_configuration_may_name_the_tenants_of_a_manifest(write: Any) -> None:
    loaded = config.load(write('[[routes]]\ntenant = "b"\n'), write(TENANTS, "pop.toml"))
    assert loaded.routes[0].tenant == "b"


OTHERS = {ROOT / "configs" / name for name in ("directory.toml", "fleet.toml", "probe.toml")}
"""Not a PoP's."""


@pytest.mark.parametrize("path", sorted({*(ROOT / "configs").glob("*.toml")} - OTHERS), ids=lambda path: path.name)
def test_shipped_configurations_load(path: Path) -> None:
    assert open_agents(config.load(path)).names()


@pytest.mark.parametrize("path", sorted((ROOT / "pops").glob("*.toml")), ids=lambda path: path.name)
def test_shipped_manifests_load(path: Path) -> None:
    assert config.load(None, path).pop.id == path.stem


def test_without_files_the_defaults_stand() -> None:
    loaded = config.load()
    assert loaded.pop.agents == str(ROOT / "configs" / "agents")
    assert msgspec.structs.replace(loaded, pop=Config().pop) == Config()


def test_a_manifest_overrides_the_file_key_by_key(write: Any) -> None:
    file = write("[pop]\nslots = 7\nregion = 'north'\n[turn]\nprepare_ms = 90")
    manifest = write("[pop]\nid = 'fra1'\nregion = 'south'", "fra1.toml")
    loaded = config.load(file, manifest)
    assert (loaded.pop.id, loaded.pop.region, loaded.pop.slots) == ("fra1", "south", 7)
    assert loaded.turn.prepare_ms == 90


def test_a_manifest_sets_only_what_differs_by_place(write: Any) -> None:
    manifest = write("[turn]\nprepare_ms = 90", "fra1.toml")
    with pytest.raises(ConfigError, match=r"fra1\.toml: turn: is not for a PoP's manifest; .*; allowed: pop, http"):
        config.load(None, manifest)


def test_paths_are_relative_to_their_file(write: Any, tmp_path: Path) -> None:
    for name in ("mine", "tls.pem", "tls.key"):
        (tmp_path / name).mkdir()
    file = write("[pop]\nagents = 'mine'\n[http]\ncert = 'tls.pem'\nkey = 'tls.key'")
    loaded = config.load(file)
    assert loaded.pop.agents == str(tmp_path / "mine")
    assert loaded.http.cert == str(tmp_path / "tls.pem")


def test_a_path_to_nowhere(write: Any, tmp_path: Path) -> None:
    assert f"pop.agents: there is no {tmp_path / 'mine'}" in problem(write("[pop]\nagents = 'mine'"))


def test_credentials_of_a_unit_are_found_by_their_variable(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "credentials").mkdir()
    for name in ("cert", "key", "acme"):
        (folder / name).write_text(name)
    paths = {name: f"$CREDENTIALS_DIRECTORY/{name}" for name in ("cert", "key", "acme")}
    text = "[http]\ncert = '{cert}'\nkey = '{key}'\n[[tenants]]\nname = 'acme'\nkey_file = '{acme}'\n".format(**paths)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    loaded = config.load(write(text))
    assert (loaded.http.cert, loaded.tenants[0].key_file) == (str(folder / "cert"), str(folder / "acme"))
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    assert "http.cert: there is no $CREDENTIALS_DIRECTORY/cert, since systemd alone sets" in problem(write(text))
    loaded = config.load(write(text.partition("[[")[1] + text.partition("[[")[2]))
    assert loaded.tenants[0].key_file == paths["acme"], "only a warning of `voicepipe check`"


def test_a_fleet_s_rules_name_files_that_every_host_has(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = '[[tenants]]\nname = "a"\nkey_file = "{}"\n'
    with pytest.raises(
        ConfigError, match=r"fleet\.toml: tenants\[0\]\.key_file: a\.key would be somewhere else at each host"
    ):
        config.load_rules(write(tenant.format("a.key"), "fleet.toml"))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    rules = config.parse_rules(tenant.format("$CREDENTIALS_DIRECTORY/a.key"), "fleet.toml")
    assert rules.tenants and rules.tenants[0].key_file == str(tmp_path / "a.key")

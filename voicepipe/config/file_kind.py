"""The kind of a TOML file, by its folder and its keys; and the files that an error is about."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from voicepipe.agent import Agent, Intents
from voicepipe.base.errors import ConfigError
from voicepipe.config.directory_config import DirectoryConfig, FleetRules
from voicepipe.config.hosts_config import HostsConfig
from voicepipe.config.pop_config import Config
from voicepipe.config.probe_config import ProbeConfig

Kind = Literal["configuration", "manifest", "intents", "directory", "agent", "rules", "probe", "hosts"]
"""The kind of a TOML file. A manifest has keys of a configuration: only its folder distinguishes them."""
FOLDERS: dict[str, Kind] = {"agents": "agent", "intents": "intents"}
"""Folders in which every file is of one kind."""
RULES = "fleet.toml"
"""Name of the file of rules, which has only keys of a configuration."""
BELONGS: dict[Kind, str] = {
    "agent": "is an agent; the configuration names its folder (pop.agents), and `voicepipe demo --agent` runs it",
    "intents": "holds intents; an agent names it (intents_file)",
    "directory": "is a directory's configuration; `voicepipe directory --config` runs it",
    "configuration": "is a PoP's configuration; `voicepipe pop --config` runs it",
    "probe": "says whom a probe calls; `voicepipe probe --config` runs it",
    "hosts": "names a fleet's hosts; `voicepipe configs write` makes their files from it",
    "rules": "says whose calls a fleet takes; `voicepipe push FOLDER --with` sends it to its hosts",
}
"""What a file of each kind is for: the end of the error for a file of a kind that is not wanted."""
KEYS: dict[Kind, frozenset[str]] = {
    "configuration": frozenset(Config.__struct_fields__),
    "intents": frozenset(Intents.__struct_fields__),
    "directory": frozenset(DirectoryConfig.__struct_fields__),
    "agent": frozenset(Agent.__struct_fields__),
    "rules": frozenset(FleetRules.__struct_fields__),
    "probe": frozenset(ProbeConfig.__struct_fields__),
    "hosts": frozenset(HostsConfig.__struct_fields__),
}


def kind_of(file: Path, tables: Mapping[str, Any]) -> Kind:
    """The kind of a file: by the folder, where files of one kind lie, else by the keys."""
    folder = file.resolve().parent.name
    if folder in FOLDERS:
        return FOLDERS[folder]
    if file.name == RULES:
        return "rules"
    kind = _by_keys(tables)
    return "manifest" if kind == "configuration" and folder == "pops" else kind


def check_kind(file: Path, tables: Mapping[str, Any], wanted: Kind) -> None:
    """Raises ConfigError: the file's keys are those of another kind, which has more of them. A list of wrong keys would
    not help then."""
    kind = _by_keys(tables)
    here, there = (KEYS[each] & tables.keys() for each in (wanted, kind))
    if here < there:
        key = next(key for key in tables if key in there - here)
        raise ConfigError(f"{file}: {key}: this file {BELONGS[kind]}")


def _by_keys(tables: Mapping[str, Any]) -> Kind:
    """The kind that has most of these keys; of two that have as many, the first."""
    return max(KEYS, key=lambda kind: len(KEYS[kind] & tables.keys()))


def located(error: ConfigError, *files: Path | None) -> ConfigError:
    """`error` with the names of the files that it is about, unless it names one itself, or an option."""
    names = [str(file) for file in files if file]
    if not names or str(error).startswith(("/", "--", *names)):
        return error
    return ConfigError(f"{' with '.join(names)}: {error}")

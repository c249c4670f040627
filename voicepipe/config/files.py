"""Configuration files of PoPs, directories and fleets: read, checked, and their paths made absolute."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from voicepipe.base.environment import CREDENTIALS, variable
from voicepipe.base.errors import ConfigError
from voicepipe.base.secret_source import FILE, OUTSIDE, pairs
from voicepipe.config import toml_file
from voicepipe.config.cross_checks import check_owners, check_together
from voicepipe.config.directory_config import DirectoryConfig, FleetRules
from voicepipe.config.file_kind import check_kind, located
from voicepipe.config.hosts_config import HostsConfig
from voicepipe.config.pop_config import Config, Manifest
from voicepipe.config.probe_config import ProbeConfig, check_targets

PATHS = (
    ("pop", "agents"),
    ("http", "cert"),
    ("http", "key"),
    ("fleet", "keys"),
    ("bus", "credentials"),
    ("tls", "ca"),
)
DIRECTORY_PATHS = (
    ("directory", "key"),
    ("directory", "keys"),
    ("bus", "credentials"),
    ("tls", "ca"),
    ("http", "cert"),
    ("http", "key"),
)
"""Tables and keys that name files: of a PoP, of a directory."""

MODELS = (
    ("whisper", "model"),
    ("nemotron", "model"),
    ("vllm", "model"),
    ("kokoro", "model"),
    ("kokoro", "voices"),
    ("neutts", "model"),
    ("neutts", "codec"),
    ("coqui", "model"),
    ("coqui", "python"),
    ("endpoint", "model"),
)
"""Tables and keys that name files which may come later, or be elsewhere: a model is fetched, an interpreter installed.
A name that is no relative path ("org/name" on the hub, "python3") stays as it is."""

MADE = (("records", "folder"), ("records", "lines"), ("fleet", "editions"))
DIRECTORY_MADE = (("directory", "editions"), ("directory", "known_pops"))
"""Tables and keys that name files which are created; "-" is standard output."""


def parse(data: dict[str, Any], source: object = "configuration") -> Config:
    """A struct from tables as TOML gives them, checked. Raises ConfigError; `source` names them in its text."""
    return toml_file.convert(data, Config, source)


def load(config_file: Path | None = None, pop_file: Path | None = None) -> Config:
    """The configuration of a PoP: the built-in defaults, overridden by `config_file`, overridden by the PoP's
    manifest. Paths in the result are absolute. Raises ConfigError with one line "FILE: key.path: what is wrong" for
    each problem."""
    tables: dict[str, Any] = {}
    for file, shape in ((config_file, Config), (pop_file, Manifest)):
        if file:
            tables = _over(tables, _checked(file, shape))
    tables = _over({"pop": {"agents": str(shipped_files() / "configs" / "agents")}}, tables)
    # Each file was checked alone; what can still be wrong is how they go together.
    config = parse(tables, " with ".join(str(file) for file in (config_file, pop_file) if file))
    try:
        check_together(config)
    except ConfigError as error:
        raise located(error, config_file, pop_file) from None
    return config


def shipped_files() -> Path:
    """The folder with voicepipe's own `configs/` and `pops/`: inside the package when installed, else the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_shipped"
    return installed if installed.is_dir() else package.parent


def load_directory(file: Path) -> DirectoryConfig:
    """The configuration of a directory. Paths in the result are absolute. Raises ConfigError with one line for each
    problem."""
    tables = toml_file.tables(file)
    check_kind(file, tables, "directory")
    locate_secrets(toml_file.convert(tables, DirectoryConfig, file), tables, file)
    locate(tables, DIRECTORY_PATHS, file)
    locate_made(tables, DIRECTORY_MADE, file)
    config = toml_file.convert(tables, DirectoryConfig, file)
    try:
        check_owners(config)
        if (config.twilio.auth_token or config.telnyx.public_key) and not config.telephony.public_url:
            raise ConfigError(
                "telephony.public_url: say how Twilio and Telnyx reach this directory, as https://voice.example.com"
            )
    except ConfigError as error:
        raise located(error, file) from None
    return config


def load_probe(file: Path) -> ProbeConfig:
    """The configuration of a probe. Paths in the result are absolute. Raises ConfigError with one line for each
    problem."""
    tables = toml_file.tables(file)
    check_kind(file, tables, "probe")
    locate_secrets(toml_file.convert(tables, ProbeConfig, file), tables, file)
    locate(tables, (("tls", "ca"),), file)
    for target in tables.get("targets", ()):
        question = file.resolve().parent / Path(target.get("question", "")).expanduser()
        if question.is_file():
            target["question"] = str(question)
    config = toml_file.convert(tables, ProbeConfig, file)
    try:
        check_targets(config)
    except ConfigError as error:
        raise located(error, file) from None
    return config


def load_hosts(file: Path) -> HostsConfig:
    """The hosts of a fleet. Raises ConfigError with one line for each problem."""
    tables = toml_file.tables(file)
    check_kind(file, tables, "hosts")
    return toml_file.convert(tables, HostsConfig, file)


def load_rules(file: Path) -> FleetRules:
    """The rules of a fleet in a file. Raises ConfigError with one line for each problem."""
    return _rules(toml_file.tables(file), file)


def parse_rules(text: str, name: str) -> FleetRules:
    """The rules of a fleet in a text; `name` is its file's name for errors."""
    return _rules(toml_file.parsed(text, name), Path(name))


def _rules(tables: dict[str, Any], file: Path) -> FleetRules:
    check_kind(file, tables, "rules")
    for table, key, at in _secret_files(toml_file.convert(tables, FleetRules, file), tables):
        if not table[key].startswith(("/", f"${CREDENTIALS}/")):
            raise ConfigError(
                f"{file}: {at}: {table[key]} would be somewhere else at each host; give an absolute path, or one that "
                f"begins with ${CREDENTIALS}/"
            )
        table[key] = placed(file, table[key])
    return toml_file.convert(tables, FleetRules, file)


def _checked(file: Path, shape: type[Manifest]) -> dict[str, Any]:
    """The file's tables, valid on their own, with paths that were relative to the file."""
    tables = toml_file.tables(file)
    check_kind(file, tables, "configuration")
    allowed = shape.__struct_fields__
    for key in tables:
        if key in Config.__struct_fields__ and key not in allowed:
            raise ConfigError(f"{file}: {key}: is not for a PoP's manifest; put it into the configuration (--config); "
                              f"allowed: {', '.join(allowed)}")  # fmt: skip
    locate_secrets(toml_file.convert(tables, shape, file), tables, file)
    locate(tables, PATHS, file)
    locate_made(tables, MADE, file)
    for voice in tables.get("neutts", {}).get("voices", {}).values():
        locate_made({"voice": voice}, (("voice", "file"),), file)
    adapters = tables.get("vllm", {}).get("lora", {})
    for its, key in (
        *((tables.get(table, {}), key) for table, key in MODELS),
        *((adapters, name) for name in adapters),
    ):
        if name := its.get(key):
            path = placed(file, name)
            if name.startswith((".", "/", "~")) or os.path.exists(path):
                its[key] = path
    return tables


def locate(tables: dict[str, Any], paths: Iterable[tuple[str, str]], file: Path) -> None:
    """Make the paths absolute that these keys name, one or several each. Raises ConfigError: a file does not exist."""
    for table, key in paths:
        if named := tables.get(table, {}).get(key):
            found = [_existing(file, f"{table}.{key}", name) for name in ([named] if isinstance(named, str) else named)]
            tables[table][key] = found[0] if isinstance(named, str) else found


def locate_made(tables: dict[str, Any], paths: Iterable[tuple[str, str]], file: Path) -> None:
    """Make the paths absolute that these keys name; the files are created when they are needed."""
    for table, key in paths:
        if (name := tables.get(table, {}).get(key)) and name != "-":
            tables[table][key] = placed(file, name)


def locate_secrets(its: msgspec.Struct, tables: dict[str, Any], file: Path) -> None:
    """Make the paths absolute by which `tables`, which were read as `its`, name files with secrets. They need not
    exist: `check` warns where they do not."""
    for table, key, _ in _secret_files(its, tables):
        table[key] = placed(file, table[key])


def _secret_files(
    its: msgspec.Struct, table: dict[str, Any], at: tuple[str | int, ...] = ()
) -> Iterator[tuple[dict[str, Any], str, str]]:
    """The keys that name files with secrets: the table in which each stands, the key, and its path in the file. `its`
    is what `table`, which stands `at` this path, was read as."""
    for key in (f"{name}{FILE}" for name in pairs(its)):
        if table.get(key):
            yield table, key, toml_file.dotted((*at, key))
    for name in its.__struct_fields__:
        inner, written = getattr(its, name), table.get(name)
        if isinstance(inner, msgspec.Struct) and written:
            yield from _secret_files(inner, written, (*at, name))
        elif isinstance(inner, tuple) and written:
            for index, one in enumerate(inner):
                if isinstance(one, msgspec.Struct):
                    yield from _secret_files(one, written[index], (*at, name, index))


def placed(file: Path, name: str) -> str:
    """The absolute path that a key of `file` names. $CREDENTIALS_DIRECTORY at its beginning is systemd's folder of the
    unit's credentials; where there is none it stays as it is."""
    folder, _, rest = name.partition("/")
    if folder == f"${CREDENTIALS}":
        if not (folder := variable(CREDENTIALS)):
            return name
        name = f"{folder}/{rest}"
    return os.path.normpath(file.resolve().parent / Path(name).expanduser())


def _existing(file: Path, key: str, name: str) -> str:
    """The path that `key` of this file names, absolute. Raises ConfigError: it does not exist."""
    path = placed(file, name)
    if path.startswith(f"${CREDENTIALS}/"):
        raise ConfigError(f"{file}: {key}: there is no {path}, {OUTSIDE}")
    try:
        os.stat(path)
    except FileNotFoundError:
        raise ConfigError(f"{file}: {key}: there is no {path}; paths are relative to this file") from None
    except OSError as error:
        raise ConfigError(f"{file}: {key}: {path} cannot be reached: {error.strerror}") from None
    return path


def _over(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """`lower` with the keys of `upper` merged into it, table by table; a list replaces a list."""
    merged = dict(lower)
    for key, value in upper.items():
        merged[key] = _over(merged[key], value) if isinstance(value, dict) and key in merged else value
    return merged

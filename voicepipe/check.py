"""`voicepipe check`: read files as the PoP would, and say what is wrong before it does."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from voicepipe import config, directory_config, fleet_keys, toml_file
from voicepipe.agent_store import load_agent, open_agents
from voicepipe.directory_server.run import check as check_directory
from voicepipe.engines import hub, models, packages
from voicepipe.errors import ConfigError
from voicepipe.ingress.local import check_exposure, check_phones


def run(paths: Iterable[Path]) -> int:
    """Check files and directories, a line for each file or problem. Exit status 2 if anything is wrong."""
    problems = [problem for path in paths for file in _files(path) if (problem := _checked(file))]
    return 2 if problems else 0


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.toml")) if path.is_dir() else [path]


def _checked(file: Path) -> str:
    """Prints the verdict on one file; the problem, or nothing."""
    try:
        kind = kind_of(file, toml_file.tables(file))
        if kind == "agent":
            load_agent(file)
        elif kind == "directory":
            _warn_of_directory(file, directory_config.load(file))
        else:
            settings = config.load(None, file) if kind == "manifest" else config.load(file)
            open_agents(settings)
            _warn(file, settings)
    except ConfigError as error:
        print(error)
        return str(error)
    print(f"{file}: ok ({kind})")
    return ""


def _warn_of_directory(file: Path, settings: directory_config.DirectoryConfig) -> None:
    try:
        check_directory(settings)
        fleet_keys.signer(settings.directory.key)
        config.keys_of(settings.tenants)
    except ConfigError as error:
        print(f"{file}: warning: a directory does not start like this: {error}")


def _warn(file: Path, settings: config.Config) -> None:
    """Prints what a PoP would not start with, or refuse callers for, unless another file adds what is missing."""
    for check in (check_exposure, check_phones):
        try:
            check(settings)
        except ConfigError as error:
            print(f"{file}: warning: by itself this is refused: {error}")
    for name in config.missing_secrets(settings):
        print(f"{file}: warning: the environment variable {name} is not set here, and a PoP does not start without it")
    for problem in (*packages.problems(settings), *models.problems(settings)):
        print(f"{file}: warning: {hub.copyable(problem, file)}")
    slots, sip, webrtc = settings.pop.slots, settings.sip, settings.webrtc
    pairs = (sip.last_port + 1) // 2 - (sip.first_port + 1) // 2  # an even port and the next
    for table, room in (("sip", pairs), ("webrtc", webrtc.last_port - webrtc.first_port + 1)):
        if getattr(settings, table).first_port and room < slots:
            print(
                f"{file}: warning: {table}.first_port to last_port have room for {room} calls, and pop.slots is {slots}"
            )


def kind_of(file: Path, tables: dict[str, Any]) -> str:
    """ "agent", "directory", "manifest" or "configuration": by the folder where those belong, else by the content."""
    if file.resolve().parent.name == "agents" or "name" in tables:
        return "agent"
    if "directory" in tables:
        return "directory"
    return "manifest" if file.resolve().parent.name == "pops" else "configuration"

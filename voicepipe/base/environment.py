"""The environment variables. They are read here and nowhere else."""

import os
import secrets
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

MODELS = "VOICEPIPE_MODELS"
"""Names the variable with another folder for models."""
CREDENTIALS = "CREDENTIALS_DIRECTORY"
"""Names the variable with the folder of a service's credentials (systemd.exec(5), LoadCredential=)."""


def variable(name: str) -> str:
    """The value of the environment variable `name`, stripped; empty where it is not set."""
    return os.environ.get(name, "").strip()


def taken_variable(name: str) -> str:
    """The value of the environment variable `name`, which no program gets that is started from here; empty where it is
    not set."""
    return os.environ.pop(name, "")


def made_up(name: str) -> str:
    """The secret in the environment variable `name`; without one it is generated, also for programs started from
    here."""
    os.environ[name] = variable(name) or secrets.token_urlsafe(12)
    return os.environ[name]


def put_variable(name: str, value: str) -> None:
    """Set a variable for libraries that this process loads later, and for programs that it starts; an earlier value is
    replaced."""
    os.environ[name] = value


def default_variables(variables: Mapping[str, str]) -> None:
    """Set variables for libraries that take settings in no other way; variables that are set already stay."""
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def state_directory() -> Path:
    """Folder for what a user's programs keep (XDG); it need not exist yet."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "voicepipe"


def models_directory() -> Path:
    """Folder of models that are known file by file; it need not exist yet."""
    if named := variable(MODELS):
        return Path(named).expanduser().absolute()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "voicepipe" / "models"


def for_program(variables: Mapping[str, str], without: Collection[str] = ()) -> dict[str, str]:
    """The environment of a program: ours, with these variables, and without those."""
    return {**{name: value for name, value in os.environ.items() if name not in without}, **variables}


def own_command() -> list[str]:
    """The command line by which this program was started. A script is named as it was asked for, also where that is a
    link which leads to another version by now."""
    script = Path(sys.argv[0])
    return sys.argv if os.access(script, os.X_OK) and script.suffix != ".py" else sys.orig_argv


def cores() -> int:
    """Processors that this process may use: a container, or whoever started it, may have given it fewer than exist."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def visible_gpus() -> str | None:
    """The GPUs that CUDA shows to this process; None: all."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def library_folders() -> tuple[Path, ...]:
    """Folders that the system's loader searches first."""
    return tuple(Path(folder) for folder in variable("LD_LIBRARY_PATH").split(":") if folder)


def mps_runs() -> bool:
    """Whether a CUDA MPS control daemon serves this process's GPUs (MPS manual, 4.2)."""
    return (Path(variable("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps") / "control").exists()

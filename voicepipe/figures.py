"""What was measured: percentiles, and what a command found as JSON beside how it was measured, from which tables of
figures are made."""

import dataclasses
import json
import math
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from voicepipe import __version__
from voicepipe.errors import ProbeError

SECRET = "--key"
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class MeasuredOn:
    """Where it was measured."""

    cores: int
    cpu: str
    """Its model; empty where the system does not tell."""


@dataclass(frozen=True, slots=True)
class Measured:
    """How figures came about."""

    command: str
    date: str
    """Year, month and day (UTC)."""
    machine: MeasuredOn
    version: str
    commit: str
    """With "-dirty" behind it where files had changed since; empty outside a checkout."""


def percentile(values: Sequence[float], percent: float) -> float | None:
    """By linear interpolation between the two nearest of `values`; None without any."""
    if not values:
        return None
    ascending, place = sorted(values), (len(values) - 1) * percent / 100
    below, above = ascending[math.floor(place)], ascending[math.ceil(place)]
    return below if below == above else below + (above - below) * (place % 1)  # The same may be infinite.


def keep(path: Path | None, figures: object) -> None:
    """Write {"measured": ..., "figures": ...}, where a file is wanted. Raises ProbeError where it cannot be written."""
    if path is None:
        return
    today, machine = datetime.now(UTC).date().isoformat(), MeasuredOn(os.cpu_count() or 0, cpu())
    made = Measured(command(sys.orig_argv), today, machine, __version__, commit())
    text = json.dumps({"measured": made, "figures": figures}, indent=2, ensure_ascii=False, default=_plain)
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise ProbeError(f"{path} cannot be written: {error.strerror}") from error


def _plain(figures: object) -> object:
    """A structure's fields. `bench engines` runs where msgspec is not installed: its figures are dataclasses."""
    if dataclasses.is_dataclass(figures) and not isinstance(figures, type):
        return dataclasses.asdict(figures)
    import msgspec

    return msgspec.to_builtins(figures, str_keys=True)


def command(arguments: Sequence[str]) -> str:
    """As one would type it: without this machine's folders, and without the key."""
    words = [Path(word).name if word.startswith("/") else word for word in arguments]
    for at, word in enumerate(words):
        if word == SECRET and words[at + 1 :]:
            words[at + 1] = "..."
        elif word.startswith(f"{SECRET}="):
            words[at] = f"{SECRET}=..."
    return shlex.join(words)


def cpu() -> str:
    """The processor's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def commit() -> str:
    """Of the checkout that this code is in."""
    if not (ROOT / ".git").exists():
        return ""
    git = ("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*")
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""

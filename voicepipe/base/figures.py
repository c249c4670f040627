"""Measurements: percentiles, tables for a terminal, and a command's results as JSON with their origin, from which
tables of figures are made."""

import dataclasses
import json
import math
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console

from voicepipe import __version__
from voicepipe.base.errors import ProbeError

WIDEST = 10_000
"""Columns of a file or a pipe: no table is wider, so that none is cut off."""
SECRET = "--key"
ROOT = Path(__file__).parents[2]
VECTORS = {"avx512_vnni": "AVX-512 VNNI", "avx512f": "AVX-512", "avx2": "AVX2"}
"""A flag of Linux's, and its name; the widest first."""


def for_tables() -> Console:
    """A console for standard output, as wide as the terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDEST)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """A percentile by linear interpolation between the two nearest of `values`; None without any."""
    if not values:
        return None
    ascending, place = sorted(values), (len(values) - 1) * percent / 100
    below, above = ascending[math.floor(place)], ascending[math.ceil(place)]
    return below if below == above else below + (above - below) * (place % 1)  # The same may be infinite.


def keep(path: Path | None, figures: object) -> None:
    """Write {"measured": ..., "figures": ...}, where a file is wanted. "measured" is the origin of the figures: when
    (UTC), where, by which command, version and commit. Raises ProbeError: it cannot be written."""
    if path is None:
        return
    measured = {
        "command": command(sys.orig_argv),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"cores": os.cpu_count() or 0, "cpu": cpu(), "vectors": vectors()},
        "version": __version__,
        "commit": commit(),
    }
    text = json.dumps({"measured": measured, "figures": figures}, indent=2, ensure_ascii=False, default=_plain)
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise ProbeError(f"{path} cannot be written: {error.strerror}") from error


def _plain(figures: object) -> object:
    if dataclasses.is_dataclass(figures) and not isinstance(figures, type):
        return dataclasses.asdict(figures)
    return msgspec.to_builtins(figures, str_keys=True)


def command(arguments: Sequence[str]) -> str:
    """The command as one would type it: without this machine's folders, and without the key."""
    words = [Path(word).name if word.startswith("/") else word for word in arguments]
    for at, word in enumerate(words):
        if word == SECRET and words[at + 1 :]:
            words[at + 1] = "..."
        elif word.startswith(f"{SECRET}="):
            words[at] = f"{SECRET}=..."
    return shlex.join(words)


def cpu() -> str:
    """The processor's model; empty where the system does not say."""
    return _cpuinfo("model name") or platform.processor()


def vectors() -> str:
    """The widest vector instructions, on which recognisers and voices on a CPU depend; empty: none that we name."""
    flags = _cpuinfo("flags").split()
    return next((name for flag, name in VECTORS.items() if flag in flags), "")


def _cpuinfo(field: str) -> str:
    """What Linux reports about the first processor; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")


def commit() -> str:
    """The commit of the checkout that this code is in, with "-dirty" behind it where files have changed since; empty
    outside a checkout."""
    if not (ROOT / ".git").exists():
        return ""
    git = ("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*")
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""

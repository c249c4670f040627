"""The units of systemd that voicepipe comes with, as tests read them."""

import re
from pathlib import Path

from tests.support.paths import ROOT

SYSTEMD = ROOT / "pops" / "deploy" / "systemd"
UNITS = sorted(SYSTEMD.glob("*.service"))


def settings(unit: Path, name: str) -> list[str]:
    """The values that a unit gives a setting, in their order."""
    return re.findall(rf"^{name}=(.*)$", unit.read_text(), re.MULTILINE)


def setting(unit: Path, name: str) -> str:
    """Of the one line that has it. Raises AssertionError: there are more, or none."""
    (value,) = settings(unit, name)
    return value

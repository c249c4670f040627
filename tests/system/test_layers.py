"""The floors of DESIGN.md hold: contracts are in pyproject.toml, [tool.importlinter]."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def test_every_import_goes_down() -> None:
    linted = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize("package", ["voicepipe", "latency_probes"])
def test_the_environment_is_read_in_one_place(package: str) -> None:
    readers = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / package).rglob("*.py")
        if any(word in path.read_text() for word in ("os.environ", "os.getenv", "from os import"))
    }
    assert readers <= {"voicepipe/base/environment.py"}

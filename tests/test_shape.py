"""Long files and functions are told of, and nothing of a developer's machine gets into the repository."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.shape import ROOT, long_ones

# Written in pieces, so that this file does not find itself.
MACHINE = re.compile(
    "|".join(["/" + "work/", "/" + "root/", r"/home/(?!user\b)\w+/", "/" + r"Users/\w+/", "/" + r"tmp/\w+_jobs"])
)
REGISTRY = re.compile(
    "|".join(["files.python" + "hosted", "registry.npm" + "js", "pypi.org/" + "simple", "deb.deb" + "ian"])
)


def test_what_is_long_is_reported(tmp_path: Path) -> None:
    package = tmp_path / "voicepipe"
    package.mkdir()
    (package / "long.py").write_text("def short():\n    pass\n\n\ndef long():\n" + "    pass\n" * 400)
    (package / "short.py").write_text("def short():\n" + "    pass\n" * 59)
    assert [*long_ones(tmp_path)] == ["voicepipe/long.py: 405 lines", "voicepipe/long.py:5 long: 401 lines"]


def test_tracked_files_name_no_machine_and_no_registry() -> None:
    found = []
    for path in _tracked():
        try:
            lines = path.read_text().splitlines()
        except (UnicodeDecodeError, FileNotFoundError):  # binary; deleted and not committed yet
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
            for number, line in enumerate(lines, 1)
            if MACHINE.search(line) or REGISTRY.search(line)
        ]
    assert not found, "\n".join(found)


def _tracked() -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout, so there are no tracked files to look at")
    return [ROOT / name for name in listed.stdout.split("\0") if name]

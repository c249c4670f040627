"""Long files and functions are told of, and nothing of a developer's machine gets into the repository."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.shape import long_ones
from tests.support.paths import ROOT

# Written in pieces, so that this file does not find itself.
MACHINE = re.compile(
    "|".join(["/" + "work/", "/" + "root/", r"/home/(?!user\b)\w+/", "/" + r"Users/\w+/", "/" + r"tmp/\w+_jobs"])
)
REGISTRY = re.compile(
    "|".join(["files.python" + "hosted", "registry.npm" + "js", "pypi.org/" + "simple", "deb.deb" + "ian"])
)

STRANGERS = re.compile(r"voicepipe" + r"\[|\binstall( -\S+)* ['\"]?voicepipe" + r"(?!'s |[\w/.-])")
"""Installs "voicepipe" from a registry, where that is somebody else's package: ours is "voicepipe-pop"."""


def test_what_is_long_is_reported(tmp_path: Path) -> None:
    package = tmp_path / "voicepipe"
    package.mkdir()
    (package / "long.py").write_text("def short():\n    pass\n\n\ndef long():\n" + "    pass\n" * 400)
    (package / "short.py").write_text("def short():\n" + "    pass\n" * 59)
    assert [*long_ones(tmp_path)] == ["voicepipe/long.py: 405 lines", "voicepipe/long.py:5 long: 401 lines"]


def test_tracked_files_name_no_machine_and_no_registry() -> None:
    found = _lines_with(MACHINE, REGISTRY)
    assert not found, "\n".join(found)


def test_nothing_installs_a_stranger_s_package() -> None:
    found = _lines_with(STRANGERS)
    assert not found, "say pip install 'voicepipe-pop[EXTRA]':\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("line", "strange"),
    [
        ("pip install 'voice" + "pipe[gpu]'", True),
        ("uv pip install -U voice" + "pipe", True),
        ('pip install --upgrade "voice' + 'pipe==0.1"', True),
        ("Extra `voice" + "pipe[traces]`.", True),
        ("pip install -e '.[gpu]'", False),
        ("pip install 'voice" + "pipe-pop[gpu]'", False),
        ("install voicepipe's packages", False),
    ],
)
def test_a_stranger_is_known_by_the_line(line: str, strange: bool) -> None:
    assert bool(STRANGERS.search(line)) == strange


def _lines_with(*patterns: re.Pattern[str]) -> list[str]:
    """Of tracked files, each with its place."""
    found = []
    for path in _tracked():
        try:
            lines = path.read_text().splitlines()
        except (UnicodeDecodeError, FileNotFoundError):  # binary; deleted and not committed yet
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
            for number, line in enumerate(lines, 1)
            if any(pattern.search(line) for pattern in patterns)
        ]
    return found


def _tracked() -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout, so there are no tracked files to look at")
    return [ROOT / name for name in listed.stdout.split("\0") if name]

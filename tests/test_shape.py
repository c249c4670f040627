"""No room grows into two, and nothing of a developer's machine gets into the repository."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(path for package in ("voicepipe", "latency_probes") for path in (ROOT / package).rglob("*.py"))
MAX_FILE, MAX_FUNCTION = 400, 60

# Written in pieces, so that this file does not find itself.
MACHINE = re.compile(
    "|".join(["/" + "work/", "/" + "root/", r"/home/(?!user\b)\w+/", "/" + r"Users/\w+/", "/" + r"tmp/\w+_jobs"])
)
REGISTRY = re.compile(
    "|".join(["files.python" + "hosted", "registry.npm" + "js", "pypi.org/" + "simple", "deb.deb" + "ian"])
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or node.lineno) - node.lineno < MAX_FUNCTION, f"{path}:{node.lineno} {node.name}"


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

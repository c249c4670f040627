"""`.ci/run` with a `make` that runs a small suite: what failed once and passed the second time is named at the end."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

SUITES = ("test", "test-system", "test-clients", "test-engines", "test-vllm")
ONCE = "Failed once, passed the second time: "
MAKE = f"""#!/bin/bash
case "$1" in
  {" | ".join(SUITES)}) exec {sys.executable} -m pytest -q -p no:xdist -p no:randomly "$1".py $(
    [[ "$*" == *--last-failed* ]] && echo --last-failed --last-failed-no-failures none
  ) ;;
esac
"""
SUITE = """
from pathlib import Path

import pytest


@pytest.mark.parametrize("of", {flaky!r})
def test_stumbles(of):
    if not (mark := Path("stumbled " + of.replace("/", " "))).exists():
        mark.touch()
        raise AssertionError("FAILED other::test - [a] and ]")


@pytest.mark.parametrize("of", {broken!r})
def test_fails(of):
    raise AssertionError("always")


def test_is_well():
    pass
"""


def run(folder: Path, **suites: tuple[list[str], list[str]]) -> tuple[int, list[str], list[str]]:
    """Exit status; the tests that are named directly before the closing lines; these. A suite is its tests that fail
    once, and those that fail always."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    commands = folder / "commands"
    commands.mkdir()
    for name, script in (("make", MAKE), ("chrt", "#!/bin/bash\n")):
        (commands / name).write_text(script)
        (commands / name).chmod(0o755)
    for name in SUITES:
        flaky, broken = suites.get(name.replace("-", "_"), ([], []))
        (folder / f"{name}.py").write_text(SUITE.format(flaky=flaky, broken=broken))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PATH": f"{commands}:{os.environ['PATH']}"}
    ended = subprocess.run([folder / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=300)
    lines = ended.stdout.splitlines()
    before, closing = lines[: -len(SUITES)], lines[-len(SUITES) :]
    named = itertools.takewhile(lambda line: line.startswith(ONCE), reversed(before))
    return ended.returncode, [line.removeprefix(ONCE) for line in named][::-1], closing


@pytest.mark.slow
def test_what_failed_once_is_named_before_the_closing_lines(tmp_path: Path) -> None:
    status, named, closing = run(tmp_path, test=(["one", "a - b [c]"], []), test_vllm=(["of vLLM"], []))
    assert status == 0
    assert named == [
        "test.py::test_stumbles[a - b [c]]",
        "test.py::test_stumbles[one]",
        "test-vllm.py::test_stumbles[of vLLM]",
    ]
    assert all(" passed" in line and "failed" not in line for line in closing)


@pytest.mark.slow
def test_what_failed_twice_is_not_among_them(tmp_path: Path) -> None:
    status, named, closing = run(tmp_path, test=(["one"], ["x/y"]), test_clients=([], ["z"]))
    assert (status, named) == (1, ["test.py::test_stumbles[one]"])
    assert ["1 failed" in line for line in closing] == [False, False, False, True, True], "what failed stands last"


@pytest.mark.slow
def test_nothing_is_named_where_nothing_failed(tmp_path: Path) -> None:
    status, named, closing = run(tmp_path)
    assert (status, named) == (0, []) and all("1 passed" in line for line in closing)

"""The units are what systemd accepts, what our command line accepts, and closed as far as they can be."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.units import SYSTEMD, UNITS, setting, settings
from voicepipe.commands import cli
from voicepipe.config import Config
from voicepipe.config.directory_config import DirectorySection

ANALYZE = shutil.which("systemd-analyze")
needs_analyze = pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze (Debian: apt install systemd)")
POP, DIRECTORY = SYSTEMD / "voicepipe-pop@.service", SYSTEMD / "voicepipe-directory.service"
OURS = [unit for unit in UNITS if settings(unit, "ExecStart")[0].startswith("/opt/voicepipe/")]
EXPOSURE = 20
"""Tenths: 2.0 of 10. A service without any sandbox has 9.6; below 2.5 systemd calls it "OK". What is open: the network,
and for a PoP memory that is written and executed, since Whisper's kernels are made while it runs."""


def copied(unit: Path, folder: Path) -> Path:
    """The unit with programs that are there: systemd looks for them."""
    copy = folder / unit.name
    copy.write_text(re.sub(r"^(ExecStart=)\S+", r"\g<1>/bin/true", unit.read_text(), flags=re.MULTILINE))
    return copy


def test_there_are_units_for_all_that_runs() -> None:
    assert {unit.name for unit in UNITS} >= {
        "voicepipe-pop@.service",
        "voicepipe-directory.service",
        "voicepipe-nats.service",
        "voicepipe-probe.service",
    }


@needs_analyze
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong(unit: Path, tmp_path: Path) -> None:
    assert verified(copied(unit, tmp_path)) == ""


@needs_analyze
def test_systemd_finds_nothing_wrong_on_a_gpu_host(tmp_path: Path) -> None:
    copy = copied(POP, tmp_path)
    beside = tmp_path / f"{POP.name}.d"
    beside.mkdir()
    shutil.copy(SYSTEMD / "voicepipe-pop-gpu.conf", beside)
    assert verified(copy) == ""
    (beside / "voicepipe-pop-gpu.conf").write_text("[Service]\nPrivateDevice=no\n")
    assert "PrivateDevice" in verified(copy), "the drop-in is read"


def verified(unit: Path) -> str:
    """What systemd says against it."""
    command = (str(ANALYZE), "verify", "--man=no", "--recursive-errors=one", str(unit))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@needs_analyze
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_little_is_open(unit: Path) -> None:
    command = (str(ANALYZE), "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", str(unit))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("unit", OURS, ids=lambda unit: unit.name)
def test_our_command_line_takes_what_units_start(unit: Path) -> None:
    program, *words = shlex.split(setting(unit, "ExecStart").replace("%i", "fra1"))
    assert program == "/opt/voicepipe/bin/voicepipe"
    cli.parser().parse_args(words)


@pytest.mark.parametrize(
    ("unit", "drain_ms"),
    [(POP, Config().pop.drain_ms), (DIRECTORY, DirectorySection().drain_ms)],
    ids=("pop", "directory"),
)
def test_a_stop_outlasts_the_drain(unit: Path, drain_ms: int) -> None:
    """So that systemd ends no call. The engines' processes are left alone until the PoP has ended (D47)."""
    assert int(setting(unit, "TimeoutStopSec")) >= drain_ms / 1000 + 30
    assert setting(unit, "KillMode") == "mixed"
    assert not settings(unit, "KillSignal"), "SIGTERM drains"


@pytest.mark.parametrize("unit", [POP, DIRECTORY], ids=("pop", "directory"))
def test_what_was_told_to_go_stays_away_and_what_failed_comes_again(unit: Path) -> None:
    assert setting(unit, "Restart") == "on-failure"
    assert setting(unit, "StartLimitIntervalSec") == "0"


def test_a_probe_comes_again_whatever_it_ended_for() -> None:
    assert setting(SYSTEMD / "voicepipe-probe.service", "Restart") == "always"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_folders_of_secrets_are_made_for_root_alone(unit: Path) -> None:
    """A unit does not start whose credentials' folder is not there."""
    made = (SYSTEMD / "voicepipe.tmpfiles.conf").read_text()
    for value in settings(unit, "LoadCredential"):
        _, _, folder = value.partition(":")
        assert re.search(rf"^d {folder} +0700 root root$", made, re.MULTILINE), folder


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_nothing_runs_as_root(unit: Path) -> None:
    users = re.findall(r"^u (\S+)", (SYSTEMD / "voicepipe.sysusers.conf").read_text(), re.MULTILINE)
    assert settings(unit, "DynamicUser") == ["yes"] or setting(unit, "User") in users

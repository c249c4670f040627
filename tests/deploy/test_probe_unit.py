"""The unit of a probe is what systemd and our command line accept, and little is open to it."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from voicepipe.commands import cli

UNIT = ROOT / "pops" / "deploy" / "systemd" / "voicepipe-probe.service"
ANALYZE = shutil.which("systemd-analyze") or ""
needs_analyze = pytest.mark.skipif(not ANALYZE, reason="needs systemd-analyze (Debian: apt install systemd)")
EXPOSURE = 20
"""Tenths: 2.0 of 10. A service without any sandbox has 9.6."""


@needs_analyze
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    (copy := tmp_path / UNIT.name).write_text(
        re.sub(r"^(ExecStart=)\S+", r"\g<1>/bin/true", UNIT.read_text(), flags=re.M)
    )
    done = subprocess.run((ANALYZE, "verify", "--man=no", str(copy)), capture_output=True, text=True)
    assert done.stdout + done.stderr == ""
    copy.write_text(copy.read_text().replace("DynamicUser=yes", "DynamicUsr=yes"))
    assert "DynamicUsr" in subprocess.run((ANALYZE, "verify", str(copy)), capture_output=True, text=True).stderr


@needs_analyze
def test_little_is_open() -> None:
    command = (ANALYZE, "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", str(UNIT))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_our_command_line_takes_what_it_starts() -> None:
    [start] = re.findall(r"^ExecStart=/opt/voicepipe/bin/voicepipe (.+)$", UNIT.read_text(), re.MULTILINE)
    cli.parser().parse_args(shlex.split(start))


def test_it_always_comes_back_and_is_nobody() -> None:
    lines = UNIT.read_text().splitlines()
    assert {"Restart=always", "DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes"} <= set(lines)

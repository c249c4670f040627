"""The page's modules that need no browser, run by Node.js."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

WEB = ROOT / "voicepipe" / "web"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed")


def copied(to: Path) -> Path:
    """A copy of the page's files that Node.js takes for modules, as browsers do."""
    shutil.copytree(WEB, to)
    (to / "package.json").write_text('{"type": "module"}')
    return to


def run(beside: Path, script: str, *options: str) -> Any:
    """What `script`, a module beside the page's own, prints as JSON."""
    (beside / "script.js").write_text(script)
    command = [str(NODE), *options, "script.js"]
    ran = subprocess.run(command, cwd=beside, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)

"""What the commands of pops/kubernetes.md make."""

import base64
import re
import shutil
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.support.paths import ROOT
from voicepipe.serving import lan

needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl (Debian: apt install openssl)")
ONE, TWO = "One region, without a directory", "Two regions"
"""Sections of the page."""


def secrets(section: str, folder: Path, replaced: Mapping[str, str] | None = None) -> dict[str, dict[str, str]]:
    """The Secrets of a section, by name: its commands are run, and kubectl only shows what it would create. `replaced`:
    texts in the commands. The files that an operator has to bring lie in `folder` then, with all others."""
    text = (ROOT / "pops" / "kubernetes.md").read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    blocks = [textwrap.dedent(block) for block in re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)]
    commands = "\n".join(blocks)
    for old, new in (replaced or {}).items():
        commands = commands.replace(old, new)
    folder.mkdir(exist_ok=True)
    own = lan.certificate(folder / "privkey.pem", {"directory.example"})
    (folder / "fullchain.pem").write_text(own.read_text())
    shown = 'command kubectl "$@" --dry-run=client -o yaml; echo ---'
    only_secrets = f'kubectl() {{ case " $* " in *" create secret "*) {shown}; esac; }}'
    said = subprocess.run(("bash", "-euc", f"{only_secrets}\n{commands}"), cwd=folder, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    made = [each for each in yaml.safe_load_all(said.stdout) if each]
    return {
        each["metadata"]["name"]: {key: base64.b64decode(value).decode() for key, value in each["data"].items()}
        for each in made
    }

"""A directory's keys, made by the commands that its documentation gives."""

import shutil
import subprocess
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl (apt install openssl)")


def make_keys(folder: Path) -> None:
    """directory.pem and directory.pub.pem."""
    private, public = folder / "directory.pem", folder / "directory.pub.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)

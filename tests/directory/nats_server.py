"""Debian's nats-server, on a free port of this machine."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ports import free_port

PROGRAM = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
needs_nats = pytest.mark.skipif(PROGRAM is None, reason="needs nats-server (Debian: apt install nats-server)")
UP_S = 20.0

PERMISSIONS = """
authorization {
  users = [
    {user: "fra", password: "fra-secret",
     permissions: {publish: "vp.pop.fra.>", subscribe: ["vp.pop.>", "vp.brief.fra", "vp.cmd.fra", "vp.fleet.>"]}},
    {user: "directory", password: "directory-secret",
     permissions: {publish: ["vp.asg.>", "vp.brief.>", "vp.cmd.>", "vp.ek.>", "vp.claim", "vp.fleet.>"],
                   subscribe: ["vp.pop.>", "vp.asg.>", "vp.ek.>", "vp.claim", "vp.fleet.>"]}}
  ]
}
"""
"""Each PoP may speak for itself alone, and directories for no PoP."""


class NatsServer:
    """One that can be killed and started again."""

    def __init__(self, configuration: Path) -> None:
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._configuration = configuration
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Until it listens."""
        assert PROGRAM is not None
        command = (PROGRAM, "-a", "127.0.0.1", "-p", str(self.port), "-c", str(self._configuration))
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + UP_S
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("nats-server does not listen")

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Idempotent."""
        if self._process:
            self._process.send_signal(how)
            self._process.wait(UP_S)
            self._process = None


@contextmanager
def nats_server(folder: Path, configuration: str = "") -> Iterator[NatsServer]:
    """One that runs."""
    file = folder / "nats.conf"
    file.write_text(configuration)
    server = NatsServer(file)
    server.start()
    try:
        yield server
    finally:
        server.stop()

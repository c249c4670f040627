"""`--self`: a fresh PoP as a child process, on any free port of this machine, for as long as the probes run."""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from voicepipe.base.errors import ProbeError

COMMAND = (sys.executable, "-m", "voicepipe", "pop", "--port", "0")
READY = re.compile(r"^\S+ answers at (https?://[^\s;,]+)", re.MULTILINE)
READY_S = 300.0
DRAIN_S = 15.0


@dataclass(frozen=True, slots=True)
class Started:
    """A PoP that answers."""

    url: str
    pid: int
    log: Path
    """What it writes, while it runs."""


@contextmanager
def own_server(command: tuple[str, ...] = COMMAND) -> Iterator[str]:
    """The address of the PoP that `command` starts; it is stopped at the end.

    Raises ProbeError where it does not say within five minutes that it is ready.
    """
    with started(command) as pop:
        yield pop.url


@contextmanager
def started(
    command: tuple[str, ...], environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Iterator[Started]:
    """As `own_server`; `environment`: instead of ours. `folder` is where it is started."""
    with tempfile.TemporaryDirectory() as own:
        log = Path(own) / "pop.log"
        with log.open("w") as output:
            # Into a file, not a pipe: a pipe that nobody reads stops the writer once it is full.
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
            )
        try:
            yield Started(address(child, log), child.pid, log)
        finally:
            child.terminate()
            try:
                child.wait(DRAIN_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def address(child: "subprocess.Popen[bytes]", log: Path) -> str:
    """Wait for the line in which the PoP says where it answers."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        ended = child.poll()
        text = log.read_text()
        if found := READY.search(text):
            return found[1]
        if ended is not None:
            last = (text.strip().splitlines() or ["it said nothing"])[-1]
            raise ProbeError(f"the PoP did not start: {last}")
        time.sleep(0.1)
    raise ProbeError(f"the PoP was not ready within {READY_S:.0f} s: start it yourself and give its address")

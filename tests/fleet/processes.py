"""Processes that are started, killed, stopped, and gone for certain at the end."""

import ctypes
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
CLONE_NEWNET = 0x40000000
GONE_S = 30.0
"""After SIGKILL; a machine may be slow."""


class Process:
    """One that can be started again. `ready`: what it writes once it serves; `namespace`: a descriptor of the network
    namespace that it lives in. Start it on the main thread: it dies with the thread that started it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        ready: str = "",
        environment: Mapping[str, str] | None = None,
        namespace: int | None = None,
        nice: int = 0,
        descriptors: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self.environment = dict(environment or {})
        self._ready = re.compile(ready)
        self._namespace = namespace
        self._nice = nice
        self._descriptors = tuple(descriptors)
        self._child: subprocess.Popen[bytes] | None = None
        self._told_from = 0

    def start(self) -> None:
        """Anew, where it has run before."""
        assert not self.runs, f"{self.name} runs already"
        self._told_from = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                start_new_session=True,  # Ctrl-C is for who runs the rig: it then stops this.
                pass_fds=self._descriptors,
                preexec_fn=_beginning(self._namespace, self._nice),
            )

    @property
    def runs(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def status(self) -> int | None:
        """With which it ended; None: it runs, or never did."""
        return self._child.poll() if self._child else None

    @property
    def serves(self) -> bool:
        """Whether it has said so since it was started. Raises AssertionError: it has ended instead."""
        said = self.said()
        if self._ready.search(said):
            return True
        assert self.runs, f"{self.name} did not start: {said[-2000:] or 'it said nothing'}"
        return False

    def said(self) -> str:
        """Since it was started."""
        with self.log.open("rb") as file:
            file.seek(self._told_from)
            return file.read().decode(errors="replace")

    def tell(self, line: bytes) -> None:
        """A line for its standard input."""
        assert self._child and self._child.stdin
        self._child.stdin.write(line + b"\n")
        self._child.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Nothing happens where it has ended."""
        if self.runs:
            assert self._child
            self._child.send_signal(number)

    def kill(self) -> None:
        """Idempotent; it is gone then."""
        self.signal(signal.SIGKILL)
        if self._child:
            self._child.wait(GONE_S)
            if self._child.stdin:
                self._child.stdin.close()


def _beginning(namespace: int | None, nice: int) -> Callable[[], None]:
    """What a child does first, before its program begins."""

    def begin() -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if namespace is not None and LIBC.setns(namespace, CLONE_NEWNET):
            os._exit(126)
        os.nice(nice)

    return begin


def wait(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """Raises TimeoutError: it does not become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.05)

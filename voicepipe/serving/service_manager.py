"""What systemd, or another service manager, is told of this process: datagrams to $NOTIFY_SOCKET, as sd_notify(3) has
them. Nothing is sent where that variable is not set."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from voicepipe.base.environment import variable
from voicepipe.base.tasks import ended, supervised

logger = logging.getLogger(__name__)

LOOK_S = 0.5
"""Seconds between two looks while the process starts. Then it is half of WATCHDOG_USEC, and at most STATUS_S."""
STATUS_S = 5.0
"""Seconds, at most, after which a change of the state is told."""
START_S = 120.0
"""Seconds by which each look puts off the end of the time that a start may take: engines load for minutes. A start is
given up only if the event loop hangs for so long (and the unit's own TimeoutStartSec= is over)."""
STOP_S = 40.0
"""Seconds that a stop may take beyond the drain: servers close, records are written, receivers are told."""
END_S = 120.0
"""Seconds within which the process ends once its event loop has: the watchdog, which then hears nothing, waits so
long."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """What a service is doing."""

    ready: bool
    words: str
    """For people who ask how it is (`systemctl status`): one line."""


class ServiceManager:
    """The service manager that started this process. `address`: the path of its socket, or "@" and the name of an
    abstract one; empty: there is none. `watchdog_s`: seconds after which it ends a process that it has not heard from;
    0: never."""

    def __init__(self, address: str = "", watchdog_s: float = 0.0) -> None:
        self.watches_us = True
        """False: it watches another process of the same service, and takes nothing from this one."""
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._watchdog_s = watchdog_s
        self._look: Callable[[], ServiceState] | None = None
        self._ready = False
        self._words = ""
        self._complained = False

    @asynccontextmanager
    async def informed(self, look: Callable[[], ServiceState]) -> AsyncIterator[None]:
        """Within the context the service manager is told what `look` says, and that the event loop runs."""
        if not self._address:
            yield
            return
        self._look = look
        self.tell()
        informing = asyncio.create_task(supervised("telling the service manager", self._inform))
        try:
            yield
        finally:
            await ended(informing)
            if self._watchdog_s:
                self._send(f"WATCHDOG_USEC={END_S * 1e6:.0f}")

    async def _inform(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s if self._ready else LOOK_S)
            self.tell()

    @property
    def _pause_s(self) -> float:
        return min(STATUS_S, self._watchdog_s / 2) if self._watchdog_s else STATUS_S

    def tell(self) -> None:
        """Look at the service, and tell what is new: now, not at the next look."""
        if not self._look:
            return
        state = self._look()
        said = ["WATCHDOG=1"] if self._watchdog_s else []
        if state.words != self._words:
            said.append(f"STATUS={state.words}")
        if not self._ready:
            said.append("READY=1" if state.ready else _extended(START_S))
        if said and self._send(*said):
            self._words, self._ready = state.words, self._ready or state.ready

    def watch(self, pid: int) -> None:
        """Have it watch another process of this service from now on, in place of this one (MAINPID)."""
        self._send(f"MAINPID={pid}")
        self.watches_us = False

    def watched(self) -> None:
        """It watches this process from now on: it gets the whole state."""
        self.watches_us, self._words = True, ""
        self.tell()

    def stopping(self, drain_s: float) -> None:
        """The service has begun to end, which takes as long as live calls last: `drain_s` seconds at most."""
        self._send("STOPPING=1", _extended(drain_s + STOP_S))

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """Within the context the service reads its configuration again. Nothing is said before it was ready: the end of
        a reload would count as the end of its start."""
        if not self._ready:
            yield
            return
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
        try:
            yield
        finally:
            self._send("READY=1")

    def _send(self, *assignments: str) -> bool:
        """Whether the message was delivered. It never waits: a service manager that hangs must not stop the calls."""
        if not self._address:
            return True
        if not self.watches_us:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(assignments).encode(), self._address)
        except OSError as error:
            if not self._complained:
                logger.warning("the service manager cannot be told how this process is (NOTIFY_SOCKET): %s", error)
            self._complained = True
            return False
        self._complained = False
        return True


def of_environment() -> ServiceManager:
    """The service manager that the environment names."""
    watchdog_us, pid = variable("WATCHDOG_USEC"), variable("WATCHDOG_PID")
    is_watched = watchdog_us.isdecimal() and pid in ("", str(os.getpid()))
    return ServiceManager(variable("NOTIFY_SOCKET"), int(watchdog_us) / 1e6 if is_watched else 0.0)


def _extended(seconds: float) -> str:
    """Starting, or stopping, may take so many seconds more from now on."""
    return f"EXTEND_TIMEOUT_USEC={seconds * 1e6:.0f}"

"""Name servers in place of the system's: one answers, one knows nothing, and the others are silent."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

KNOWN, NOBODY, SLOW = "known.invalid", "nobody.invalid", "slow.invalid"
HERE = "127.0.0.9"


class NameServer:
    """Answers for KNOWN, knows nothing of NOBODY, is silent about other such names until it may `go_on`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.now = self.most = 0
        """Lookups at a time."""
        self.go_on = threading.Event()
        self._lock, self._real = threading.Lock(), socket.getaddrinfo

    def look_up(self, host: Any, *more: Any, **named: Any) -> list[Any]:
        if not str(host).endswith(".invalid"):
            return self._real(host, *more, **named)
        with self._lock:
            self.asked.append(host)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            if host not in (KNOWN, NOBODY):
                self.go_on.wait(60)
            if host == NOBODY:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (HERE, 0))]
        finally:
            with self._lock:
                self.now -= 1


@contextmanager
def name_server() -> Iterator[NameServer]:
    server = NameServer()
    with patch.object(socket, "getaddrinfo", server.look_up):
        try:
            yield server
        finally:
            server.go_on.set()

"""From where on this machine the attackers' process sends, and how much: whatever its attacks use, all of it does so by
Python's sockets.

Well-behaved callers come from 127.0.0.1, so attackers have to come from elsewhere: what is counted by address would
otherwise hit them all alike, as it does behind one NAT.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

ONE = ("127.66.0.1",)
MANY = tuple(f"127.77.0.{last}" for last in range(1, 51))
BURST_S = 1.0
"""What was not sent is made up for, as far as so much: attackers give way to every other process, and would otherwise
send less than they were asked to."""


@dataclass(slots=True)
class Sources:
    """`addresses` take turns. `moved`: sockets that are bound to an address get one of these in its place, too."""

    addresses: tuple[str, ...] = ONE
    moved: bool = False
    bits_per_second: float = 0.0
    """Of everything that is sent; 0: as much as it can."""
    total: int = 0
    """Bytes that were sent, or tried."""
    _next: Iterator[str] = field(init=False)
    _free_at: float = 0.0

    def __post_init__(self) -> None:
        self._next = cycle(self.addresses)

    def bound(self, address: Any) -> Any:
        """Where a socket is bound that asks for `address`."""
        if self.moved and isinstance(address, tuple) and str(address[0]).startswith("127."):
            return (next(self._next), *address[1:])
        return address

    def other(self) -> str:
        """For a socket that was bound to no address."""
        return next(self._next)

    def sent(self, size: int) -> None:
        """Wait until so many bytes may go. The whole process waits: what its attacks send is counted together."""
        self.total += size
        if not self.bits_per_second:
            return
        now = time.monotonic()
        self._free_at = max(self._free_at, now - BURST_S) + 8 * size / self.bits_per_second
        if self._free_at > now:
            time.sleep(self._free_at - now)


@contextmanager
def sending_from(sources: Sources) -> Iterator[None]:
    """Within this context every new socket of this process is of these sources."""

    class Socket(socket.socket):
        _is_bound = False

        def bind(self, address: Any, /) -> None:
            self._is_bound = True
            super().bind(sources.bound(address))

        def connect(self, address: Any, /) -> None:
            self._from_there(address)
            super().connect(address)

        def connect_ex(self, address: Any, /) -> int:
            self._from_there(address)
            return super().connect_ex(address)

        def send(self, data: Any, flags: int = 0, /) -> int:
            sources.sent(len(data))
            return super().send(data, flags)

        def sendall(self, data: Any, flags: int = 0, /) -> None:
            sources.sent(len(data))
            super().sendall(data, flags)

        def sendto(self, data: Any, *where: Any) -> int:
            sources.sent(len(data))
            if where:
                self._from_there(where[-1])
            return super().sendto(data, *where)

        def _from_there(self, address: Any) -> None:
            if not self._is_bound and self.family == socket.AF_INET and str(address[0]).startswith("127."):
                self._is_bound = True
                super().bind((sources.other(), 0))

    original = socket.socket
    socket.socket = Socket  # type: ignore[misc]
    try:
        yield
    finally:
        socket.socket = original  # type: ignore[misc]

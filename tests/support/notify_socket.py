"""A service manager's side of sd_notify(3): the socket that processes write to, and what they have written."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager


class NotifySocket:
    """Receives what is told. `address` is for NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.told: list[dict[str, str]] = []
        """The messages so far: the assignments of each."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.setblocking(False)

    def read(self) -> list[dict[str, str]]:
        """All messages that have come, these included."""
        while True:
            try:
                message = self._socket.recv(65_536).decode()
            except BlockingIOError:
                return self.told
            self.told.append(dict(line.split("=", 1) for line in message.splitlines()))

    def count(self, key: str) -> int:
        """In how many messages there was this key."""
        return sum(key in message for message in self.read())

    def wait(self, key: str, more_than: int = 0, seconds: float = 120.0) -> dict[str, str]:
        """The newest message with this key, once there are more than so many. Raises AssertionError: there are not
        within `seconds`, more than the slowest machine needs."""
        deadline = time.monotonic() + seconds
        while self.count(key) <= more_than:
            assert time.monotonic() < deadline, f"no {key} in {self.told}"
            time.sleep(0.02)
        return [message for message in self.told if key in message][-1]

    def close(self) -> None:
        self._socket.close()


@contextmanager
def notify_socket(address: str) -> Iterator[NotifySocket]:
    """One that listens at this path, or at the abstract name after "@"."""
    listening = NotifySocket(address)
    try:
        yield listening
    finally:
        listening.close()

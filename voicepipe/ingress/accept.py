"""Connections are taken off the listening socket here, counted before anything is read or any TLS is spoken.

`loop.create_server` would take all that come, let each take a minute for its TLS handshake, and leave what happens
without descriptors to its library.
"""

import asyncio
import errno
import logging
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from voicepipe.ingress.refusal_log import RefusalLog
from voicepipe.ingress.visits import Visit, Visits

logger = logging.getLogger(__name__)

A_STEP = 32
"""Connections that are taken in one step of the loop."""
HANDSHAKE_S = 10.0
"""Seconds that a client has for its TLS handshake."""
PAUSE_S = 0.1
"""Seconds without taking connections where no descriptor is free; callers wait in the system's queue."""
EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
REFUSAL_BODY = (
    b'{"error": {"type": "invalid_request_error", "code": "too_many_requests", "message": "This server is asked too '
    b'often, by your address or by all together: try again in 2 s, and keep connections open.", "param": null}}'
)
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 10\r\n"
    b"Connection: close\r\n\r\n"
    b'{"error": {"type": "invalid_request_error", "code": "connections_full", "message": "All connections of this '
    b'server are in use: try again in 10 s, or another server.", "param": null}}'
)
TOO_MANY = (
    b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 2\r\nConnection: close\r\n\r\n"
    + REFUSAL_BODY
)


class Acceptor:
    """Takes connections from a listening socket, between `open` and `close`. `make` makes the protocol of a connection;
    `tls` is asked for each: None is no TLS."""

    def __init__(
        self,
        listener: socket.socket,
        visits: Visits,
        refusals: RefusalLog,
        make: Callable[[Visit], asyncio.Protocol],
        tls: Callable[[], ssl.SSLContext | None],
    ) -> None:
        self._listener = listener
        self._visits = visits
        self._refusals = refusals
        self._make = make
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Begin to take connections."""
        self._pause = None
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener.fileno(), self._ready)

    def pause(self) -> None:
        """Take no more until `open`. Handshakes go on."""
        self._loop.remove_reader(self._listener.fileno())
        if self._pause:
            self._pause.cancel()

    def close(self) -> None:
        """Take no more; handshakes that go on are given up."""
        self.pause()
        for task in self._opening if self._tls() else ():
            task.cancel()

    async def wait_closed(self) -> None:
        """Returns when no handshake is under way any more."""
        if self._opening:
            await asyncio.wait(self._opening)

    def _ready(self) -> None:
        for _ in range(A_STEP):
            try:
                connection, source = _taken(self._listener)
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                return self._exhausted(error)
            self._come(connection, source)

    def _exhausted(self, error: OSError) -> None:
        """Other code took the descriptors that were reserved: drop one stranger's connection, and pause."""
        self._visits.drop_one()
        self._refusals.log("", "no connection can be taken (%s): trying again in %g s", error.strerror, PAUSE_S)
        self._loop.remove_reader(self._listener.fileno())
        self._pause = self._loop.call_later(PAUSE_S, self.open)

    def _come(self, connection: socket.socket, source: str) -> None:
        connection.setblocking(False)
        if not self._visits.listens(source, time.monotonic()):
            return self._turn_away(connection, source, "too many come from there, or in all", TOO_MANY)
        task = self._loop.create_task(self._serve(connection, source))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _turn_away(self, connection: socket.socket, source: str, why: str, answer: bytes) -> None:
        self._refusals.log(source, "a connection from %s is refused: %s", source, why)
        with connection:
            if self._tls() is None:
                with suppress(OSError):  # It may be gone already.
                    connection.send(answer)

    async def _serve(self, connection: socket.socket, source: str) -> None:
        """Returns when the protocol has the connection. A handshake that fails or takes too long only ends that
        connection."""
        task, tls = asyncio.current_task(), self._tls()
        assert task

        def drop() -> None:
            if tls:  # Without, the protocol has the connection in a moment, and drops it itself.
                task.cancel()

        visit = self._visits.come(source, drop)
        if visit is None:
            return self._turn_away(connection, source, "all connections are in use", FULL)
        handshake_s = HANDSHAKE_S if tls else None
        with suppress(OSError):  # ssl.SSLError, TimeoutError and ConnectionError are of this kind
            try:
                await self._loop.connect_accepted_socket(
                    partial(self._make, visit), connection, ssl=tls, ssl_handshake_timeout=handshake_s
                )
            except BaseException:
                self._visits.gone(visit)
                connection.close()
                raise


def _taken(listener: socket.socket) -> tuple[socket.socket, str]:
    """The next connection and the IP address that it comes from. Raises OSError."""
    connection, address = listener.accept()
    return connection, address[0]

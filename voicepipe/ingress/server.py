"""uvicorn, set up for calls: one process, our event loop, WebSockets that can be stamped and dropped."""

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from voicepipe.config import Config, HttpConfig
from voicepipe.errors import ConfigError
from voicepipe.ingress.realtime.call import LINGER
from voicepipe.ingress.realtime.websocket import PEER

SHUTDOWN_SECONDS = 10
PING_S = 20
"""A client is pinged so long after its last answer, and gone if it does not answer for as long."""
READ_AHEAD, PER_MESSAGE = 1024 * 1024, 1024
"""Bytes of messages that may wait for their turn before nothing more is read, and what each takes beside its text."""


class StampedWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, and `realtime.websocket.Peer` for the connection that it serves.

    uvicorn closes a connection once the client has taken everything; one that never reads would stay for ever.
    """

    received_at = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sizes: deque[int] = deque()
        """Of the messages that wait for their turn."""
        self._waiting = 0

    def send_receive_event_to_app(self) -> None:
        """A message is complete. uvicorn reads nothing while one waits; but a minute of sound takes its time, and who
        does not read sees neither pings nor the answers to its own."""
        size, before = sum(map(len, self.frames)) + PER_MESSAGE, self.queue.qsize()
        super().send_receive_event_to_app()
        if self.queue.qsize() > before:
            self._sizes.append(size)
            self._waiting += size
            self._read_on()

    async def receive(self) -> Any:
        message = await super().receive()
        if message["type"] == "websocket.receive":
            self._waiting -= self._sizes.popleft()
            self._read_on()
        return message

    def _read_on(self) -> None:
        if self.read_paused and self._waiting <= READ_AHEAD and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self.received_at = time.monotonic()
        super().data_received(data)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["extensions"][PEER] = self  # type: ignore[assignment]

    def keepalive_timeout(self) -> None:
        if self.read_paused and self.ping_timeout:  # Its answer may be among what we have not read.
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
            return
        super().keepalive_timeout()
        self.abort()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # A refusal is an answer, too: uvicorn would log a failure.

    async def run_asgi(self) -> None:
        await super().run_asgi()
        self.scope["extensions"].pop(PEER, None)  # We know the scope, so it must not know us for longer than the call.
        self.loop.call_later(LINGER, self.abort)

    def abort(self) -> None:
        self.transport.abort()


def bind(http: HttpConfig) -> socket.socket:
    """The listening socket, so that a port that is taken is a sentence and not a stack trace. Raises ConfigError."""
    family = socket.AF_INET6 if ":" in http.host else socket.AF_INET
    try:
        return socket.create_server((http.host, http.port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(f"Cannot listen on {http.host}:{http.port} ({error.strerror}): "
                          "set http.host and http.port to a free address.") from error  # fmt: skip


class Server(uvicorn.Server):
    """uvicorn, leaving the process's signals to whoever owns the process."""

    def __init__(self, app: ASGIApp, config: Config, serving: asyncio.Event) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="none",
                ws=StampedWebSocket,
                ws_ping_interval=PING_S,
                ws_ping_timeout=PING_S,
                ws_max_size=config.limits.message_bytes,
                ws_per_message_deflate=False,  # speech does not shrink, and deflating it costs more than all the rest
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                ssl_certfile=config.http.cert or None,
                ssl_keyfile=config.http.key or None,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
        )
        self._serving = serving

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._serving.set()


async def serve(app: ASGIApp, listener: socket.socket, config: Config, serving: asyncio.Event) -> None:
    """Serve on `listener` until cancelled; TLS when a certificate is configured. `serving` is set once callers get in.

    Calls that are still going on when it is cancelled are closed with code 1012. Raises ConfigError: a certificate that
    cannot be used.
    """
    server = Server(app, config, serving)
    try:
        await asyncio.to_thread(server.config.load)
    except (OSError, ssl.SSLError) as error:
        listener.close()
        raise ConfigError(
            f"http.cert and http.key cannot be used ({error}): they name a PEM chain and its key."
        ) from error
    task = asyncio.ensure_future(server.serve([listener]))
    try:
        await asyncio.shield(task)
    finally:
        server.should_exit = True
        await task
        listener.close()

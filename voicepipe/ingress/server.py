"""uvicorn, set up for calls: one process, our event loop, WebSockets that can be stamped and dropped."""

import asyncio
import socket
import ssl
import time
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


class StampedWebSocket(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket, and `realtime.websocket.Peer` for the connection that it serves.

    uvicorn closes a connection once the client has taken everything; one that never reads would stay for ever.
    """

    received_at = 0.0

    def data_received(self, data: bytes) -> None:
        self.received_at = time.monotonic()
        super().data_received(data)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["extensions"][PEER] = self  # type: ignore[assignment]

    def keepalive_timeout(self) -> None:
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

"""uvicorn, set up for calls: one process, our event loop, connections that are counted, timed and can be dropped."""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from voicepipe.base.errors import ConfigError
from voicepipe.base.tasks import supervised
from voicepipe.config import HttpConfig
from voicepipe.config.rereads import Rereads
from voicepipe.ingress.accept import REFUSAL_BODY, Acceptor
from voicepipe.ingress.asgi_scope import REFUSALS, VISIT
from voicepipe.ingress.certificate import ServerCertificate
from voicepipe.ingress.connection import HttpConnection
from voicepipe.ingress.frames import WebSocketConnection
from voicepipe.ingress.refusal_log import RefusalLog
from voicepipe.ingress.visits import ConnectionLimits, Visit, Visits

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 10
PING_S = 20
"""Seconds after a client's last answer until it is pinged; it is gone if it does not answer for as long."""


def bind(http: HttpConfig) -> socket.socket:
    """The listening socket. Raises ConfigError, in a sentence and without a stack trace, where the port is taken."""
    family = socket.AF_INET6 if ":" in http.host else socket.AF_INET
    try:
        return socket.create_server((http.host, http.port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(f"Cannot listen on {http.host}:{http.port} ({error.strerror}): "
                          "set http.host and http.port to a free address.") from error  # fmt: skip


class ForwardedRequests:
    """Counts requests that a proxy has forwarded by the address that they come from. ASGI, within uvicorn's own
    middleware, which has put a trusted proxy's `X-Forwarded-For` into `client`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit: Visit = scope["state"][VISIT]
        client = scope["client"][0] if scope["client"] else visit.source
        if visit.asks(client, time.monotonic()):
            return await self._app(scope, receive, send)
        refusals: RefusalLog = scope["state"][REFUSALS]
        refusals.log(client, "requests from %s, by the proxy %s, are refused: too many", client, visit.source)
        await Response(REFUSAL_BODY, 429, {"Retry-After": "2"}, "application/json")(scope, receive, send)


class Server(uvicorn.Server):
    """A uvicorn server that takes no connections itself, and leaves the process's signals alone."""

    def __init__(
        self, app: ASGIApp, http: HttpConfig, certificate: ServerCertificate, visits: Visits, message_bytes: int,
        serving: asyncio.Event,
    ) -> None:  # fmt: skip
        super().__init__(
            uvicorn.Config(
                ForwardedRequests(_quiet(app)),
                loop="none",
                http=HttpConnection,
                ws=WebSocketConnection,
                ws_ping_interval=PING_S,
                ws_ping_timeout=PING_S,
                ws_max_size=message_bytes,
                ws_per_message_deflate=False,  # speech does not shrink, and deflating it costs more than all the rest
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                forwarded_allow_ips=list(http.proxies),
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
        )
        self._certificate = certificate
        self._visits = visits
        self._serving = serving
        self._refusals = RefusalLog(logger, "HTTP connections")
        self._acceptors: list[Acceptor] = []
        self._listener: socket.socket | None = None
        self._private: socket.socket | None = None
        self._retired = False

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        assert sockets
        self._listener = sockets[0]
        self._accept(self._listener, self._tls)
        self.started = True
        self._serving.set()

    def _accept(self, listener: socket.socket, tls: Callable[[], ssl.SSLContext | None]) -> None:
        acceptor = Acceptor(listener, self._visits, self._refusals, self._connection, tls)
        acceptor.open()
        self._acceptors.append(acceptor)
        self.servers = self._acceptors  # type: ignore[assignment]

    def _connection(self, visit: Visit) -> HttpConnection:
        made = HttpConnection(self.config, self.server_state, visit, self._visits, self._refusals)
        if self._retired:
            made.retire()
        return made

    def _tls(self) -> ssl.SSLContext | None:
        return self._certificate.tls

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self._private:
            self._private.close()

    # --- as `HandsSocketOver`

    def pause(self) -> socket.socket:
        """Take no new connection, and return the socket at which they wait. Those that were taken go on."""
        assert self._listener
        self._acceptors[0].pause()
        return self._listener

    def resume(self) -> None:
        """Take connections again."""
        self._acceptors[0].open()

    def retire(self) -> None:
        """Each answer from now on ends its connection: another process takes what comes. WebSockets go on."""
        self._retired = True
        for connection in self._http_connections():
            connection.retire()

    def close_idle(self) -> None:
        """End connections that wait for a request."""
        for connection in self._http_connections():
            connection.close_idle()

    def _http_connections(self) -> list[HttpConnection]:
        return [one for one in self.server_state.connections if isinstance(one, HttpConnection)]

    def private_port(self) -> int:
        """A port of this machine alone at which the same application answers, without TLS. Raises OSError: none can be
        had."""
        if not self._private:
            self._private = socket.create_server(("127.0.0.1", 0))
            self._accept(self._private, lambda: None)
        return int(self._private.getsockname()[1])


def _quiet(app: ASGIApp) -> ASGIApp:
    """`app`, without the failures of its requests. It has answered and logged each; Starlette raises it once more, and
    uvicorn would log it a second time."""

    async def quiet(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except Exception:
            if scope["type"] != "http":  # A WebSocket's failure nobody has logged yet.
                raise

    return quiet


async def serve(
    app: ASGIApp, listener: socket.socket, http: HttpConfig, room: int, message_bytes: int, serving: asyncio.Event,
    rereads: Rereads[Any] | None = None, made: Callable[[Server], object] = lambda server: None,
) -> None:  # fmt: skip
    """Serve on `listener` until cancelled; with TLS when a certificate is configured, which is read again when its
    files change, and by `rereads`. There is `room` for so many connections at a time; WebSockets take messages of up to
    `message_bytes`. `serving` is set once callers get in; before that, `made` gets the server. `app` logs its requests
    that fail (`AccessControl.answers`).

    Calls that are still going on when it is cancelled are closed with code 1012. Raises ConfigError: a certificate that
    cannot be used.
    """
    try:
        certificate = await asyncio.to_thread(ServerCertificate, http)
    except ConfigError:
        listener.close()
        raise
    if rereads:
        rereads.join(certificate.reread)
        rereads.warn_of(lambda: certificate.warning)
    visits = Visits(ConnectionLimits.within(room), http.proxies)
    server = Server(app, http, certificate, visits, message_bytes, serving)
    made(server)
    await asyncio.to_thread(server.config.load)
    watching = asyncio.create_task(supervised("watching the certificate", certificate.watch))
    task = asyncio.ensure_future(server.serve([listener]))
    try:
        await asyncio.shield(task)
    finally:
        watching.cancel()
        server.should_exit = True
        await task
        listener.close()

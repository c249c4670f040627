"""A PoP's process that takes over from the one before it: it gets the sockets of that process once its own engines are
loaded, and passes on to it what is about calls that go on there."""

import asyncio
import json
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, cast

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from voicepipe import __version__
from voicepipe.base.environment import taken_variable
from voicepipe.base.errors import ConfigError, UnknownCall
from voicepipe.base.takeover import TakenSockets, TakeoverParts
from voicepipe.directory.server.relay import relay_messages
from voicepipe.pop.takeover_channel import (
    EndCalls,
    EnginesLoaded,
    MainProcess,
    Message,
    PartState,
    ProcessStarted,
    SipDatagram,
    SocketsHandedOver,
    StartFailed,
    TakeoverChannel,
    TakeoverWithdrawn,
    TakesCalls,
    encoded,
)

logger = logging.getLogger(__name__)
TAKEOVER = "VOICEPIPE_TAKEOVER"
"""Names the variable by which a PoP tells the process that replaces it what that inherits: `Inherited`, as JSON."""
ANSWER_S = 30.0
"""Seconds in which the process before has to answer a request about one of its calls."""
OF_A_CONNECTION = ("host", "origin", "connection", "content-length", "transfer-encoding", "server", "date")
"""Headers that are not passed on: they are about one connection, or were checked here."""
SOCKETS_S = 30.0
"""Seconds in which the process before has to hand over its sockets."""


class Inherited(NamedTuple):
    """What a process inherits from the one before it."""

    channel: int
    """The descriptor of its end of the channel."""
    lock: int | None
    """The descriptor of the records' lock, which both hold; None: no records are kept."""
    http: tuple[str, int]
    """The address of the HTTP server."""
    sip: tuple[str, int]
    """The address for phones; port 0: they cannot call."""


class Predecessor:
    """The process before this one, and the calls that go on there. Implements `PredecessorApi`."""

    def __init__(self, inherited: Inherited) -> None:
        self.inherited = inherited
        self.private_port = 0
        """The port on 127.0.0.1 at which it answers requests about its calls."""
        self.gone = asyncio.Event()
        """Set once it has ended: it has no calls any more."""
        self.withdrawn = asyncio.Event()
        """Set if it goes on itself, after it has handed over its sockets: this process has to end."""
        self.on_main: Callable[[], None] = lambda: None
        """Called once the service manager watches this process, in place of the one before."""
        self._parts: TakeoverParts | None = None
        self._sockets: asyncio.Future[TakenSockets] | None = None
        self._channel: TakeoverChannel | None = None

    def open(self) -> None:
        """Tell the process before that this one runs. To be called on the event loop, once."""
        self._sockets = asyncio.get_running_loop().create_future()
        end = socket.socket(fileno=self.inherited.channel)
        self._channel = TakeoverChannel(end, self._came, self._closed)
        self._channel.send(ProcessStarted(os.getpid(), __version__))

    async def sockets(self, parts: TakeoverParts) -> TakenSockets:
        """As `PredecessorApi.sockets`."""
        assert self._channel and self._sockets
        self._parts = parts
        self._channel.send(EnginesLoaded())
        try:
            async with asyncio.timeout(SOCKETS_S):
                return await self._sockets
        except TimeoutError:
            raise ConfigError("The process that runs does not hand its sockets over.") from None

    def serving(self) -> None:
        """This process takes the calls now."""
        self._send(TakesCalls())

    def failed(self, why: str) -> None:
        """This process does not start. Blocks: its event loop may have ended, or not begun."""
        if self._channel and not self._channel.is_open:  # Its descriptor may be another's by now.
            return
        with suppress(OSError):
            os.write(self.inherited.channel, encoded(StartFailed(why)))

    async def ask(self, request: Request, body: bytes) -> Response:
        """As `PredecessorApi.ask`. Raises UnknownCall: it does not answer."""
        url = f"http://127.0.0.1:{self.private_port}{request.url.path}"
        headers = {name: value for name, value in request.headers.items() if name not in OF_A_CONNECTION}
        try:
            async with httpx.AsyncClient(timeout=ANSWER_S, verify=False, trust_env=False) as client:
                answer = await client.request(
                    request.method, url, params=request.url.query, headers=headers, content=body
                )
        except httpx.HTTPError as error:
            logger.warning("the process before does not answer about one of its calls: %r", error)
            raise UnknownCall("The call has ended, or its process does not answer.") from None
        kept = {name: value for name, value in answer.headers.items() if name not in OF_A_CONNECTION}
        return Response(answer.content, answer.status_code, kept)

    async def relay(self, socket: WebSocket) -> None:
        """As `PredecessorApi.relay`."""
        headers = {"Authorization": key} if (key := socket.headers.get("authorization")) else {}
        offered = [cast(Subprotocol, name) for name in socket.scope["subprotocols"]]
        url = f"ws://127.0.0.1:{self.private_port}{socket.url.path}?{socket.url.query}"
        try:
            pop = await connect(url, additional_headers=headers, subprotocols=offered or None, compression=None,
                                max_size=None, ping_interval=None, proxy=None, open_timeout=ANSWER_S)  # fmt: skip
        except InvalidStatus as error:
            said = error.response
            return await socket.send_denial_response(Response(bytes(said.body or b""), said.status_code))
        except (OSError, TimeoutError, WebSocketException) as error:
            logger.warning("the process before does not let a client of one of its calls in: %r", error)
            return await socket.send_denial_response(Response(status_code=503))
        async with pop:
            await socket.accept(pop.subprotocol)
            await relay_messages(socket, pop)

    def pass_on(self, data: bytes, source: tuple[str, int]) -> None:
        """As `PredecessorApi.pass_on`."""
        self._send(SipDatagram(data, *source))

    def end_calls(self) -> None:
        """Have the process before end its calls now."""
        self._send(EndCalls())

    def _send(self, message: Message) -> None:
        if self._channel:
            self._channel.send(message)

    def _came(self, message: Message, sockets: list[socket.socket]) -> None:
        match message:
            case SocketsHandedOver(states, port) if self._sockets and self._parts and not self._sockets.done():
                self.private_port = port
                for name, state in states.items():
                    self._parts.taken(name, state)
                self._sockets.set_result(TakenSockets(sockets[0], sockets[1] if len(sockets) > 1 else None))
            case PartState(name, state) if self._parts:
                self._parts.taken(name, state)
            case MainProcess():
                self.on_main()
            case TakeoverWithdrawn():
                self.withdrawn.set()

    def _closed(self) -> None:
        self.gone.set()
        if self._sockets and not self._sockets.done():
            self._sockets.set_exception(ConfigError("The process that this one was to take over from has ended."))
            self._sockets.exception()  # Whoever waits for it gets it anyway.
        else:
            logger.info("the process before this one has ended, with its last call")


def inherited() -> Inherited | None:
    """What this process inherits from one that it replaces; None: it replaces none. The variable is taken away, so that
    no program which is started from here takes it for its own."""
    if not (text := taken_variable(TAKEOVER)):
        return None
    channel, lock, http, sip = json.loads(text)
    for fd in (channel, lock):
        if fd is not None:
            os.set_inheritable(fd, False)  # Programs that are started from here would keep them open.
    return Inherited(channel, lock, tuple(http), tuple(sip))

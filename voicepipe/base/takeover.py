"""A process that replaces another one under live calls: what it gets of that, and what each asks of the other."""

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

logger = logging.getLogger(__name__)
S = TypeVar("S")


class HandsSocketOver(Protocol):
    """A server that has a socket at which callers come. Implemented by `ingress.server.Server` and by `SipServer`."""

    def pause(self) -> socket.socket:
        """Take nothing new from the socket, and return it. What was taken goes on."""

    def resume(self) -> None:
        """Take again what comes: nobody else does."""

    def retire(self) -> None:
        """Another process serves the socket. What was taken from it goes on."""


class HttpFront(HandsSocketOver, Protocol):
    """The HTTP server. Implemented by `ingress.server.Server`."""

    def private_port(self) -> int:
        """A port of this machine at which it goes on answering. Raises OSError."""

    def close_idle(self) -> None:
        """End connections that wait for a request."""


class PhoneFront(HandsSocketOver, Protocol):
    """The SIP server. Implemented by `SipServer`."""

    def passed_on(self, data: bytes, source: tuple[str, int]) -> None:
        """Take a message that another process has received for one of our calls."""


@dataclass(frozen=True, slots=True)
class _Part:
    kind: Any
    give: Callable[[], Any]
    take: Callable[[Any], None]
    adds: bool


class TakeoverParts:
    """The parts of a server that hand something over, by names which both processes know. A part that the other
    process, of another version, does not have hands over nothing."""

    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}
        self.publish: Callable[[str, bytes], None] | None = None
        """Sends what a part gives to the process that has taken over; None: none has."""

    def join(
        self, name: str, kind: type[S], give: Callable[[], S], take: Callable[[S], None], *, adds: bool = False
    ) -> None:
        """Add a part. `give` returns what it hands over, of the type `kind`, as JSON can hold it. `take` gets what the
        same part of the process before has handed over: when this process takes over, again whenever that changes, and
        at last `kind()`, which is to be empty. It replaces what it has taken by what comes, and `give` returns that,
        too. With `adds`, it adds what comes, and later gets what is new alone (`add`)."""
        self._parts[name] = _Part(kind, give, take, adds)

    def given(self) -> dict[str, bytes]:
        """What all parts hand over, as JSON."""
        return {name: msgspec.json.encode(part.give()) for name, part in self._parts.items()}

    def taken(self, name: str, state: bytes) -> None:
        """Give a part what the process before has handed over. What another version has written differently is logged
        and left out."""
        part = self._parts.get(name)
        if part is None:
            return
        try:
            part.take(msgspec.json.decode(state, type=part.kind))
        except msgspec.DecodeError as error:
            logger.warning("what the process before hands over of %s cannot be read, and is left out: %s", name, error)
        if self.publish and part.adds:  # There is a third process by now.
            self.publish(name, state)
        else:
            self.changed(name)

    def empty(self) -> None:
        """The process before has ended: nothing of what it has handed over goes on there."""
        for name, part in self._parts.items():
            part.take(part.kind())
            if not part.adds:
                self.changed(name)

    @property
    def is_handed_over(self) -> bool:
        """Another process has taken over, and is asked what this one was asked before."""
        return self.publish is not None

    def changed(self, name: str) -> None:
        """What a part hands over has changed: the process that has taken over gets it, if one has."""
        if self.publish and (part := self._parts.get(name)):
            self.publish(name, msgspec.json.encode(part.give()))

    def add(self, name: str, more: Any) -> None:
        """Something is new of a part that was joined with `adds`: the process that has taken over gets that alone."""
        if self.publish:
            self.publish(name, msgspec.json.encode(more))


class Takeover(NamedTuple):
    """The new process, which takes the calls now."""

    pid: int
    version: str


class SuccessorApi(Protocol):
    """The process that may replace this one. Implemented by `Successor`."""

    def fronts(self, http: HttpFront, phones: PhoneFront | None) -> None:
        """Callers come at these servers."""

    async def take_over(self) -> Takeover:
        """Start the new process and wait until it takes calls. Raises UpgradeFailed: it does not, and this process goes
        on as before."""


class TakenSockets(NamedTuple):
    """The sockets of the process before, at which nothing is taken at present."""

    http: socket.socket
    sip: socket.socket | None


class PredecessorApi(Protocol):
    """The process before this one, in which calls go on. Implemented by `Predecessor`."""

    gone: asyncio.Event
    """Set once it has ended."""

    async def sockets(self, parts: TakeoverParts) -> TakenSockets:
        """Its sockets; `parts` get what it hands over with them. Raises ConfigError: it has ended."""

    async def ask(self, request: Request, body: bytes) -> Response:
        """Its answer to a request about one of its calls; `body` is the request's."""

    async def relay(self, socket: WebSocket) -> None:
        """Relay a WebSocket that is about one of its calls, until one side closes it."""

    def pass_on(self, data: bytes, source: tuple[str, int]) -> None:
        """Pass a SIP message on that is about one of its calls, with the address that it came from."""

"""The channel between a PoP's process and the one that replaces it: messages, and sockets, over a Unix socket that the
new process inherits. Nobody else can reach it."""

import asyncio
import logging
import os
import socket
from array import array
from collections import deque
from collections.abc import Callable

import msgspec

logger = logging.getLogger(__name__)
MOST_FDS = 8
"""Descriptors that come with one message, at most."""
READ_BYTES = 65_536


class ProcessStarted(msgspec.Struct, tag="arrived", frozen=True):
    """New to old: the new process runs."""

    pid: int
    version: str


class StartFailed(msgspec.Struct, tag="failed", frozen=True):
    """New to old: it does not start."""

    why: str


class EnginesLoaded(msgspec.Struct, tag="ready", frozen=True):
    """New to old: its engines are loaded, and it asks for the sockets."""


class SocketsHandedOver(msgspec.Struct, tag="sockets", frozen=True):
    """Old to new: nothing new is taken from the sockets any more. They come along: HTTP's, then SIP's, if there is
    one."""

    states: dict[str, bytes]
    """As `TakeoverParts.given`."""
    port: int
    """The port on 127.0.0.1 at which the old process answers requests about its calls, without TLS."""


class TakesCalls(msgspec.Struct, tag="serving", frozen=True):
    """New to old: it takes calls."""


class TakeoverWithdrawn(msgspec.Struct, tag="withdrawn", frozen=True):
    """Old to new: it goes on itself, and the new process has to end."""


class MainProcess(msgspec.Struct, tag="main", frozen=True):
    """Old to new: the service manager watches the new process now."""


class PartState(msgspec.Struct, tag="state", frozen=True):
    """Old to new: what a part hands over has changed."""

    name: str
    state: bytes


class SipDatagram(msgspec.Struct, tag="datagram", frozen=True):
    """New to old: a SIP message of a call that the old process has."""

    data: bytes
    host: str
    port: int


class EndCalls(msgspec.Struct, tag="end_calls", frozen=True):
    """New to old: its calls are to end now."""


Message = (
    ProcessStarted
    | StartFailed
    | EnginesLoaded
    | SocketsHandedOver
    | TakesCalls
    | TakeoverWithdrawn
    | MainProcess
    | PartState
    | SipDatagram
    | EndCalls
)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Message)
_HEAD = 5
"""Bytes before each message: its length in four, and the number of its descriptors in one."""


def encoded(message: Message, sockets: int = 0) -> bytes:
    """A message as it is sent, with so many sockets."""
    body = _encoder.encode(message)
    return len(body).to_bytes(4) + bytes([sockets]) + body


class TakeoverChannel:
    """One end of the channel. `received` gets each message with the sockets that came along; `closed` is called once,
    when the other process has closed its end, or is gone."""

    def __init__(
        self, end: socket.socket, received: Callable[[Message, list[socket.socket]], None], closed: Callable[[], None]
    ) -> None:
        end.setblocking(False)
        self._end = end
        self._received = received
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self._unsent = deque[tuple[memoryview, list[int]]]()
        self._bytes = bytearray()
        self._fds = deque[int]()
        self.is_open = True
        self._loop.add_reader(end, self._readable)

    def send(self, message: Message, *sockets: socket.socket) -> None:
        """Send a message. It waits here while the other process does not read; nothing is sent once that is gone. The
        sockets have to stay open until the message is sent."""
        if not self.is_open:
            return
        self._unsent.append((memoryview(encoded(message, len(sockets))), [one.fileno() for one in sockets]))
        if len(self._unsent) == 1:
            self._writable()

    def close(self) -> None:
        """Safe to call twice. What is not sent yet is not sent any more."""
        if not self.is_open:
            return
        self.is_open = False
        self._loop.remove_reader(self._end)
        self._loop.remove_writer(self._end)
        self._end.close()
        for fd in self._fds:
            socket.close(fd)
        self._fds.clear()

    def _writable(self) -> None:
        self._loop.remove_writer(self._end)
        while self._unsent:
            data, fds = self._unsent.popleft()
            along = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
            try:
                sent = self._end.sendmsg([data], along)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:  # The other process is gone, which its end of the channel says as well.
                self._unsent.clear()
                return
            if sent < len(data):  # The descriptors go with the first byte.
                self._unsent.appendleft((data[sent:], fds if not sent else []))
                self._loop.add_writer(self._end, self._writable)
                return

    def _readable(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._end, READ_BYTES, MOST_FDS)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, fds = b"", []
        for fd in fds:
            os.set_inheritable(fd, False)  # `recv_fds` ignores its flags, so MSG_CMSG_CLOEXEC, too.
            self._fds.append(fd)
        if not data:
            self.close()
            return self._closed()
        self._bytes += data
        while self.is_open and len(self._bytes) >= _HEAD:
            end = _HEAD + int.from_bytes(self._bytes[:4])
            if len(self._bytes) < end:
                return
            number, body = self._bytes[4], bytes(self._bytes[_HEAD:end])
            del self._bytes[:end]
            sockets = [socket.socket(fileno=self._fds.popleft()) for _ in range(number)]
            try:
                message = _decoder.decode(body)
            except msgspec.DecodeError as error:
                logger.warning("the other process of this PoP sends what this version does not know: %s", error)
            else:
                self._received(message, sockets)

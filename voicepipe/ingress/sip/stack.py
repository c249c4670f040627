"""sippy's parser and transactions (RFC 3261, 17) on our event loop. Nothing else knows sippy.

sippy comes with an event loop and threads of its own. Its transactions need neither: they are given a socket and timers
of asyncio's here, so that signalling, too, is ordinary code on the one loop.
"""

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from typing import Any

import sippy.SipMsg
import sippy.SipRequest
import sippy.SipTransactionManager
import sippy.Time.Timeout
from sippy.Network_server import Remote_address
from sippy.SipConf import SipConf
from sippy.SipHeader import SipHeader
from sippy.SipRequest import SipRequest
from sippy.SipResponse import SipResponse
from sippy.SipTransactionManager import SipTransactionManager
from sippy.Time.MonoTime import MonoTime

from voicepipe.errors import ConfigError
from voicepipe.ingress.sip import unreadable
from voicepipe.ingress.sip.message import Address, Message, Response, SipError

logger = logging.getLogger(__name__)

DEFAULT_PORT = 5060
_SHORTEST = 32
"""Bytes; what is shorter is a keep-alive (RFC 5626, 4.4.1)."""

Host = tuple[str, int]
OnResponse = Callable[[Response], None]


class _Timer:
    """One timer of sippy's, as asyncio's."""

    def __init__(self, callback: Callable[..., None], seconds: float, ticks: int, params: tuple[Any, ...]) -> None:
        self._callback, self._seconds, self._ticks, self._params = callback, seconds, ticks, params
        self._handle: asyncio.TimerHandle | None = None

    def go(self) -> None:
        self._handle = asyncio.get_running_loop().call_later(self._seconds, self._due)

    def cancel(self) -> None:
        if self._handle:
            self._handle.cancel()

    def _due(self) -> None:
        self._ticks -= 1
        if self._ticks:  # -1: for ever
            self.go()
        self._callback(*self._params)


class _Timers:
    """In place of sippy's event dispatcher."""

    def regTimer(self, callback: Callable[..., None], seconds: float, ticks: int, at: bool, *params: Any) -> _Timer:
        assert not at, "transactions know no times of day"
        return _Timer(callback, seconds, ticks, params)


class _Log:
    """Every message, for who asks for DEBUG."""

    def write(self, *said: str, **_: object) -> None:
        logger.debug("%s", "".join(said))


def _unparsed(what: str, extra: str = "", **_: object) -> None:
    """In place of what sippy prints while it handles an exception, which is `Stack.received`'s then."""
    raise


def _printed(*said: object) -> None:
    """In place of `print`: whoever sends us nonsense does not write on our terminal."""
    logger.debug("%s", " ".join(str(part) for part in said))


def _prepare() -> None:
    """What sippy finds in modules, and prints or starts otherwise."""
    sippy.Time.Timeout.ED2 = _Timers()
    sippy.SipTransactionManager.dump_exception = _unparsed
    for module in (sippy.SipTransactionManager, sippy.SipMsg, sippy.SipRequest):
        module.print = _printed
    SipConf.autoconvert_tel_url = True
    SipConf.my_uaname = "voicepipe"


class _Socket(asyncio.DatagramProtocol):
    """What sippy calls a server."""

    transport = "udp"

    def __init__(self, stack: "Stack") -> None:
        self.uopts = self
        self._stack = stack
        self._udp: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: Any) -> None:
        self._udp = transport

    def datagram_received(self, data: bytes, address: Host) -> None:
        self._stack.received(data, address)

    def error_received(self, error: Exception) -> None:
        """Somebody whom we sent something is not there: transactions time out."""

    def isWildCard(self) -> bool:
        return False

    def getSIPaddr(self) -> tuple[Host, str]:
        return self._stack.address, "udp"

    def addr2str(self, address: Host) -> str:
        return f"{address[0]}:{address[1]}"

    def send_to(self, data: str | bytes, address: Host) -> None:
        raw = data if isinstance(data, bytes) else data.encode()
        try:
            socket.inet_aton(address[0])
        except OSError:
            self._stack.resolve(raw, address)
        else:
            self.send(raw, address)

    def send(self, data: bytes, address: Host) -> None:
        if self._udp and not self._udp.is_closing():
            try:
                self._udp.sendto(data, address)
            except (OSError, OverflowError, ValueError):  # What a Via names may be no address and no port.
                logger.debug("nothing can be sent to %s:%s", *address, exc_info=True)

    def close(self) -> None:
        if self._udp:
            self._udp.close()

    def shutdown(self) -> None:
        """sippy tries a port by opening and closing it; ours is open."""


class _Transactions(SipTransactionManager):  # type: ignore[misc]
    """Of one stack: its socket is the only one."""

    def __init__(self, server: _Socket, address: Host, on_request: Callable[[Any, Any], Any]) -> None:
        self.model_udp_server = (lambda config, options: server), (lambda address, handle: _Options())
        config = {"_sip_address": address[0], "_sip_port": address[1], "_sip_logger": _Log()}
        super().__init__(config, on_request)

    def incomingRequest(self, msg: Any, checksum: bytes, tids: Any, server: _Socket) -> None:
        """A transaction begins only with what can be answered, or it would never end. Raises ValueError, and whatever
        the parser does."""
        via, _, _ = (msg.getHFBody(name) for name in ("via", "from", "to"))
        msg.getHFBodys("record-route")
        if msg.sipver != "SIP/2.0" or msg.getHFBody("cseq").getCSeq()[1] != msg.getMethod():
            raise ValueError("another version, or a CSeq of another method")
        if "received" in via.params:  # If its sender wrote that, our answers would go to whom they please.
            via.params["received"] = msg.getSource()[0]
        super().incomingRequest(msg, checksum, tids, server)

    def forget(self, transaction: Any) -> None:
        """One that has failed to be answered."""
        self.tserver.pop(transaction.tid, None)
        _stop(transaction)
        transaction.cleanup()

    def shutdown(self) -> None:
        for transaction in (*self.tserver.values(), *self.tclient.values()):
            _stop(transaction)
        super().shutdown()


def _stop(transaction: Any) -> None:
    """Cancel its timers."""
    for name in "ABCDEFG":
        if timer := getattr(transaction, f"te{name}", None):
            timer.cancel()


class _Options:
    """sippy sets these and we do not care."""

    flags = 0


class Request(Message):
    """A request that came, and how it is answered."""

    def __init__(self, message: Any, transaction: Any, stack: "Stack") -> None:
        super().__init__(message)
        self.method: str = message.getMethod()
        self.source: Host = message.getSource()
        self.on_cancel: Callable[[], object] | None = None
        """An INVITE: its caller gives up before it is answered. 487 has been sent."""
        self._transaction = transaction
        self._stack = stack
        self._final = False

    @property
    def uri(self) -> Address:
        """What is asked for. Raises SipError."""
        return Address.of(f"<{self.raw.ruri}>")

    def respond(
        self,
        code: int,
        reason: str,
        headers: Sequence[tuple[str, str]] = (),
        body: str = "",
        *,
        tag: str = "",
        on_ack: Callable[[Message], None] | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        """Answer; final responses but once. `tag`: ours, of the dialog; `body`: SDP. An INVITE's final response is sent
        until its ACK comes (`on_ack`), or for 32 s (`on_lost`)."""
        if self._final:
            return
        self._final = code >= 200
        response = self.raw.genResponse(code, reason, self._stack.sdp(body) if body else None, server="voicepipe")
        if tag:
            response.getHFBody("to").setTag(tag)
        response.appendHeaders([SipHeader(name=name, bodys=value) for name, value in headers])
        self._transaction.noack_cb = on_lost
        self._stack.respond(response, self._transaction, on_ack)

    def cancelled(self) -> None:
        """As sippy tells it."""
        self._final = True
        if self.on_cancel:
            self.on_cancel()


class Stack:
    """`on_request` gets every request that begins a transaction, on the event loop; ACKs come to `Request.respond`.
    What comes from an IP address that `admits` turns away is dropped unread."""

    def __init__(
        self, host: str, port: int, public: str, on_request: Callable[[Request], None], admits: Callable[[str], bool]
    ) -> None:
        self.address: Host = host, port
        self._public = public
        self._on_request = on_request
        self._admits = admits
        self._socket = _Socket(self)
        self._transactions: Any = None
        self._resolving: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen. Raises ConfigError."""
        _prepare()
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_datagram_endpoint(lambda: self._socket, self.address)
        except OSError as error:
            raise ConfigError(f"Cannot listen for SIP on {self.address[0]}:{self.address[1]} ({error.strerror}): set "
                              "sip.port to a free one (demo: --sip-port).") from error  # fmt: skip
        self.address = transport.get_extra_info("sockname")[:2]
        self._transactions = _Transactions(self._socket, self.address, self._requested)

    def close(self) -> None:
        """Hear and send nothing more."""
        self._socket.close()
        if self._transactions:
            self._transactions.shutdown()
        for task in self._resolving:
            task.cancel()

    def local(self, peer: str) -> str:
        """The address by which `peer`, an IPv4 address, reaches us."""
        if self._public:
            return self._public
        if self.address[0] != "0.0.0.0":
            return self.address[0]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((peer, DEFAULT_PORT))
            return str(probe.getsockname()[0])

    def received(self, data: bytes, address: Host) -> None:
        """A datagram."""
        if len(data) < _SHORTEST or not self._admits(address[0]):
            return
        head, end, body = data.partition(b"\r\n\r\n")
        # sippy counts the body's characters where Content-Length counts bytes: none of ours has others than ASCII.
        text = _decoded(head) + (end + body).decode("ascii", "replace")
        try:
            self._transactions.handleIncoming(text, Remote_address(address, "udp"), self._socket, MonoTime())
        except Exception:
            # sippy's parser has many ways of not understanding; none of them is another call's business.
            logger.debug("a SIP message from %s:%d that cannot be read", *address, exc_info=True)
            if answer := unreadable.refusal(text):
                self._socket.send(answer.encode(), address)

    def _requested(self, message: Any, transaction: Any) -> tuple[None, Callable[..., None], Callable[[], None] | None]:
        request = Request(message, transaction, self)
        try:
            self._on_request(request)
        except SipError as error:
            logger.info("a %s from %s cannot be read: %s", request.method, request.source[0], error)
            request.respond(400, "Bad Request")
        except Exception:
            logger.exception("a %s from %s failed", request.method, request.source[0])
            try:
                request.respond(500, "Server Internal Error")
            except Exception:
                self._transactions.forget(transaction)
                raise
        return None, lambda *_: request.cancelled(), transaction.noack_cb

    def respond(self, response: Any, transaction: Any, on_ack: Callable[[Message], None] | None) -> None:
        """As `Request.respond`."""
        acknowledged = (lambda message: on_ack(Message(message))) if on_ack else None
        self._transactions.sendResponse(response, transaction, ack_cb=acknowledged)

    @staticmethod
    def sdp(body: str) -> Any:
        """A body as sippy has it."""
        return sippy.MsgBody.MsgBody(body)

    def send(self, head: str, via: str, body: str, address: Host, on_response: OnResponse) -> None:
        """Send a request: its first line and headers without Via, each line with its end. `on_response` gets every
        response, 408 if none comes within 32 s."""
        branch = f"z9hG4bK{secrets.token_hex(12)}"
        first, _, rest = head.partition("\r\n")
        line = f"Via: SIP/2.0/UDP {via}:{self.address[1]};branch={branch};rport\r\n"
        request = SipRequest(f"{first}\r\n{line}{rest}Content-Length: {len(body)}\r\n\r\n{body}")
        request.setTarget((address, "udp"))
        self._transactions.newTransaction(request, lambda said: on_response(_response(said)), userv=self._socket)

    def resolve(self, data: bytes, address: Host) -> None:
        """Send to a host that has a name."""
        task = asyncio.get_running_loop().create_task(self._send_to_name(data, address))
        self._resolving.add(task)
        task.add_done_callback(self._resolving.discard)

    async def _send_to_name(self, data: bytes, address: Host) -> None:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                *address, family=socket.AF_INET, type=socket.SOCK_DGRAM
            )
        except OSError as error:
            logger.warning("%s has no address (%s)", address[0], error.strerror)
        else:
            self._socket.send(data, found[0][4][:2])  # type: ignore[arg-type]


def _decoded(head: bytes) -> str:
    try:
        return head.decode()
    except UnicodeDecodeError:
        return head.decode("latin-1")  # old phones' display names


def _response(message: SipResponse) -> Response:
    code, reason = message.getSCode()
    return Response(message, code, reason)

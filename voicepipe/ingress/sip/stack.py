"""Requests in, answers and requests out: SIP's transport and transactions as the rest of `sip/` knows them."""

import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sippy.MsgBody import MsgBody
from sippy.Network_server import Remote_address
from sippy.SipHeader import SipHeader
from sippy.Time.MonoTime import MonoTime

from voicepipe.base.errors import ConfigError
from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.datagram_check import DatagramCheck, check_datagram, stateless_answer
from voicepipe.ingress.sip.header_text import DEFAULT_PORT, SipError, warning
from voicepipe.ingress.sip.kept_messages import KeptHeader, KeptRequest
from voicepipe.ingress.sip.message import IncomingResponse, SipMessage
from voicepipe.ingress.sip.names import ResolvingSender
from voicepipe.ingress.sip.transactions import Host, Transactions, UdpSocket, prepare
from voicepipe.rtp.ports import taken

logger = logging.getLogger(__name__)

_SHORTEST = 32
"""Bytes; what is shorter is a keep-alive (RFC 5626, 4.4.1)."""

OnResponse = Callable[[IncomingResponse], None]
PassOn = Callable[[bytes, Host], None]
"""Passes a message on to the process that has its call, with the address that it came from."""


class IncomingRequest(SipMessage):
    """A request that came, and the means to answer it."""

    def __init__(self, message: Any, transaction: Any, transactions: Transactions) -> None:
        super().__init__(message)
        self.method: str = message.getMethod()
        self.source: Host = message.getSource()
        self.on_cancel: Callable[[], object] | None = None
        """Called for an INVITE whose caller gives up before it is answered. 487 has been sent."""
        self._transaction = transaction
        self._transactions = transactions
        self._final = False

    @property
    def uri(self) -> Address:
        """The request URI. Raises SipError."""
        return Address.of_uri(str(self.raw.ruri))

    def respond(
        self,
        code: int,
        reason: str,
        headers: Sequence[tuple[str, str]] = (),
        body: str = "",
        *,
        tag: str = "",
        on_ack: Callable[[SipMessage], None] | None = None,
        on_lost: Callable[[], None] | None = None,
        once: bool = False,
    ) -> None:
        """Answer the request; further final responses are not sent. `tag`: ours, of the dialog that an INVITE begins;
        `body`: SDP.

        An INVITE's final response is repeated until its ACK comes (`on_ack`), or for 32 s (`on_lost`). With `once` it
        is repeated only if the INVITE comes again, so that a forged address gets no more than the forger sends (RFC
        3261, 26.3.2.4)."""
        if self._final:
            return
        self._final = code >= 200
        response = self.raw.genResponse(code, reason, MsgBody(body) if body else None, server="voicepipe")
        if tag:
            response.getHFBody("to").setTag(tag)
        response.appendHeaders([SipHeader(name=name, body=KeptHeader(value, name)) for name, value in headers])
        self._transaction.noack_cb = on_lost
        acknowledged = (lambda message: on_ack(SipMessage(message))) if on_ack else None
        self._transactions.sendResponse(response, self._transaction, ack_cb=acknowledged)
        if self._transaction.needack and code >= 300:
            self._transactions.doubt("refused", self._transaction)
        if once:
            self._transactions.not_again(self._transaction)

    def forget(self) -> None:
        """Do not send the final response again, whether it was acknowledged or not."""
        self._transactions.forget(self._transaction)

    def cancelled(self) -> None:
        """Called by sippy when the caller has cancelled."""
        self._final = True
        if self.on_cancel:
            self.on_cancel()


class Stack:
    """SIP's transport and transactions on one UDP socket. `on_request` gets every request that begins a transaction, on
    the event loop; ACKs come to `IncomingRequest.respond`. `on_message` gets every message before it is parsed, and
    calls `read` or not."""

    def __init__(
        self, host: str, port: int, public: str, on_request: Callable[[IncomingRequest], None],
        on_message: Callable[[DatagramCheck, Host], None],
    ) -> None:  # fmt: skip
        self._bind = host, port
        self._public = public
        self._on_request = on_request
        self._on_message = on_message
        self._names = ResolvingSender(lambda data, address: self._socket.send(data, address))
        self._socket = UdpSocket(self._received, self._names.send)
        self._transactions: Any = None
        self.elsewhere: dict[str, PassOn] = {}
        """Who gets messages with these Call-IDs: their calls are another process's."""

    def open(self, taken_over: socket.socket | None = None) -> None:
        """Be ready to listen, on the event loop that runs; at `taken_over`, if another process has bound it. Nothing is
        read before `resume`. Raises ConfigError."""
        prepare()
        try:
            self._socket.open(self._bind, taken_over)
        except OSError as error:
            mend = "sip.port (--sip-port) to a free one" if taken(error) else "sip.host to an address of this machine"
            where = f"{self._bind[0]}:{self._bind[1]}"
            raise ConfigError(f"Cannot listen for SIP on {where} ({error.strerror}): set {mend}.") from error
        self._transactions = Transactions(self._socket, self._requested)

    def pause(self) -> socket.socket:
        """As `UdpSocket.pause`. What another process passes on comes by `passed_on`."""
        return self._socket.pause()

    def resume(self) -> None:
        """As `UdpSocket.resume`."""
        self._socket.resume()

    def passed_on(self, data: bytes, source: Host) -> None:
        """Take a message that another process has received for one of our calls."""
        self._received(data, source)

    def call_ids(self) -> set[str]:
        """The Call-IDs of the transactions in progress."""
        return self._transactions.call_ids() if self._transactions else set()

    @property
    def address(self) -> Host:
        """The address at which it listens, once it does."""
        return self._socket.address

    def close(self) -> None:
        """Receive and send nothing more."""
        self._socket.close()
        if self._transactions:
            self._transactions.shutdown()
        self._names.close()

    def local(self, peer: str) -> str:
        """The address by which `peer`, an IPv4 address, reaches us."""
        if self._public and ipaddress.ip_address(peer).is_global:  # Phones of our own network see us as we are.
            return self._public
        if self.address[0] != "0.0.0.0":
            return self.address[0]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((peer, DEFAULT_PORT))
            return str(probe.getsockname()[0])

    def local_for_sound(self, signalled: str, named: str) -> str:
        """The address by which the sound of a caller behind a proxy reaches us. `signalled`: the proxy's address;
        `named`: the one in the SDP (0.0.0.0 where it has none) or the Contact (perhaps a host's name, which does not
        help). Sound does not go by a proxy of our own network, or of this machine."""
        signals = ipaddress.ip_address(signalled)
        with suppress(ValueError, OSError):  # a name; no way leads there: nor will its sound come
            sounds = ipaddress.IPv4Address(named)
            if not signals.is_global and (sounds.is_global or signals.is_loopback and not sounds.is_unspecified):
                return self.local(named)
        return self.local(signalled)

    def _received(self, data: bytes, address: Host) -> bool:
        """Take a datagram; returns whether it was more than junk."""
        if len(data) >= _SHORTEST and (seen := check_datagram(data)):
            if pass_on := self.elsewhere.get(seen.call_id):
                pass_on(data, address)
            else:
                self._on_message(seen, address)
            return True
        return False

    def read(self, seen: DatagramCheck, address: Host) -> str:
        """Parse a message and pass it to its transaction. Returns why it cannot be read, for the sender of a request;
        empty: it was read."""
        try:
            self._transactions.handleIncoming(seen.text, Remote_address(address, "udp"), self._socket, MonoTime())
        except Exception as error:
            # Whatever is wrong with a message, also with what sippy makes of it, is no other call's business.
            logger.debug("a SIP message from %s:%d that cannot be read", *address, exc_info=True)
            why = str(error) if isinstance(error, SipError) else "it cannot be read"
            if said := stateless_answer(seen, address, 400, "Bad Request", (warning(why),)):
                self._socket.send(said[0].encode(), address)  # Who knows what its Via says.
            return why
        return ""

    def answer_stateless(
        self, seen: DatagramCheck, address: Host, code: int, reason: str, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Answer a message that is not to be read, without keeping anything of it."""
        if said := stateless_answer(seen, address, code, reason, headers):
            text, target = said
            self._socket.send(text.encode(), target)

    def expects(self, seen: DatagramCheck) -> bool:
        """As `Transactions.expects`."""
        return bool(self._transactions.expects(seen))

    def _requested(self, message: Any, transaction: Any) -> tuple[None, Callable[..., None], Callable[[], None] | None]:
        request = IncomingRequest(message, transaction, self._transactions)
        try:
            self._on_request(request)
        except Exception:
            logger.exception("a %r from %s failed", request.method, request.source[0])
            try:
                request.respond(500, "Server Internal Error")
            except Exception:
                self._transactions.forget(transaction)
                raise
        return None, lambda *_: request.cancelled(), transaction.noack_cb

    def send(self, head: str, via: str, address: Host, on_response: OnResponse, *, doubtful: bool = False) -> None:
        """Send a request without a body: its first line and headers without Via, each line with its end. `on_response`
        gets every response, 408 if none comes within 32 s. `doubtful`: the far end may not exist, and the number of
        such requests that are kept is bounded."""
        request = self._made(head, via)
        request.setTarget((address, "udp"))
        transaction = self._transactions.newTransaction(
            request, lambda said: on_response(IncomingResponse(said)), userv=self._socket
        )
        if doubtful:
            self._transactions.doubt("hung up", transaction)

    def check(self, head: str, via: str) -> None:
        """Raises whatever `send` would, but sends and keeps nothing."""
        request = self._made(head, via)
        request.getTId(True, True)
        request.genResponse(408, "Request Timeout")
        request.localStr(self._socket.getSIPaddr())

    def _made(self, head: str, via: str) -> KeptRequest:
        branch = f"z9hG4bK{secrets.token_hex(12)}"
        first, _, rest = head.partition("\r\n")
        line = f"Via: SIP/2.0/UDP {via}:{self.address[1]};branch={branch};rport\r\n"
        return KeptRequest(f"{first}\r\n{line}{rest}Content-Length: 0\r\n\r\n")

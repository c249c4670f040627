"""A dialog on the called side (RFC 3261, 12): where our requests go, and which of the far end's are in order; and its
session timer (RFC 4028): a call whose far end stops refreshing it is over."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.header_text import DEFAULT_PORT, SipError, parameters, tagged
from voicepipe.ingress.sip.message import SipMessage
from voicepipe.ingress.sip.stack import IncomingRequest, OnResponse, Stack
from voicepipe.ingress.sip.transactions import Host

Headers = Sequence[tuple[str, str]]
LEAST_S = 90
"""The shortest interval in seconds (RFC 4028, 4)."""


@dataclass(frozen=True, slots=True)
class DialogId:
    """Identifies a dialog (RFC 3261, 12)."""

    call_id: str
    ours: str
    """Our tag."""
    theirs: str
    """The far end's tag."""

    @classmethod
    def of(cls, request: SipMessage) -> "DialogId":
        """The id of the dialog to which a request belongs. Raises SipError."""
        return cls(request.call_id, request.to_tag, request.from_tag)


class Dialog:
    """A dialog on the called side, which an INVITE begins that is to be accepted. Raises SipError: the INVITE can begin
    none."""

    def __init__(self, invite: IncomingRequest, stack: Stack) -> None:
        self.id = DialogId(invite.call_id, secrets.token_hex(8), invite.from_tag)
        self.allows = invite.listed("allow")
        """Methods that the caller takes, in lower case; empty: they did not say."""
        self.local = stack.local(invite.source[0])
        """Our address, as the caller reaches it."""
        self.contact = f"<sip:voicepipe@{self.local}:{stack.address[1]}>"
        self._stack = stack
        self._from = tagged(invite.header("to"), self.id.ours)
        self._to = invite.header("from")
        self._routes = [Address.of(route) for route in invite.headers("record-route")]
        self._target = Address.of(invite.header("contact") or self._to)
        self._source = invite.source
        vias = invite.headers("via")
        self.is_proxied = len(vias) > 1 or bool(self._routes)
        """The dialog's messages go by a proxy."""
        self._symmetric = len(vias) == 1 and "rport" in parameters(vias[0])
        """The peer receives at the address it sends from (RFC 3581), whatever its Contact says: it may be behind a NAT.
        Not so with a proxy between us, which takes no further part unless it says so (Record-Route)."""
        self._seq = secrets.randbelow(2**16)
        self._their_seq = invite.cseq[0]
        self._reached(self._target)

    def in_order(self, request: IncomingRequest) -> bool:
        """Whether a request comes after the ones before (RFC 3261, 12.2.2)."""
        number, _ = request.cseq
        if number < self._their_seq:
            return False
        self._their_seq = number
        return True

    def target(self, request: IncomingRequest) -> Address:
        """The peer's address after a re-INVITE or UPDATE, to be used once that is accepted. Raises SipError."""
        contact = request.header("contact")
        return self._reached(Address.of(contact)) if contact else self._target

    def _reached(self, target: Address) -> Address:
        """The address, if requests can be sent there. Checked before anything is promised: a call that cannot be hung
        up would keep its slot. Raises SipError."""
        for hop in (target, *self._routes):
            if not hop.host and hop.scheme != "tel":
                raise SipError(f"no request can be sent to {hop.uri[:80]!r}, which names no host")
        try:
            self._stack.check(self._head("BYE", target), self.local)
        except Exception as error:  # Whatever sippy raises.
            raise SipError(f"no request can be sent to {target.uri[:80]!r}") from error
        return target

    def moved(self, target: Address, source: Host) -> None:
        """As `target`, in a request from `source`."""
        self._target, self._source = target, source

    @property
    def host(self) -> str:
        """The peer's host, by its Contact: an address or a name. Empty: the Contact is a telephone number."""
        return self._target.host

    @property
    def domain(self) -> str:
        """The peer's host with its port: a number to which its caller is transferred belongs to that domain."""
        host, port = (self.host, self._target.port) if self.host else self._source
        return f"{host}:{port}" if port else host

    def send(self, method: str, on_response: OnResponse, headers: Headers = (), *, doubtful: bool = False) -> int:
        """Send a request within the dialog; its number. `doubtful`: as `Stack.send`."""
        self._seq += 1
        head = self._head(method, self._target, headers)
        self._stack.send(head, self.local, self._next_hop(), on_response, doubtful=doubtful)
        return self._seq

    def _head(self, method: str, target: Address, headers: Headers = ()) -> str:
        """The head of a request, as `Stack.send` takes it."""
        uri, routes = target.uri, [f"<{route.uri}>" for route in self._routes]
        if self._routes and not self._routes[0].loose:
            uri, routes = self._routes[0].uri, [*routes[1:], f"<{target.uri}>"]
        lines = [
            f"{method} {uri} SIP/2.0",
            *(f"Route: {route}" for route in routes),
            "Max-Forwards: 70",
            f"From: {self._from}",
            f"To: {self._to}",
            f"Call-ID: {self.id.call_id}",
            f"CSeq: {self._seq} {method}",
            f"Contact: {self.contact}",
            "User-Agent: voicepipe",
            *(f"{name}: {value}" for name, value in headers),
        ]
        return "".join(f"{line}\r\n" for line in lines)

    def _next_hop(self) -> Host:
        if not self._routes and self._symmetric:
            return self._source
        hop = self._routes[0] if self._routes else self._target
        return (hop.host, hop.port or DEFAULT_PORT) if hop.host else self._source


def new_call(request: IncomingRequest) -> tuple[str, str]:
    """The key by which copies of one INVITE that come by several ways are known as one (RFC 3261, 8.2.2.2). Raises
    SipError."""
    number, _ = request.cseq
    return request.call_id, f"{request.from_tag} {number}"


@dataclass(frozen=True, slots=True)
class SessionTimer:
    """A session timer (RFC 4028): the session lasts `interval_s` from the last refresh."""

    interval_s: int

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers for the 200 that accepts the timer."""
        return ("Session-Expires", f"{self.interval_s};refresher=uac"), ("Require", "timer")

    @property
    def over_s(self) -> float:
        """Seconds after which the call is hung up without a refresh (RFC 4028, 10)."""
        return self.interval_s - min(32.0, self.interval_s / 3)


class TooShort(ValueError):
    """Answered with 422: the interval is below `LEAST_S`."""


def negotiated(request: SipMessage) -> SessionTimer | None:
    """The timer that an INVITE or UPDATE asks for. None: no timer, or one that we would have to refresh. Raises
    TooShort."""
    asked, _, params = request.header("session-expires").partition(";")
    if "timer" not in request.listed("supported") or not re.fullmatch(r"\s*[0-9]{1,9}\s*", asked):
        return None
    if int(asked) < LEAST_S:
        raise TooShort
    return None if "refresher=uas" in params.replace(" ", "").lower() else SessionTimer(int(asked))

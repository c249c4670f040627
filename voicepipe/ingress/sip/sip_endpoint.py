"""The SIP endpoint of a PoP or a directory: receives requests, checks who sends them, and answers those that are
refused."""

import logging
import socket
import time
from collections.abc import Callable

from voicepipe.base.errors import Declined, Reason, Refused, TenantFull
from voicepipe.ingress.access import UnknownModel, retry_after
from voicepipe.ingress.phone import NoRoute
from voicepipe.ingress.refusal_log import RefusalLog
from voicepipe.ingress.sip.addresses import CALLED, Address
from voicepipe.ingress.sip.bodies import UnsupportedBody
from voicepipe.ingress.sip.datagram_check import DatagramCheck
from voicepipe.ingress.sip.header_text import SipError, address_parts, parameters, split, warning
from voicepipe.ingress.sip.message import printable
from voicepipe.ingress.sip.sip_access import Challenge, SipAccess, SipRefusal, SipSender, Unauthenticated
from voicepipe.ingress.sip.sip_limits import SipLimits
from voicepipe.ingress.sip.stack import IncomingRequest, Stack
from voicepipe.ingress.sip.transactions import Host
from voicepipe.rtp.sdp_text import SdpError

logger = logging.getLogger(__name__)

REGISTERED_S = 300
"""Seconds for which a phone is registered. It registers to show itself ready; nobody is called here."""
SUPPORTED = {"timer"}
"""Extensions that PoPs, which take the calls, support."""
OF_A_CALL = ("BYE", "INFO", "UPDATE", "NOTIFY")
"""Methods of requests within a call."""
PHRASES = {480: "Temporarily Unavailable", 486: "Busy Here", 600: "Busy Everywhere", 603: "Decline"}


class SipEndpoint:
    """The SIP endpoint of a PoP or a directory: it receives between `resume` and `close`, and checks who sends.

    `on_request` gets each request that is to be read; `on_refused` is called for each new call that is refused
    without reading it; `goes_on`: whether a message belongs to a call in progress."""

    def __init__(
        self, bind: Host, public_address: str, access: SipAccess, on_request: Callable[[IncomingRequest], None],
        on_refused: Callable[[Reason, int], None], goes_on: Callable[[DatagramCheck], bool] = lambda seen: False,
    ) -> None:  # fmt: skip
        self.stack = Stack(*bind, public_address, on_request, self._received)
        self._access = access
        self._on_refused = on_refused
        self._in_call = goes_on
        self._limits, self._refusals = SipLimits(access, self._goes_on), RefusalLog(logger, "SIP requests")

    def open(self, taken_over: socket.socket | None = None) -> None:
        """As `Stack.open`. Raises ConfigError."""
        self.stack.open(taken_over)

    def resume(self) -> None:
        """Receive what comes from now on, and what waits."""
        self.stack.resume()

    def close(self) -> None:
        """Receive and send nothing more."""
        self.stack.close()

    def _received(self, seen: DatagramCheck, source: Host) -> None:
        """Decide on a message that is not parsed yet."""
        began, now = time.thread_time(), time.monotonic()
        begins = seen.method == "INVITE" and not seen.to_tag
        judged = self._limits.judge(seen, source[0], now)
        try:
            if judged.read:
                if why := self.stack.read(seen, source):
                    if seen.method not in ("", "ACK"):  # These are not answered.
                        self._log(seen.method, source[0], SipRefusal(400, "Bad Request", why))
                    if begins:
                        self._on_refused("bad_request", 400)
            elif answer := judged.refusal:
                self.stack.answer_stateless(seen, source, answer.code, answer.phrase, answer.headers)
                if not isinstance(answer, Challenge):  # That somebody is asked for a password is no news.
                    self._log(seen.method, source[0], answer)
                    if begins:
                        self._on_refused(answer.reason, answer.code)
            elif summary := self._limits.summary(now):
                logger.warning("SIP messages come in masses and are dropped unread: %s", summary)
        finally:
            self._limits.took(judged, (time.thread_time() - began) * 1000)

    def _goes_on(self, seen: DatagramCheck) -> bool:
        """Whether it belongs to a call or to a transaction that we have."""
        return self._in_call(seen) or (seen.method in ("", "ACK", "CANCEL") and self.stack.expects(seen))

    def admit(
        self, request: IncomingRequest, capabilities: tuple[tuple[str, str], ...],
        invited: Callable[[IncomingRequest, SipSender], None], takes_calls: Callable[[], bool],
    ) -> None:  # fmt: skip
        """Handle a request that is part of no call. `invited` gets an INVITE with its sender. `capabilities` begin with
        Allow. Raises SipRefusal, SipError, and what `invited` does."""
        who = self._access.admit(request)
        check_scheme(request)
        check_required(request)
        if request.method == "INVITE":
            invited(request, who)
        elif request.method == "OPTIONS" and not takes_calls():  # Load balancers ask, to know that.
            request.respond(503, "Service Unavailable")
        elif request.method == "OPTIONS":
            request.respond(200, "OK", capabilities)
        elif request.method == "REGISTER":
            request.respond(200, "OK", registered(request))
        elif request.method in OF_A_CALL:
            raise of_no_call()
        else:
            raise SipRefusal(405, "Method Not Allowed", f"{request.method} is not known here", capabilities[:1])

    def refuse(self, request: IncomingRequest, answer: SipRefusal) -> None:
        """Answer the request with this refusal, and log it."""
        request.respond(answer.code, answer.phrase, answer.headers, once=isinstance(answer, Unauthenticated))
        if isinstance(answer, Challenge):
            logger.debug("%s from %s is asked for a password: %s", request.method, request.source[0], answer.why)
        else:
            self._log(request.method, request.source[0], answer)

    def _log(self, method: str, source: str, answer: SipRefusal) -> None:
        self.log(
            source, "%s from %s refused with %d: %s", printable(method), source, answer.code, printable(answer.why)
        )

    def log(self, source: str, text: str, *values: object) -> None:
        """Log what became of a request, unless there is too much to log about its sender."""
        self._refusals.log(source, text, *values)


def declined(error: Declined, *, final: bool = False) -> SipRefusal:
    """The answer to a caller whom the agent's hook refuses. `final`: they know other PoPs, and are not to call them:
    after a code of 6xx nobody tries another address (RFC 3261, 21.6)."""
    code = error.sip_code
    if final and code < 600:
        code = 600 if code == 486 else 603
    return SipRefusal(code, PHRASES.get(code, "Declined"), str(error), reason=error.reason)


def refusal(error: Exception) -> SipRefusal | None:
    """The answer to a request that failed with this error; None: the error is a fault of ours."""
    match error:
        case SipRefusal():
            return error
        case SdpError():
            return SipRefusal(488, "Not Acceptable Here", str(error), (warning(str(error)),), "not_acceptable")
        case UnsupportedBody():
            return SipRefusal(415, "Unsupported Media Type", str(error), (error.accept,), "not_acceptable")
        case NoRoute() | UnknownModel():
            return SipRefusal(404, "Not Found", str(error), reason=error.reason)
        case TenantFull():  # Another PoP would not take it either.
            return SipRefusal(486, "Busy Here", str(error), reason=error.reason)
        case Declined():
            return declined(error)
        case Refused():
            again = (("Retry-After", retry_after(error)),)
            return SipRefusal(503, "Service Unavailable", str(error), again, error.reason)
        case SipError():
            return SipRefusal(400, "Bad Request", str(error), (warning(str(error)),))
    return None


def check_scheme(request: IncomingRequest) -> None:
    """Raises SipRefusal: the request is for an address that cannot be called (RFC 3261, 8.2.2.1); SipError."""
    if (scheme := request.uri.scheme) not in CALLED:
        why = f"it asks for a {scheme}: address; sip:, sips: and tel: can be called here"
        raise SipRefusal(416, "Unsupported URI Scheme", why, reason="not_acceptable")


def check_required(request: IncomingRequest) -> None:
    """Raises SipRefusal: it requires an extension that is not known."""
    if unknown := request.listed("require") - SUPPORTED:
        names = ", ".join(sorted(unknown))
        raise SipRefusal(420, "Bad Extension", f"it requires {names}", (("Unsupported", names),), "not_acceptable")


def of_no_call() -> SipRefusal:
    """The answer to requests within a call that is not here."""
    return SipRefusal(481, "Call/Transaction Does Not Exist", "it belongs to no call that goes on")


def registered(request: IncomingRequest) -> list[tuple[str, str]]:
    """The Contacts that are registered after a REGISTER, for at most `REGISTERED_S`, without those that it removes.
    Raises SipError."""
    if (scheme := Address.of(request.header("to")).scheme) not in ("sip", "sips"):
        raise SipError(f"it registers a {scheme}: address; RFC 3261, 10.2, has sip: and sips: there")
    left = []
    for contact in request.headers("contact"):
        _, params = address_parts(contact)
        asked = parameters(params).get("expires") or request.header("expires")
        seconds = min(int(asked), REGISTERED_S) if asked.isdecimal() and len(asked) < 10 else REGISTERED_S
        if seconds and contact != "*":
            address = contact.removesuffix(params).removesuffix(";")
            others = [param for param in split(params, ";") if param and "expires" not in parameters(param)]
            left.append(("Contact", ";".join([address, *others, f"expires={seconds}"])))
    return left

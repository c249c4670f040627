"""The PoP's SIP side: which request is whose, who may call, and which agent answers."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import NamedTuple

import msgspec

from voicepipe.agent import Agent, Origin
from voicepipe.call_api import PopApi, Tenant
from voicepipe.errors import Draining, NoPort, PopFull, Refused, TenantFull
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.doors import UnknownModel, settle
from voicepipe.ingress.keys import Caller
from voicepipe.ingress.local import sip_host
from voicepipe.ingress.phone import NoRoute, placed
from voicepipe.ingress.sip.call import ALLOW, CAPABILITIES, SipCall
from voicepipe.ingress.sip.dialog import Dialog, DialogId, new_call
from voicepipe.ingress.sip.gate import Gate, Refusal
from voicepipe.ingress.sip.media import SDP, SipMedia
from voicepipe.ingress.sip.message import Address, SipError
from voicepipe.ingress.sip.stack import Request, Stack
from voicepipe.ingress.sip.throttle import Rate, Throttle
from voicepipe.ingress.sip.timers import LEAST_S, TooShort, negotiated
from voicepipe.rtp.sdp_text import SdpError

logger = logging.getLogger(__name__)

SUPPORTED = {"timer"}
REGISTERED_S = 300
"""A phone that registers does so to show itself ready; nobody is called here."""
LATER: dict[type[Refused], str] = {PopFull: "2", NoPort: "2", Draining: "30"}
"""Seconds after which a caller may try again."""
MESSAGES = Rate(200, 50), Rate(500, 200)
"""From one address and from all that are no trunk's: an office of telephones behind one address sends less. sippy
remembers each for up to 64 s, and takes 0.3 ms for it."""
LINES = Rate(20, 0.5), Rate(100, 5)
"""Refusals that are logged one by one: scanners try every number there is."""


class _Wanted(NamedTuple):
    """Whom an INVITE asks for."""

    tenant: Tenant
    agent: Agent
    origin: Origin


class SipEdge:
    """Between `open` and `close` it takes calls, which `calls` holds. Raises ConfigError: strangers could call."""

    def __init__(self, pop: PopApi, calls: Calls) -> None:
        sip = pop.config.sip
        self._pop = pop
        self._calls = calls
        self._gate = Gate(pop.config)
        self._stack = Stack(sip_host(pop.config), sip.port, sip.public_address, self._requested, self._listens)
        self._messages, self._lines = Throttle(*MESSAGES), Throttle(*LINES)
        self._dialogs: dict[DialogId, SipCall] = {}
        self._invited: set[tuple[str, str]] = set()
        """INVITEs that are being answered, or were and their calls go on."""
        self._ring_s = sip.ring_ms / 1000
        self._ringing: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen. Raises ConfigError."""
        await self._stack.open()

    async def close(self) -> None:
        """Hear and send nothing more; the calls have ended."""
        for task in self._ringing:
            task.cancel()
        if self._ringing:
            await asyncio.wait(self._ringing)
        self._stack.close()

    def _listens(self, source: str) -> bool:
        """Whether a datagram from this IP address is read."""
        now = time.monotonic()
        if self._gate.trusts(source) or self._messages.admits(source, now):
            return True
        if news := self._messages.news(now):
            logger.warning("SIP messages from strangers come in masses and are dropped unread: %s", news)
        return False

    # --- requests

    def _requested(self, request: Request) -> None:
        """Whatever is wrong with a request, its sender is told, and the log says why."""
        try:
            self._dispatch(request)
        except Exception as error:
            self._refuse(request, error)

    def _dispatch(self, request: Request) -> None:
        if unknown := request.listed("require") - SUPPORTED:
            names = ", ".join(sorted(unknown))
            raise Refusal(420, "Bad Extension", f"it requires {names}", (("Unsupported", names),))
        if request.to_tag:
            call = self._dialogs.get(DialogId.of(request))
            if call is None:
                raise Refusal(481, "Call/Transaction Does Not Exist", "it belongs to no call that goes on")
            return call.handle(request)
        match request.method:
            case "INVITE":
                self._invite(request)
            case "OPTIONS":
                self._gate.admit(request)
                request.respond(200, "OK", CAPABILITIES)
            case "REGISTER":
                self._register(request)
            case "BYE" | "INFO" | "UPDATE" | "NOTIFY":
                raise Refusal(481, "Call/Transaction Does Not Exist", "it belongs to no call")
            case method:
                raise Refusal(405, "Method Not Allowed", f"{method} is not known here", (("Allow", ALLOW),))

    def _register(self, request: Request) -> None:
        self._gate.admit(request)
        contacts = [(name, f"{value};expires={REGISTERED_S}") for name, value in _contacts(request)]
        request.respond(200, "OK", contacts)

    def _refuse(self, request: Request, error: Exception) -> None:
        match error:
            case Refusal(code=code, reason=reason, why=why, headers=headers):
                request.respond(code, reason, headers)
                self._log(request, code, why)
            case SdpError():
                warning = f'399 voicepipe "{str(error).translate(_UNQUOTED)}"'
                request.respond(488, "Not Acceptable Here", (("Warning", warning),))
                self._log(request, 488, str(error))
            case TooShort():
                request.respond(422, "Session Interval Too Small", (("Min-SE", str(LEAST_S)),))
            case NoRoute() | UnknownModel():
                request.respond(404, "Not Found")
                self._log(request, 404, str(error))
            case TenantFull():  # Another PoP would not take it either.
                request.respond(486, "Busy Here")
                self._log(request, 486, str(error))
            case Refused():
                request.respond(503, "Service Unavailable", (("Retry-After", LATER.get(type(error), "2")),))
                self._log(request, 503, str(error))
            case SipError():
                request.respond(400, "Bad Request")
                self._log(request, 400, str(error))
            case _:
                raise error

    def _log(self, request: Request, code: int, why: str) -> None:
        source, now = request.source[0], time.monotonic()
        if self._lines.admits(source, now):
            level = logging.INFO if code == 401 else logging.WARNING
            logger.log(level, "%s from %s refused with %d: %s", request.method, source, code, why)
        elif news := self._lines.news(now):
            logger.warning("SIP requests are refused in masses, and not all of them told: also %s", news)

    # --- new calls

    def _invite(self, invite: Request) -> None:
        known = new_call(invite)
        if known in self._invited:
            raise Refusal(482, "Loop Detected", "the same call came by another way")
        if invite.body and invite.content_type != SDP:
            why = f"its body is {invite.content_type}, not SDP"
            raise Refusal(415, "Unsupported Media Type", why, (("Accept", SDP),))
        negotiated(invite)  # Its session timer may be too short.
        wanted = self._wanted(invite)
        with ExitStack() as place:
            self._invited.add(known)
            place.callback(self._invited.discard, known)
            call, sdp = self._prepared(invite, wanted, place)
            if self._ring_s:
                call.ring(invite)
                kept = place.pop_all()
                task = asyncio.get_running_loop().create_task(self._ring(invite, call, sdp, wanted, kept))
                # Not in the task: one that is cancelled before its first step runs nothing at all.
                task.add_done_callback(lambda _: kept.close())
                self._ringing.add(task)
                task.add_done_callback(self._ringing.discard)
                invite.on_cancel = task.cancel
            else:
                self._accept(invite, call, sdp, wanted, place)

    def _wanted(self, invite: Request) -> _Wanted:
        who = self._gate.admit(invite)
        asserted = invite.header("p-asserted-identity") if who.trunk else ""  # RFC 3325: by whom it trusts
        uri, caller = invite.uri, Address.of(asserted or invite.header("from"))
        tenant, agent = placed(self._pop, "sip", uri.user, domain=uri.host, trunk=who.trunk)
        return _Wanted(tenant, agent, Origin(caller.user, uri.user, invite.extra()))

    def _prepared(self, invite: Request, wanted: _Wanted, place: ExitStack) -> tuple[SipCall, str]:
        """The call, and our SDP for it. Raises Refused, SdpError."""
        pop = self._pop
        seat = place.enter_context(pop.admit(wanted.tenant, wanted.agent))
        expires = int(time.time() + pop.config.limits.call_ms / 1000)
        session, settings = settle(wanted.agent, Caller(wanted.tenant), expires)
        settings = msgspec.structs.replace(settings, origin=wanted.origin)
        dialog = Dialog(invite, self._stack)
        media = SipMedia(pop.config.sip, dialog.local, self._stack.address[0], invite.source[0])
        place.callback(media.close)
        sdp = media.open(invite.body)
        call = SipCall(dialog, media, seat, session, settings, pop.config)
        place.callback(call.close)
        place.callback(self._dialogs.pop, dialog.id, None)
        return call, sdp

    async def _ring(self, invite: Request, call: SipCall, sdp: str, wanted: _Wanted, place: ExitStack) -> None:
        """Cancelled if the caller gives up."""
        await asyncio.sleep(self._ring_s)
        try:
            self._accept(invite, call, sdp, wanted, place)
        except Exception as error:
            self._refuse(invite, error)

    def _accept(self, invite: Request, call: SipCall, sdp: str, wanted: _Wanted, place: ExitStack) -> None:
        call_id = self._calls.hold(call, wanted.tenant, place)
        self._dialogs[call.dialog.id] = call
        call.accept(invite, sdp, call_id)


@asynccontextmanager
async def listening(pop: PopApi, calls: Calls) -> AsyncIterator[None]:
    """Take calls by SIP within the context, if `sip.port` is set. Raises ConfigError."""
    if not pop.config.sip.port:
        yield
        return
    edge = SipEdge(pop, calls)
    await edge.open()
    try:
        yield
    finally:
        await edge.close()


_UNQUOTED = str.maketrans('"\r\n', "'  ")


def _contacts(request: Request) -> list[tuple[str, str]]:
    """Those that a REGISTER leaves behind: none if it takes its own back."""
    if request.header("expires") == "0":
        return []
    return [("Contact", value.partition(";expires")[0]) for value in request.headers("contact") if value != "*"]

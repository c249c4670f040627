"""The PoP's SIP server: finds the call of a request, the sender of a new one, and the agent that answers."""

import asyncio
import logging
import math
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple

from voicepipe.agent import Agent
from voicepipe.base.caller_number import last_three
from voicepipe.base.errors import Declined, PopFull, Reason, TenantFull
from voicepipe.base.round_robin import owned_by
from voicepipe.call_api import CallSlot, PopApi, Tenant
from voicepipe.call_settings import CallSettings, Origin
from voicepipe.config import Config
from voicepipe.config.credentials import sip_passwords
from voicepipe.config.phone_config import SipConfig
from voicepipe.config.rereads import Use
from voicepipe.ingress.access import Attempt
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.loopback_only import check_sip, sip_host
from voicepipe.ingress.phone import placed
from voicepipe.ingress.sip.addresses import Address, placement_of
from voicepipe.ingress.sip.datagram_check import DatagramCheck
from voicepipe.ingress.sip.dialog import LEAST_S, Dialog, DialogId, TooShort, negotiated, new_call
from voicepipe.ingress.sip.header_text import SipError
from voicepipe.ingress.sip.ringing_call import OpenedInvite, RingingCall
from voicepipe.ingress.sip.sip_access import Challenge, SipAccess, SipRefusal, SipSender
from voicepipe.ingress.sip.sip_call import CAPABILITIES, SipCall
from voicepipe.ingress.sip.sip_endpoint import SipEndpoint, check_required, declined, of_no_call, refusal
from voicepipe.ingress.sip.sip_media import SipMedia, read_sdp
from voicepipe.ingress.sip.stack import IncomingRequest
from voicepipe.ingress.sip.unacknowledged import UnacknowledgedCalls

logger = logging.getLogger(__name__)

LEAST_UNACKNOWLEDGED = 2
"""Half of a PoP's slots may be held by calls whose answer is not acknowledged, but never fewer than so many."""
MERGED = 482
"""The code for an INVITE whose call came by another way as well: that one is accepted or refused."""


class _Invited(NamedTuple):
    """An INVITE that begins a call: its sender, and the tenant and agent that it asks for."""

    invite: IncomingRequest
    attempt: Attempt
    who: SipSender
    tenant: Tenant
    agent: Agent
    origin: Origin


class SipServer:
    """The PoP's SIP server. Between `resume` and `close` it takes calls, which `calls` holds. Raises ConfigError:
    strangers could call."""

    def __init__(self, pop: PopApi, calls: Calls) -> None:
        sip = pop.config.sip
        self._pop = pop
        self._calls = calls
        bind = sip_host(sip, pop.config.http), sip.port
        self._access = SipAccess(sip)
        self._endpoint = SipEndpoint(
            bind, sip.public_address, self._access, self._requested, self._refused, self._goes_on
        )
        self._stack = self._endpoint.stack
        self._dialogs: dict[DialogId, SipCall] = {}
        self._invited: set[tuple[str, str]] = set()
        """INVITEs that are being answered, or were and their calls go on."""
        self._in_progress: Counter[SipSender] = Counter()
        """Calls in progress by their sender."""
        self._most = _most_calls(sip)
        """Calls at a time."""
        self._ring_s = sip.ring_ms / 1000
        self._unacknowledged = UnacknowledgedCalls[SipCall | RingingCall](
            max(LEAST_UNACKNOWLEDGED, pop.config.pop.slots // 2), self._ring_s
        )
        self._ringing: dict[asyncio.Task[None], _Invited] = {}
        pop.rereads.join(self._reread)
        pop.takeover_parts.join("sip", list[str], self._handed_over, self._take_over)

    def _reread(self, config: Config) -> Use:
        """Trunks, users and passwords, as `Rereads` has it."""
        sip, passwords = config.sip, sip_passwords(config.sip.users)

        def use() -> None:
            self._access.become(sip, passwords)
            self._most = _most_calls(sip)

        return use

    def open(self, taken_over: socket.socket | None = None) -> None:
        """Have the port, or `taken_over` if the process before has bound it. Nothing is read before `resume`. Raises
        ConfigError."""
        self._endpoint.open(taken_over)

    # --- as `HandsSocketOver`

    def pause(self) -> socket.socket:
        """Read nothing new. Messages about our calls come by `passed_on` from now on."""
        return self._stack.pause()

    def resume(self) -> None:
        """Read what comes, and what has come meanwhile."""
        self._stack.resume()

    def retire(self) -> None:
        """Another process reads the socket. Our calls go on."""

    def passed_on(self, data: bytes, source: tuple[str, int]) -> None:
        """As `Stack.passed_on`."""
        self._stack.passed_on(data, source)

    def _handed_over(self) -> list[str]:
        """The Call-IDs of all that goes on here, or in the process before."""
        return list(self._stack.call_ids().union((dialog.call_id for dialog in self._dialogs), self._stack.elsewhere))

    def _take_over(self, call_ids: list[str]) -> None:
        before = self._pop.predecessor
        self._stack.elsewhere = dict.fromkeys(call_ids, before.pass_on) if before else {}

    # --- the end

    async def close(self) -> None:
        """Receive and send nothing more; the calls have ended."""
        for task, wanted in self._ringing.items():
            wanted.invite.respond(503, "Service Unavailable")
            wanted.attempt.refused("draining", 503)
            task.cancel()
        if self._ringing:
            await asyncio.wait(self._ringing)
        self._endpoint.close()

    def _refused(self, reason: Reason, status: int) -> None:
        Attempt(self._pop, "sip").refused(reason, status)

    def _goes_on(self, seen: DatagramCheck) -> bool:
        """Whether a message belongs to a call in progress."""
        ours = seen.to_tag
        return bool(ours) and DialogId(seen.call_id, ours, seen.from_tag) in self._dialogs

    # --- requests

    def _requested(self, request: IncomingRequest) -> None:
        """Carry out a request. Any error is answered and logged."""
        asked = Attempt(self._pop, "sip")
        try:
            self._dispatch(request, asked)
        except Exception as error:
            self._refuse(request, error, asked)

    def _dispatch(self, request: IncomingRequest, asked: Attempt) -> None:
        if request.to_tag:
            call = self._dialogs.get(DialogId.of(request))
            if call is None:
                raise of_no_call()
            check_required(request)
            with owned_by(call.hosted.id):
                return call.handle(request)
        self._endpoint.admit(
            request, CAPABILITIES, partial(self._invite, asked=asked), lambda: self._pop.status == "ok"
        )

    def _refuse(self, request: IncomingRequest, error: Exception, asked: Attempt) -> None:
        """Answer the request with an error and log it; a refused call is counted by the PoP. Raises `error` if it is
        none that a client causes."""
        if isinstance(error, TooShort):  # They are asked for a longer one.
            return request.respond(422, "Session Interval Too Small", (("Min-SE", str(LEAST_S)),))
        answer = refusal(error)
        if answer is None:
            if _begins_call(request):
                asked.refused("error", 500)
            raise error
        if _begins_call(request) and answer.code != MERGED and not isinstance(answer, Challenge):
            asked.refused(answer.reason, answer.code)
        if isinstance(error, TenantFull) and placement_of(request.uri):
            answer = SipRefusal(
                503, "Service Unavailable", answer.why, reason=answer.reason
            )  # The next contact may have room.
        if isinstance(error, Declined) and placement_of(request.uri):
            answer = declined(error, final=True)
        self._endpoint.refuse(request, answer)

    # --- new calls

    def _invite(self, invite: IncomingRequest, who: SipSender, asked: Attempt) -> None:
        known = new_call(invite)
        if known in self._invited:
            raise SipRefusal(MERGED, "Loop Detected", "the same call came by another way")
        negotiated(invite)  # Its session timer may be too short.
        wanted = self._wanted(invite, who, asked)
        with ExitStack() as resources:
            self._invited.add(known)
            resources.callback(self._invited.discard, known)
            if wanted.agent.hooks.asked_ms:
                return self._ring_and_ask(wanted, resources)
            call, sdp = self._prepared(wanted, resources)
            if not self._ring_s:
                return self._accept(wanted, call, sdp, resources)
            call.ring(invite)
            call.on_turned_away = partial(asked.refused, "full", 503)
            kept = resources.pop_all()
            self._rings(wanted, self._ring(wanted, call, sdp, kept), kept)

    def _rings(self, wanted: _Invited, answering: Coroutine[None, None, None], kept: ExitStack) -> None:
        """Have a task answer the call later, unless its caller gives up. `kept` is closed after it."""
        task = asyncio.get_running_loop().create_task(answering)
        # Not in the task: one that is cancelled before its first step runs nothing at all.
        task.add_done_callback(lambda _: kept.close())
        self._ringing[task] = wanted
        task.add_done_callback(self._ringing.pop)
        wanted.invite.on_cancel = task.cancel

    def _wanted(self, invite: IncomingRequest, who: SipSender, asked: Attempt) -> _Invited:
        uri, tokens = invite.uri, self._pop.tokens
        owner = tokens.owner(placement_of(uri)) if tokens else ""
        tenant, agent = placed(self._pop, "sip", uri.user, domain=uri.domain, trunk=who.trunk, owner=owner)
        asked.by(tenant, agent)
        # Who knows one password is not to pass for somebody else.
        origin = Origin(who.user or _caller(invite, trusted=bool(who.trunk)), uri.user, invite.extra())
        logger.debug(
            "a call from %r to %r, by %s at %s", last_three(origin.caller), origin.called, who, invite.source[0]
        )
        return _Invited(invite, asked, who, tenant, agent, origin)

    def _prepared(self, wanted: _Invited, resources: ExitStack) -> tuple[SipCall, str]:
        """The call for an INVITE, and our SDP for it. Raises Refused, SipRefusal, SdpError, SipError,
        UnsupportedBody."""
        resources = resources.enter_context(ExitStack())
        opened = self._opened(wanted, resources)
        settings = self._pop.settings(wanted.agent, wanted.origin)
        return self._made(wanted, opened, settings, resources, time.monotonic()), opened.sdp

    def _opened(self, wanted: _Invited, resources: ExitStack) -> OpenedInvite:
        """What the call for an INVITE needs. Raises as `_prepared`."""
        config, invite = self._pop.config, wanted.invite
        dialog, offer = Dialog(invite, self._stack), invite.sdp
        said = None if offer is None else read_sdp(offer, config.sip)
        slot, doubtful = self._take_slot(wanted, resources)
        host, signalled = self._stack.address[0], invite.source[0]
        # What the SDP of a phone behind a NAT names means nothing here: its sound comes the way of its signalling.
        named = said.remote[0] if said else dialog.host
        local = self._stack.local_for_sound(signalled, named) if dialog.is_proxied else dialog.local
        media, sdp = SipMedia.opened(config.sip, local, host, signalled, said)
        resources.callback(media.close)
        return OpenedInvite(dialog, media, slot, sdp, doubtful)

    def _made(
        self, wanted: _Invited, opened: OpenedInvite, settings: CallSettings, resources: ExitStack, since: float
    ) -> SipCall:
        """The call, whose INVITE came at the monotonic second `since`."""
        dialog = opened.dialog
        call = SipCall(dialog, opened.media, opened.slot, settings, self._pop.config, resources)
        resources.callback(call.close)
        resources.callback(self._dialogs.pop, dialog.id, None)
        self._unacknowledged.add(call, wanted.who, since)
        resources.callback(self._unacknowledged.end, call)
        call.on_acknowledged = self._acknowledged
        return call

    # --- calls of agents with a hook

    def _ring_and_ask(self, wanted: _Invited, resources: ExitStack) -> None:
        """Have the caller's telephone ring, and ask the agent's hook meanwhile. Raises as `_prepared`."""
        inner = resources.enter_context(ExitStack())
        opened = self._opened(wanted, inner)
        rings = RingingCall(wanted.invite, opened, inner, partial(wanted.attempt.refused, "full", 503))
        if opened.doubtful:  # Not overdue before the hook is.
            self._unacknowledged.add(rings, wanted.who, time.monotonic() + wanted.agent.hooks.asked_ms / 1000)
            inner.callback(self._unacknowledged.end, rings)
        rings.ring()
        kept = resources.pop_all()
        self._rings(wanted, self._ask_and_answer(wanted, rings, kept), kept)

    async def _ask_and_answer(self, wanted: _Invited, rings: RingingCall, resources: ExitStack) -> None:
        """Answer the call as the hook says, after the ringing time at the earliest. Cancelled if the caller gives
        up."""
        earliest = time.monotonic() + self._ring_s
        try:
            said = await self._pop.ask_hook(rings.slot, wanted.agent, wanted.origin, "sip")
            await asyncio.sleep(max(0.0, earliest - time.monotonic()))
            settings = self._pop.settings(wanted.agent, wanted.origin, said)
            self._unacknowledged.end(rings)
            # As if it had come now: its ACK may take as long as any other's.
            call = self._made(wanted, rings.opened, settings, rings.resources, time.monotonic() - self._ring_s)
            self._accept(wanted, call, rings.opened.sdp, resources)
        except Exception as error:
            self._refuse_later(wanted, error)

    def _refuse_later(self, wanted: _Invited, error: Exception) -> None:
        """As `_refuse`, for a call that has rung: nobody else answers it where `error` is a fault of ours."""
        try:
            self._refuse(wanted.invite, error, wanted.attempt)
        except Exception:
            logger.exception("an INVITE from %s failed", wanted.invite.source[0])
            wanted.invite.respond(500, "Server Internal Error")

    def _acknowledged(self, call: SipCall) -> None:
        self._unacknowledged.acknowledged(call, time.monotonic())

    def _take_slot(self, wanted: _Invited, resources: ExitStack) -> tuple[CallSlot, bool]:
        """Take a slot for the caller; whether the new call is doubtful, as `OpenedInvite` has it. Done after all other
        checks, since it may end another call. Raises Refused, SipRefusal."""
        who, now = wanted.who, time.monotonic()
        late = self._unacknowledged.in_the_way(who, now, self._busy(who), self._in_progress[who])
        try:
            slot = resources.enter_context(self._admit(wanted, late))
        except PopFull as error:
            # Where a tenant has all its slots, only the end of one of its own calls makes room.
            owner = wanted.tenant.name if isinstance(error, TenantFull) else ""
            late = None if late else self._unacknowledged.overdue(who, now, lambda call: owner in ("", call.slot.owner))
            if not late:
                raise
            slot = resources.enter_context(self._admit(wanted, late))
        self._in_progress[who] += 1
        resources.callback(self._in_progress.subtract, [who])
        doubtful = False
        if late:
            doubtful = self._unacknowledged.gave_way(late, now) == who
            late.give_way()
            text = "%s: not acknowledged yet, and a call of %s takes its place"
            self._endpoint.log(wanted.invite.source[0], text, late.slot.call_id, who)
        return slot, doubtful

    def _admit(self, wanted: _Invited, late: SipCall | RingingCall | None) -> AbstractContextManager[CallSlot]:
        return self._pop.admit(wanted.tenant, wanted.agent, late.slot if late else None)

    def _busy(self, who: SipSender) -> SipRefusal | None:
        if (calls := self._in_progress[who]) < (self._most.get(who) or math.inf):
            return None
        why = f"{who} has as many calls as it may have at a time ({calls})"
        return SipRefusal(486, "Busy Here", why, reason="sender_full")

    async def _ring(self, wanted: _Invited, call: SipCall, sdp: str, resources: ExitStack) -> None:
        """Answer the call after the ringing time. Cancelled if the caller gives up."""
        await asyncio.sleep(self._ring_s)
        try:
            self._accept(wanted, call, sdp, resources)
        except Exception as error:
            self._refuse_later(wanted, error)

    def _accept(self, wanted: _Invited, call: SipCall, sdp: str, resources: ExitStack) -> None:
        call_id = self._calls.adopt(call, Caller(wanted.tenant), resources)
        if self._pop.tokens and (placement_id := placement_of(wanted.invite.uri)):
            self._pop.tokens.came(placement_id)
        self._dialogs[call.dialog.id] = call
        try:
            call.accept(wanted.invite, sdp, call_id)
        except BaseException:
            call.give_up()
            raise


def _most_calls(sip: SipConfig) -> dict[SipSender, int | None]:
    """The calls at a time of each sender."""
    trunks = {SipSender(trunk=one.name): one.calls for one in sip.trunks}
    return trunks | {SipSender(user=one.name): one.calls for one in sip.users}


def server_of(pop: PopApi, calls: Calls) -> SipServer | None:
    """The PoP's SIP server, if `sip.port` is set; it does not listen yet. Raises ConfigError."""
    if not pop.config.sip.port:
        return None
    check_sip(pop.config.sip, pop.config.http)
    return SipServer(pop, calls)


@asynccontextmanager
async def listening(server: SipServer | None, taken_over: socket.socket | None = None) -> AsyncIterator[None]:
    """Within the context the server has its port, and takes calls once it resumes; None: there are none. `taken_over`:
    as in `SipServer.open`. Raises ConfigError."""
    if not server:
        yield
        return
    server.open(taken_over)
    try:
        yield
    finally:
        await server.close()


def _begins_call(request: IncomingRequest) -> bool:
    """Whether a request begins a call, rather than belonging to one that goes on."""
    if request.method != "INVITE":
        return False
    with suppress(SipError):
        return not request.to_tag
    return True


def _caller(invite: IncomingRequest, *, trusted: bool) -> str:
    """The calling number: from senders that may assert it, by RFC 3325. Raises SipError."""
    for asserted in invite.headers("p-asserted-identity") if trusted else ():
        with suppress(SipError):
            if user := Address.of(asserted).user:
                return user
    return Address.of(invite.header("from")).user

"""A call by SIP, from its accepted INVITE on: what each request within its dialog does, and how it ends."""

import asyncio
import logging
import re
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from voicepipe.base.errors import TransferFailed
from voicepipe.base.tasks import TaskGroup
from voicepipe.call_api import CallSlot
from voicepipe.call_settings import CallSettings
from voicepipe.config import Config
from voicepipe.conversation.own_tools import sip_uri
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.sip.bodies import ACCEPT, UnsupportedBody
from voicepipe.ingress.sip.dialog import Dialog, SessionTimer, negotiated
from voicepipe.ingress.sip.header_text import SipError
from voicepipe.ingress.sip.info_keys import KeyPaths, MessagePath, held_s, key_of
from voicepipe.ingress.sip.message import IncomingResponse, SipMessage, printable
from voicepipe.ingress.sip.sip_access import SipRefusal
from voicepipe.ingress.sip.sip_media import SipMedia
from voicepipe.ingress.sip.stack import IncomingRequest
from voicepipe.rtp.clock import MediaClock
from voicepipe.rtp.sdp_text import SdpError

logger = logging.getLogger(__name__)

BYE_S = 2.0
"""Seconds that a far end has to answer our BYE, which is sent again meanwhile; however it does, the call is over."""
ACK_S = 10.0
"""Seconds that a caller has to acknowledge our answer, which is sent five times meanwhile. RFC 3261 says 32 s; but the
sender of a forged INVITE never does, and holds a slot."""
LOOK_S = 1.0
"""Seconds between looks at whether the caller is still there."""
_STATUS = re.compile(r"^SIP/2\.0 (\d{3}) ?(.*)$", re.MULTILINE)

_REFER_ID = re.compile(r";\s*id\s*=\s*([0-9]{1,10})", re.IGNORECASE)


class SipCall:
    """A call by SIP: `accept` its INVITE, then `run` it. The media are open. `resources` is closed when the call is
    over."""

    def __init__(
        self,
        dialog: Dialog,
        media: SipMedia,
        slot: CallSlot,
        settings: CallSettings,
        config: Config,
        resources: ExitStack,
    ) -> None:
        self.dialog = dialog
        self.slot = slot
        self._media = media
        self._resources = resources
        self._silent_s = config.sip.silent_ms / 1000
        self._timer: SessionTimer | None = None
        self._refreshed = 0.0
        self._ack_over = asyncio.Event()
        """The INVITE's answer was acknowledged, or never will be."""
        self.on_acknowledged: Callable[[SipCall], object] | None = None
        """Called when our answer to an INVITE is acknowledged: the one that began the call, or a later one."""
        self.on_turned_away: Callable[[], object] | None = None
        """Called when the call, while it rings, gives way to another call."""
        self._gone = False
        """The far end has hung up."""
        self._answered = False
        self._invite: IncomingRequest | None = None
        """The INVITE, until its answer is acknowledged."""
        self._referred: asyncio.Future[None] | None = None
        """The outcome of a transfer in progress."""
        self._refer_seq = 0
        """The CSeq of its REFER."""
        self._taken = False
        """The far end has accepted to make the transfer."""
        media.line.refer = self._refer
        self.hosted = HostedCall(media.line, slot, settings, config.limits)
        self._key_paths = KeyPaths()
        media.line.on_key = lambda key: self._pressed(key, "rtp")

    # --- the INVITE

    def ring(self, invite: IncomingRequest) -> None:
        """Send 180: the call will be answered later, unless its caller gives up."""
        self._invite = invite
        invite.respond(180, "Ringing", (("Contact", self.dialog.contact),), tag=self.dialog.id.ours)

    def accept(self, invite: IncomingRequest, answer: str, call_id: str) -> None:
        """Answer the INVITE: 200 with our SDP, `answer` to theirs or an offer where they made none. Raises TooShort."""
        self._timer, self._refreshed = negotiated(invite), time.monotonic()
        self._answered, self._invite = True, invite
        self._ok(invite, answer, (("X-Voicepipe-Call-Id", call_id),))

    @property
    def awaits_ack(self) -> bool:
        """The answer is not acknowledged yet, and still may be."""
        return not self._ack_over.is_set()

    def give_way(self) -> None:
        """End the call, whose answer is not acknowledged, to give its slot to another caller at once: the call's task,
        which closes `resources` as well, runs later."""
        try:
            if self._answered:
                self._unacknowledged()
            else:
                self._turned_away()
        finally:
            self._resources.close()

    def _unacknowledged(self) -> None:
        """End the call at once, without waiting for the answer to our BYE, or for whether it can be sent."""
        self.give_up()
        try:
            if self._invite:
                self._invite.forget()
            self.dialog.send("BYE", lambda response: None, doubtful=True)
        except Exception:
            logger.exception("%s: its BYE cannot be sent", self.hosted.id)

    def _turned_away(self) -> None:
        """End a call that still rings."""
        self.give_up()
        if not self._invite:
            return
        if self.on_turned_away:
            self.on_turned_away()
        try:
            self._invite.respond(503, "Service Unavailable")
        except Exception:
            logger.exception("%s: its caller cannot be told that it is over", self.hosted.id)
        finally:
            self._invite.cancelled()

    def give_up(self) -> None:
        """The call could not be answered, and is not to be."""
        self._gone = True
        self._ack_over.set()
        self.hosted.end("error")

    def _ok(self, request: IncomingRequest, sdp: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        timer = self._timer.headers if self._timer else ()
        everything = (("Contact", self.dialog.contact), ("Allow", ALLOW), ("Supported", "timer"), *timer, *headers)
        invite = request.method == "INVITE"
        offered = invite and request.sdp is None
        request.respond(
            200, "OK", everything, sdp, tag=self.dialog.id.ours,
            on_ack=(lambda ack: self._acknowledged(ack if offered else None, request.source[0])) if invite else None,
            on_lost=self._lost if invite else None,
        )  # fmt: skip

    def _acknowledged(self, answered: SipMessage | None, signalled: str) -> None:
        """The ACK has come. `answered`: it answers an offer of ours, for which an INVITE from `signalled` has asked."""
        self._ack_over.set()
        self._invite = None
        if self.on_acknowledged:
            self.on_acknowledged(self)
        if answered is not None:
            try:
                self._media.accept(answered.sdp or "", signalled)
            except (SdpError, SipError, UnsupportedBody) as error:
                logger.warning("%s: its ACK's answer cannot be used: %s", self.hosted.id, error)
                self.hosted.end("error")

    def _warn_unacknowledged(self) -> None:
        logger.warning("%s: the far end did not acknowledge our answer: hanging up", self.hosted.id)

    def _lost(self) -> None:
        self._warn_unacknowledged()
        self._ack_over.set()
        self.hosted.end("caller")

    # --- requests within the dialog

    def handle(self, request: IncomingRequest) -> None:
        """Carry out a request of the far end within the dialog, and answer it. Raises SipRefusal, SdpError, SipError,
        UnsupportedBody, TooShort."""
        if not self.dialog.in_order(request):
            raise SipRefusal(500, "Server Internal Error", f"a {request.method} came out of order")
        if handler := HANDLERS.get(request.method):
            return handler(self, request)
        raise SipRefusal(405, "Method Not Allowed", f"{request.method} is not known within a call", (("Allow", ALLOW),))

    def _bye(self, request: IncomingRequest) -> None:
        request.respond(200, "OK")
        self._gone = True
        self._ack_over.set()
        if self._taken and self._referred and not self._referred.done():  # It goes out of the transfer's way.
            self._referred.set_result(None)
        else:
            self.hosted.end("caller")

    def _change(self, request: IncomingRequest) -> None:
        """Carry out a re-INVITE or UPDATE: hold, another codec, another address, or only a refresh. An error in any
        part of it leaves everything as it was."""
        target, timer, sdp = self.dialog.target(request), negotiated(request), ""
        if request.sdp is not None:
            sdp = self._media.answer(request.sdp, request.source[0])
        elif request.method == "INVITE":
            sdp = self._media.offer()
        self.dialog.moved(target, request.source)
        self._timer, self._refreshed = timer, time.monotonic()
        self._ok(request, sdp)

    def _info(self, request: IncomingRequest) -> None:
        """Carry out an INFO: a key, as old gateways send it, or nothing, to check whether the call goes on."""
        key = key_of(request.content_type, request.body)
        request.respond(200, "OK")
        if key:
            self._pressed(key, "info", held_s(request.body))

    def _pressed(self, key: str, path: MessagePath, held_s: float = 0.0) -> None:
        if self._key_paths.is_new_press(key, path, time.monotonic(), held_s):
            self.hosted.press(key)
        else:
            logger.debug("%s: a key came by %s as well: it is one press", self.hosted.id, path)

    def _options(self, request: IncomingRequest) -> None:
        request.respond(200, "OK", CAPABILITIES)

    # --- transfers

    async def _refer(self, target: str) -> None:
        """As `Line.transfer`, by REFER (RFC 3515): the far end makes the new call and reports how that goes."""
        if self.dialog.allows and "refer" not in self.dialog.allows:
            raise TransferFailed("this caller's telephone system does not take transfers")
        to = sip_uri(target, self.dialog.domain)
        headers = ("Refer-To", f"<{to}>"), ("Referred-By", self.dialog.contact)
        self._referred, self._taken = asyncio.get_running_loop().create_future(), False
        self._refer_seq = self.dialog.send("REFER", self._refer_answered, headers)
        try:
            await self._referred
        finally:
            self._referred = None

    def _refer_answered(self, response: IncomingResponse) -> None:
        self._taken = 200 <= response.code < 300
        if response.code >= 300:
            self._transferred(response.code, response.reason)

    def _notify(self, request: IncomingRequest) -> None:
        if not request.header("event").lower().startswith("refer"):
            raise SipRefusal(489, "Bad Event", f"a NOTIFY of {request.header('event')!r}")
        request.respond(200, "OK")
        # What became of an attempt that was given up before says nothing of this one (RFC 3515, 2.4.6).
        about = _REFER_ID.search(request.header("event"))
        if about and int(about[1]) != self._refer_seq:
            return
        if status := _STATUS.search(request.body):
            self._transferred(int(status[1]), status[2].strip())

    def _transferred(self, code: int, reason: str) -> None:
        if self._referred is None or self._referred.done() or code < 200:
            return
        if code < 300:
            self._referred.set_result(None)
        else:
            why = f"the other side could not be reached: {code} {printable(reason)}"
            self._referred.set_exception(TransferFailed(why))

    # --- its life

    async def run(self, clock: MediaClock) -> None:
        """Returns when either side has hung up. A failure ends this call only, and is logged."""
        try:
            # Not before its ACK: an offer of ours is answered there, and whoever sent the INVITE in another's name does
            # not get what it acknowledges, so that nothing is sent to whom they please.
            with suppress(TimeoutError):
                async with asyncio.timeout(ACK_S):
                    await self._ack_over.wait()
            if self.awaits_ack:
                self._warn_unacknowledged()
                self._unacknowledged()
            if not self.hosted.hung_up.is_set():
                await self._converse(clock)
            await self._hang_up()
        except Exception:
            logger.exception("%s: failed", self.hosted.id)
        finally:
            self.close()
        logger.debug("%s: %s, %s", self.hosted.id, self._media.line.media.statistics(), self._media.refused())

    async def _converse(self, clock: MediaClock) -> None:
        self._media.line.media.begin()
        stop_ticking = clock.add(self._media.line.tick)
        try:
            async with TaskGroup() as tasks:
                watch = tasks.create_task(self._watch())
                await self.hosted.run()
                watch.cancel()
        finally:
            stop_ticking()

    def close(self) -> None:
        """Release all resources. Safe to call twice."""
        self.hosted.close()
        self._media.close()

    async def _hang_up(self) -> None:
        if self._gone:
            return
        self._gone = True
        answered = asyncio.Event()
        self.dialog.send("BYE", lambda response: answered.set())
        with suppress(TimeoutError):
            async with asyncio.timeout(BYE_S):
                await answered.wait()

    async def _watch(self) -> None:
        """Hang up where no sound has come for too long: a caller whose network is gone sends no BYE."""
        while True:
            await asyncio.sleep(LOOK_S)
            now = time.monotonic()
            if self._media.line.media.silent_s(now) > self._silent_s:
                silent_s, refused = self._silent_s, self._media.refused()
                logger.warning("%s: no sound for %g s (%s): hanging up", self.hosted.id, silent_s, refused)
                self.hosted.end("caller")
            elif self._timer and now > self._refreshed + self._timer.over_s:
                logger.warning("%s: the far end did not refresh the session: hanging up", self.hosted.id)
                self.hosted.end("caller")


HANDLERS: dict[str, Callable[[SipCall, IncomingRequest], None]] = {
    "BYE": SipCall._bye,
    "INVITE": SipCall._change,
    "UPDATE": SipCall._change,
    "INFO": SipCall._info,
    "NOTIFY": SipCall._notify,
    "OPTIONS": SipCall._options,
}
ALLOW = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, NOTIFY"
CAPABILITIES = (("Allow", ALLOW), ("Accept", ACCEPT), ("Accept-Encoding", "identity"), ("Supported", "timer"))

"""Calls from Telnyx: a Call Control application's webhook, what we have Telnyx do, and the media stream.

A call that is answered is streamed by a command of its own: only that one takes a token and a sampling rate.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

import msgspec
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from voicepipe.agent import Agent
from voicepipe.base.errors import KeysFailed, Refused, TransferFailed
from voicepipe.base.foreign_json import decode
from voicepipe.call_api import NO_ANSWER, Grant, HookAnswer, PopApi, Tenant
from voicepipe.call_settings import Origin
from voicepipe.config.phone_config import TelnyxConfig
from voicepipe.conversation.own_tools import number
from voicepipe.ingress.access import Gone
from voicepipe.ingress.asgi_scope import pays
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.telephony import signatures
from voicepipe.ingress.telephony.dialects import TELNYX, SoundFormat, StreamStart
from voicepipe.ingress.telephony.hooked_calls import HookedCalls
from voicepipe.ingress.telephony.provider_access import ProviderAccess, cause
from voicepipe.ingress.telephony.signatures import Forbidden, OneTimeTokens
from voicepipe.ingress.telephony.stream import ExpectedStream, StreamedCall, StreamEndpoint
from voicepipe.ingress.telephony.telnyx_api import (
    CAUSES,
    VOICE,
    CommandFailed,
    TelnyxApi,
    TelnyxPayload,
    TelnyxWebhook,
    public_key,
)
from voicepipe.ingress.telephony.telnyx_hangups import HangUps, PopRun, TransferLegs

logger = logging.getLogger(__name__)

STREAM = "/telnyx/stream"
STREAMS, RINGING = "telnyx streams", "telnyx ringing"
"""What is handed over (`TakeoverParts`): tokens of streams that are expected, and calls that are to be answered."""
ASKED_MS = 12_000
"""For so long an agent's hook may take while the caller hears it ring."""
ANSWER_S = 60.0
"""Seconds between our command to answer a call and Telnyx's report that it is answered."""
NETWORK = "voicepipe_network"
"""Name of a stream's parameter with the caller's network (`Grant.network`), which comes back with the stream."""
OWNER = "voicepipe_tenant"
"""Name of a stream's parameter with the tenant for whom a directory has placed the call, which comes back likewise."""
GOES_ON = ("call.bridged", "call.hangup", "streaming.failed")
"""Events of calls that are the business of the process which had them answered, as long as that lives."""
SOUNDS = {"PCMU": SoundFormat("pcmu", 8000), "PCMA": SoundFormat("pcma", 8000), "L16": SoundFormat("l16", 16_000)}


@dataclass(frozen=True, slots=True)
class _Ringing:
    """A call that Telnyx was commanded to answer, and the agent that was asked for."""

    until: float
    """The monotonic second until which it is remembered."""
    agent: str
    placed: Grant | None = None
    """The token with which a directory has sent the call here."""
    said: HookAnswer | None = None
    """As in `StreamedCall`."""


class Telnyx:
    """Telnyx as a `StreamProvider`, with its webhook."""

    dialect = TELNYX

    def __init__(self, pop: PopApi, calls: Calls, api: TelnyxApi) -> None:
        self._pop = pop
        self._access = ProviderAccess(pop, self.dialect.kind)
        self._hooked = HookedCalls(pop, self.dialect.kind)
        self._asking = set[asyncio.Task[None]]()
        self._streams = StreamEndpoint(pop, calls, self, self._access, self._hooked)
        self.api, self._hangups = api, HangUps(api)
        self._tokens = OneTimeTokens[ExpectedStream](time.monotonic, partial(pop.takeover_parts.add, STREAMS))
        streams = dict[str, tuple[float, ExpectedStream]]
        pop.takeover_parts.join(STREAMS, streams, self._tokens.handed_over, self._tokens.take_over, adds=True)
        self._ringing: dict[str, _Ringing] = {}
        ringing = dict[str, _Ringing]
        pop.takeover_parts.join(RINGING, ringing, lambda: self._ringing, self._take_over, adds=True)
        self._boot = PopRun(pop.config, calls.boot)
        self._legs = TransferLegs(self._boot.mark)
        self._taken_up: set[str] = set()
        """Calls that an earlier run of this PoP has had answered, and this one streams."""
        self._looked: set[str] = set()
        """Applications that were already searched for calls of an earlier run."""

    @property
    def _config(self) -> TelnyxConfig:
        return self._pop.config.telnyx

    def routes(self) -> list[BaseRoute]:
        return [Route(VOICE, self.voice, methods=["POST"]), WebSocketRoute(STREAM, self._streams.websocket)]

    async def voice(self, request: Request) -> Response:
        """POST: an event of a call. Always 200 for what is signed, or Telnyx would send it again."""
        forwarded = self._access.forwarded(request)
        data = await self._access.body(request)
        try:
            if not forwarded:
                signatures.telnyx(public_key(self._config), data, request.headers, time.time())
        except Forbidden as error:
            return self._access.forbid(request, "a webhook", error)
        pays(request)
        try:
            said = decode(data, TelnyxWebhook).data
        except msgspec.DecodeError as error:
            logger.warning("telnyx: a webhook is not about a call and is ignored (%s)", error)
            return Response()
        asked, before = request.query_params.get("agent", ""), self._pop.predecessor
        if before and said.event_type in GOES_ON and self._boot.is_dead(said.payload.client_state):
            return await before.ask(request, data)
        if forwarded and said.event_type == "call.initiated":
            return await self._assigned(said.payload, asked, forwarded)
        if handle := _HANDLERS.get(said.event_type):
            try:
                await handle(self, said.payload, asked)
            except CommandFailed as error:
                logger.error("telnyx: %s: %s", said.payload.call_control_id, error)
        application = str(said.payload.connection_id or "")
        # What goes on in another process is not left behind.
        elsewhere = before or self._pop.takeover_parts.is_handed_over
        if not application.isalnum() or application in self._looked or elsewhere:
            return Response()
        self._looked.add(application)
        return Response(background=BackgroundTask(self._look, application))

    async def _look(self, application: str) -> None:
        try:
            await self.end_left_behind(application)
        except CommandFailed as error:
            logger.error("telnyx: calls that an earlier run has left behind are not hung up: %s", error)
            self._looked.discard(application)

    async def close(self) -> None:
        """Stop. A call that is not hung up by now is left as it is."""
        await self._hooked.close()
        if self._asking:
            await asyncio.wait(self._asking)
        await self._hangups.close()

    async def end_left_behind(self, application: str) -> None:
        """Hang up the calls that an earlier run of this PoP has left in progress when it died. Raises CommandFailed."""
        for call_id in self._boot.left_behind(await self.api.active_calls(application)):
            if call_id in self._taken_up:  # By now: each command takes a while.
                continue
            logger.warning("telnyx: %s was left behind by an earlier run of this PoP: hanging up", call_id)
            await self.api.command(call_id, "hangup")

    async def _initiated(self, call: TelnyxPayload, asked: str) -> None:
        if call.direction != "incoming":
            return  # To whom a call is being transferred.
        if await self._is_repeated(call):
            return
        try:
            tenant, agent = self._access.check(call.called or "", asked)
            if agent.hooks.asked_ms:
                return self._ask(call, asked, tenant, agent)
        except Exception as error:
            await self._reject(call, error)
            if not isinstance(error, Refused):
                raise
        else:
            await self._answer(call, asked)

    async def _is_repeated(self, call: TelnyxPayload, **more: str) -> bool:
        """Whether its webhook has come before: Telnyx may send each again. Then the call has its place already, and
        gets no other answer. Raises CommandFailed."""
        ringing = self._ringing.get(call.call_control_id)
        if ringing and ringing.until > time.monotonic():
            await self._order_answer(call, **more)  # The first order may have failed.
            return True
        return call.call_control_id in self._hooked

    async def _reject(self, call: TelnyxPayload, error: Exception) -> None:
        """Raises CommandFailed."""
        await self.api.command(call.call_control_id, "reject", cause=CAUSES[cause(error)])

    async def _assigned(self, call: TelnyxPayload, asked: str, placed: Grant) -> Response:
        """The webhook's call was sent here by a directory. Raises Refused: the directory is to choose another PoP."""
        query = f"?{urlencode({'agent': asked})}" if asked else ""
        here = f"{self._public}{VOICE}{query}"
        try:
            if await self._is_repeated(call, webhook_url=here):
                return Response()
            tenant, agent = self._access.check(call.called or "", asked, placed.tenant)
            if agent.hooks.asked_ms:  # The directory is not kept waiting: the call is ours now.
                self._ask(call, asked, tenant, agent, placed, webhook_url=here)
                return Response()
            await self._answer(call, asked, placed, webhook_url=here)
        except CommandFailed as error:
            logger.error("telnyx: %s: %s", call.call_control_id, error)
            return Response(status_code=502)
        return Response()

    def _ask(
        self, call: TelnyxPayload, asked: str, tenant: Tenant, agent: Agent, placed: Grant | None = None, **more: str
    ) -> None:
        """Ask the agent's hook, and then have Telnyx answer or reject the call; Telnyx waits for no webhook's answer so
        long. Raises Refused: there is no slot any more."""
        origin = Origin(call.caller or "", call.called or "", call.sip_headers)
        with self._access.attempted(tenant, agent):
            asking = self._hooked.ask(call.call_control_id, tenant, agent, origin, ASKED_MS)

        async def decide() -> None:
            try:
                with self._access.attempted(tenant, agent):
                    said = await asking
            except Gone:
                return
            except Exception as error:
                if not isinstance(error, Refused):
                    logger.exception("telnyx: %s is rejected, since its hook could not be asked", call.call_control_id)
                return await self._reject(call, error)
            await self._answer(call, asked, placed, said, **more)

        async def carry_out() -> None:
            try:
                await decide()
            except CommandFailed as error:
                self._hooked.give_up(call.call_control_id)
                logger.error("telnyx: %s: %s", call.call_control_id, error)

        self._asking.add(task := asyncio.create_task(carry_out()))
        task.add_done_callback(self._asking.discard)

    async def _answer(
        self,
        call: TelnyxPayload,
        asked: str,
        placed: Grant | None = None,
        said: HookAnswer = NO_ANSWER,
        **more: str,
    ) -> None:
        """Have Telnyx answer a call, of which its agent's hook has said this. Raises CommandFailed."""
        now = time.monotonic()
        self._ringing = {known: ringing for known, ringing in self._ringing.items() if ringing.until > now}
        ringing = self._ringing[call.call_control_id] = _Ringing(now + ANSWER_S, asked, placed, said)
        self._pop.takeover_parts.add(RINGING, {call.call_control_id: ringing})
        await self._order_answer(call, **more)

    async def _order_answer(self, call: TelnyxPayload, **more: str) -> None:
        """By the id Telnyx knows the order again, be it of another PoP: a call is answered once. Raises
        CommandFailed."""
        await self.api.command(call.call_control_id, "answer", command_id="voicepipe-answer",
                                client_state=self._boot.state, **more)  # fmt: skip

    def _take_over(self, handed: dict[str, _Ringing]) -> None:
        self._ringing |= handed

    @property
    def _public(self) -> str:
        return self._pop.config.telephony.public_url.rstrip("/")

    async def _answered(self, call: TelnyxPayload, asked: str) -> None:
        ringing = self._ringing.pop(call.call_control_id, None)
        if self._boot.is_dead(call.client_state):  # An earlier run has ordered it, and handed it over or died.
            self._taken_up.add(call.call_control_id)
            ringing = ringing or _Ringing(0.0, asked)
        if ringing is None:
            return
        self._access.came(ringing.placed)
        sound = SOUNDS[self._config.codec]
        said = {"agent": ringing.agent}
        if ringing.placed:
            said |= {NETWORK: ringing.placed.network, OWNER: ringing.placed.tenant}
        custom = [{"name": name, "value": value} for name, value in said.items() if value]
        parameters = {"custom_parameters": custom} if custom else {}
        try:
            await self.api.command(
                call.call_control_id,
                "streaming_start",
                command_id="voicepipe-stream",
                client_state=self._boot.state,
                stream_url="ws" + self._public.removeprefix("http") + STREAM,
                stream_auth_token=self._tokens.make(ExpectedStream(call.call_control_id, ringing.said)),
                stream_track="inbound_track",
                stream_codec=self._config.codec,
                stream_bidirectional_mode="rtp",
                stream_bidirectional_codec=self._config.codec,
                stream_bidirectional_sampling_rate=sound.rate,
                **parameters,
            )
        except CommandFailed:
            await self._hangups.hang_up(call.call_control_id)
            raise

    async def _bridged(self, call: TelnyxPayload, asked: str) -> None:
        self._legs.bridged(call.call_control_id, call.client_state or "")

    async def _hung_up(self, call: TelnyxPayload, asked: str) -> None:
        self._ringing.pop(call.call_control_id, None)
        self._hooked.give_up(call.call_control_id)
        self._taken_up.discard(call.call_control_id)
        self._hangups.over(call.call_control_id)
        if self._boot.is_dead(call.client_state):  # Who was put through to them is alone now.
            self._looked.clear()
        if left := self._legs.hung_up(call.call_control_id, call.client_state or "", call.hangup_cause or ""):
            await self._hangups.hang_up(left)

    async def _not_streamed(self, call: TelnyxPayload, asked: str) -> None:
        logger.error("telnyx: %s cannot be streamed to this server: %s", call.call_control_id,
                     call.failure_reason or "Telnyx does not say why")  # fmt: skip
        await self._hangups.hang_up(call.call_control_id)

    # StreamProvider

    def check(self, socket: WebSocket) -> ExpectedStream:
        return self._tokens.take(socket.headers.get(signatures.TELNYX_TOKEN, ""))

    def admit(self, start: StreamStart, expected: ExpectedStream) -> StreamedCall:
        if start.call_id != expected.call_id:
            raise Forbidden("it is of another call than its token")
        rest = dict(start.parameters)
        agent, network, owner = (rest.pop(name, "") for name in ("agent", NETWORK, OWNER))
        origin = Origin(start.caller, start.called, rest)
        return StreamedCall(origin, agent, SOUNDS[self._config.codec], network=network, owner=owner,
                            said=expected.said)  # fmt: skip

    async def transfer(self, start: StreamStart, target: str, ring_s: int) -> None:
        """Returns once the call to the target was answered. Raises TransferFailed."""
        to, leg = number(target) or target, self._legs.begin(start.call_id)
        try:
            await self.api.command(
                start.call_id, "transfer", to=to, timeout_secs=ring_s, target_leg_client_state=leg.state
            )
        except CommandFailed as error:
            self._legs.forget(leg)
            # It may name our key's variable and Telnyx's address; what is raised is read by the model, and by clients.
            logger.error("telnyx: %s is not transferred: %s", start.call_id, error)
            raise TransferFailed("the telephone network refuses it") from error
        else:
            await leg.taken
        finally:
            leg.taken.cancel()  # It was given up, if it is not done.

    async def send_keys(self, start: StreamStart, keys: str) -> None:
        """By https://developers.telnyx.com/api-reference/call-commands/send-dtmf, which writes pauses as `PAUSES` does.
        Raises KeysFailed."""
        try:
            await self.api.command(start.call_id, "send_dtmf", digits=keys)
        except CommandFailed as error:
            logger.error("telnyx: %s is sent no keys: %s", start.call_id, error)
            raise KeysFailed("the telephone network refuses them") from error

    async def ended(self, call_id: str, reason: str) -> None:
        """Telnyx holds a call that is no longer streamed, whichever side has ended the stream: it must be hung up by a
        command. A call that is transferred ends with the target's."""
        if self._legs.keep(call_id, transferred=reason == "transferred"):
            return
        await self._hangups.hang_up(call_id)


_HANDLERS: dict[str, Callable[[Telnyx, TelnyxPayload, str], Awaitable[None]]] = {
    "call.initiated": Telnyx._initiated,
    "call.answered": Telnyx._answered,
    "call.bridged": Telnyx._bridged,
    "call.hangup": Telnyx._hung_up,
    "streaming.failed": Telnyx._not_streamed,
}

"""Calls from Telnyx: a Call Control application's webhook, what we have Telnyx do, and the media stream.

A call that is answered is streamed by a command of its own: only that one takes a token and a sampling rate.
"""

import asyncio
import logging
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from voicepipe.agent import Origin
from voicepipe.call_api import PopApi
from voicepipe.errors import ConfigError, TransferFailed
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.doors import body
from voicepipe.ingress.telephony import signatures
from voicepipe.ingress.telephony.dialects import TELNYX, Sound, Start
from voicepipe.ingress.telephony.door import Door
from voicepipe.ingress.telephony.signatures import Forbidden, Tokens
from voicepipe.ingress.telephony.stream import Arrival, Streams
from voicepipe.ingress.telephony.telnyx_api import CommandFailed, TelnyxApi
from voicepipe.phone_config import TelnyxConfig
from voicepipe.turn.targets import number

logger = logging.getLogger(__name__)

VOICE, STREAM = "/telnyx/voice", "/telnyx/stream"
RING_S = 30
"""So long somebody to whom a call is transferred may let it ring."""
ANSWER_S = 60.0
"""Between our order to answer a call and the word that it is answered."""
CAUSES = {"busy": "USER_BUSY", "rejected": "CALL_REJECTED"}
SOUNDS = {"PCMU": Sound("pcmu", 8000), "PCMA": Sound("pcma", 8000), "L16": Sound("l16", 16_000)}


class Payload(msgspec.Struct, frozen=True):
    """What a webhook says about a call."""

    call_control_id: str = ""
    direction: str | None = None
    caller: str | None = msgspec.field(name="from", default=None)
    called: str | None = msgspec.field(name="to", default=None)
    client_state: str | None = None
    hangup_cause: str | None = None
    failure_reason: str | None = None


class _Data(msgspec.Struct, frozen=True):
    event_type: str
    payload: Payload


class _Webhook(msgspec.Struct, frozen=True):
    data: _Data


@dataclass(frozen=True, slots=True)
class _Ringing:
    """A call that we have told Telnyx to answer, and the agent that was asked for."""

    until: float
    agent: str


class Telnyx:
    """Implements `stream.Provider`. Raises ConfigError: the public key is none."""

    dialect = TELNYX

    def __init__(self, pop: PopApi, calls: Calls, api: TelnyxApi) -> None:
        config = pop.config.telnyx
        try:
            self._key = signatures.public_key(config.public_key)
        except ValueError as error:
            raise ConfigError(f"telnyx.public_key: {error}") from None
        self._pop = pop
        self._door = Door(pop, self.dialect.kind)
        self._streams = Streams(pop, calls, self, self._door)
        self._api = api
        self._tokens = Tokens[str](time.monotonic)
        self._ringing: dict[str, _Ringing] = {}
        self._transfers: dict[str, asyncio.Future[None]] = {}
        """By call: done once somebody else has taken it."""
        self._put_through: dict[str, str] = {}
        """Calls that somebody has taken, or was being asked to when their stream ended; by the state of that leg."""

    @property
    def _config(self) -> TelnyxConfig:
        return self._pop.config.telnyx

    def routes(self) -> list[BaseRoute]:
        return [Route(VOICE, self.voice, methods=["POST"]), WebSocketRoute(STREAM, self._streams.websocket)]

    async def voice(self, request: Request) -> Response:
        """POST: something has happened to a call. Always 200 for what is signed, or Telnyx would say it again."""
        data = await body(request)
        try:
            signatures.telnyx(self._key, data, request.headers, time.time())
        except Forbidden as error:
            return self._door.forbid(request, "a webhook", error)
        try:
            said = msgspec.json.decode(data, type=_Webhook).data
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            logger.warning("telnyx: a webhook is not about a call and is ignored (%s)", error)
            return Response()
        if told := _TOLD.get(said.event_type):
            try:
                await told(self, said.payload, request.query_params.get("agent", ""))
            except CommandFailed as error:
                logger.error("telnyx: %s: %s", said.payload.call_control_id, error)
        return Response()

    async def _initiated(self, call: Payload, asked: str) -> None:
        if call.direction != "incoming":
            return  # To whom a call is being transferred.
        if reason := self._door.turns_down(call.called or "", asked):
            return await self._api.command(call.call_control_id, "reject", cause=CAUSES[reason])
        now = time.monotonic()
        self._ringing = {known: ringing for known, ringing in self._ringing.items() if ringing.until > now}
        self._ringing[call.call_control_id] = _Ringing(now + ANSWER_S, asked)
        await self._api.command(call.call_control_id, "answer", command_id="voicepipe-answer")

    async def _answered(self, call: Payload, asked: str) -> None:
        ringing = self._ringing.pop(call.call_control_id, None)
        if ringing is None:
            return
        sound = SOUNDS[self._config.codec]
        public = self._pop.config.telephony.public_url.rstrip("/")
        parameters = {"custom_parameters": [{"name": "agent", "value": ringing.agent}]} if ringing.agent else {}
        try:
            await self._api.command(
                call.call_control_id,
                "streaming_start",
                command_id="voicepipe-stream",
                stream_url="ws" + public.removeprefix("http") + STREAM,
                stream_auth_token=self._tokens.make(call.call_control_id),
                stream_track="inbound_track",
                stream_codec=self._config.codec,
                stream_bidirectional_mode="rtp",
                stream_bidirectional_codec=self._config.codec,
                stream_bidirectional_sampling_rate=sound.rate,
                **parameters,
            )
        except CommandFailed:
            await self._api.command(call.call_control_id, "hangup")
            raise

    async def _bridged(self, call: Payload, asked: str) -> None:
        transfer = self._transfers.get(call.call_control_id)
        if transfer and not transfer.done():
            transfer.set_result(None)

    async def _hung_up(self, call: Payload, asked: str) -> None:
        self._ringing.pop(call.call_control_id, None)
        self._put_through.pop(_state(call.call_control_id), None)
        if left := self._put_through.pop(call.client_state or "", ""):
            return await self._api.command(left, "hangup")
        for call_id, transfer in self._transfers.items():
            if not transfer.done() and call.client_state == _state(call_id):
                transfer.set_exception(
                    TransferFailed(f"nobody took the call ({call.hangup_cause or 'no reason given'})")
                )

    async def _not_streamed(self, call: Payload, asked: str) -> None:
        logger.error("telnyx: %s cannot be streamed to this server: %s", call.call_control_id,
                     call.failure_reason or "Telnyx does not say why")  # fmt: skip
        await self._api.command(call.call_control_id, "hangup")

    # stream.Provider

    def check(self, socket: WebSocket) -> str:
        return self._tokens.take(socket.headers.get(signatures.TELNYX_TOKEN, ""))

    def admit(self, start: Start, expected: str) -> Arrival:
        if start.call_id != expected:
            raise Forbidden("it is of another call than its token")
        rest = dict(start.parameters)
        agent = rest.pop("agent", "")
        return Arrival(Origin(start.caller, start.called, rest), agent)

    def sound(self, start: Start) -> Sound:
        return SOUNDS[self._config.codec]

    async def transfer(self, start: Start, target: str) -> None:
        """Returns once somebody has taken the call. Raises TransferFailed."""
        to = number(target) or target
        taken = self._transfers[start.call_id] = asyncio.get_running_loop().create_future()
        try:
            await self._api.command(
                start.call_id, "transfer", to=to, timeout_secs=RING_S, target_leg_client_state=_state(start.call_id)
            )
            async with asyncio.timeout(RING_S + 5):
                await taken
        except CommandFailed as error:
            raise TransferFailed(f"the telephone network refuses it ({error})") from error
        except TimeoutError:
            raise TransferFailed("nobody took the call in time") from None
        finally:
            del self._transfers[start.call_id]

    async def ended(self, call_id: str, reason: str) -> None:
        """Telnyx holds a call that is no longer streamed, whichever side has ended the stream: it must be told to hang
        up. A call that somebody else is to have ends with theirs."""
        if reason == "transferred":
            self._put_through[_state(call_id)] = call_id
            return
        try:
            await self._api.command(call_id, "hangup")
        except CommandFailed as error:
            logger.error("telnyx: %s is not hung up: %s", call_id, error)


def _state(call_id: str) -> str:
    """What the webhooks of a leg say to which a call is transferred."""
    return b64encode(call_id.encode()).decode()


_TOLD: dict[str, Callable[[Telnyx, Payload, str], Awaitable[None]]] = {
    "call.initiated": Telnyx._initiated,
    "call.answered": Telnyx._answered,
    "call.bridged": Telnyx._bridged,
    "call.hangup": Telnyx._hung_up,
    "streaming.failed": Telnyx._not_streamed,
}

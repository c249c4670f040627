"""Calls from Twilio: a number's webhook, the media stream that it asks for, and what comes after that."""

import time
from collections import deque
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from voicepipe.agent import Agent
from voicepipe.base.errors import Declined, KeysFailed, Refused, TransferFailed
from voicepipe.call_api import NO_ANSWER, Grant, HookAnswer, PopApi, Tenant
from voicepipe.call_settings import Origin
from voicepipe.ingress.asgi_scope import pays
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.telephony import signatures, twilio_webhook
from voicepipe.ingress.telephony.dialects import TWILIO, StreamStart
from voicepipe.ingress.telephony.hooked_calls import HookedCalls
from voicepipe.ingress.telephony.provider_access import ProviderAccess, cause
from voicepipe.ingress.telephony.signatures import Forbidden, OneTimeTokens
from voicepipe.ingress.telephony.stream import ExpectedStream, StreamedCall, StreamEndpoint
from voicepipe.ingress.telephony.twilio_webhook import (
    VOICE,
    TransferTarget,
    TwilioForm,
    address,
    parsed,
    signed_form,
)

STREAM, AFTER = "/twilio/stream", "/twilio/after"
STREAMS, TRANSFERS = "twilio streams", "twilio transfers"
"""What is handed over (`TakeoverParts`): tokens of streams that are expected, and calls that are transferred."""
SIP_HEADER = "SipHeader_X-"
"""Begins the names of a form's fields that have the headers of a SIP call."""
OURS = "voicepipe"
"""Name of the stream parameter with the token of our TwiML: it shows that a later request for the stream is due to us
as well. The signature alone would admit anybody who has seen one, since a stream's address is always the same."""
REMEMBERED_S = 60.0
"""Seconds for which a call is remembered: Twilio asks at once what comes after a stream."""
DIALLED_S = 660.0
"""Seconds for which a call that is being transferred is remembered: it rings for ten minutes at most."""
ASKED_MS, FORWARDED_MS = 12_000, 2500
"""For so long an agent's hook may take: Twilio waits 15 s for the answer to a webhook, and a directory that forwards
one 3 s before it asks the next PoP."""
STREAMED = 10_000
"""Calls that are remembered so that nobody streams them again: Twilio's signature has no expiry."""


class _Expected(NamedTuple):
    """A stream that our TwiML has asked for."""

    call_id: str
    returned: bool
    """The call was transferred, and nobody answered."""
    placed: Grant | None = None
    """The token with which a directory has sent the call here."""
    said: HookAnswer | None = None
    """As in `StreamedCall`."""


class _Transferred(NamedTuple):
    """A call that is transferred, and until which monotonic second it is remembered."""

    until: float
    said: HookAnswer | None
    """As in `StreamedCall`: a call that comes back is answered by the same agent."""
    target: TransferTarget | None = None
    """None: it is being dialled."""


class TwilioTransfers(msgspec.Struct):
    """Calls that are being transferred. Twilio asks for them by HTTP, after their streams have ended."""

    targets: dict[str, _Transferred] = {}
    dialled: dict[str, _Transferred] = {}


class Twilio:
    """Twilio as a `StreamProvider`, with its webhooks. `token`: the account's, by which requests are signed."""

    dialect = TWILIO

    def __init__(self, pop: PopApi, calls: Calls, token: str) -> None:
        self._pop = pop
        self._access = ProviderAccess(pop, self.dialect.kind)
        self._hooked = HookedCalls(pop, self.dialect.kind)
        self._streams = StreamEndpoint(pop, calls, self, self._access, self._hooked)
        self.token = token
        self._tokens = OneTimeTokens[_Expected](time.monotonic, partial(pop.takeover_parts.add, STREAMS))
        self._transfers = TwilioTransfers()
        self._parts = pop.takeover_parts
        streams = dict[str, tuple[float, _Expected]]
        self._parts.join(STREAMS, streams, self._tokens.handed_over, self._tokens.take_over, adds=True)
        self._parts.join(TRANSFERS, TwilioTransfers, lambda: self._transfers, self._take_over, adds=True)
        self._streamed_before: deque[int] = deque(maxlen=STREAMED)
        """Hashes of their ids, which take the same memory however long an id is; Python salts them for each process."""
        self._said: dict[str, HookAnswer] = {}
        """What the hooks of calls in progress have said."""

    def routes(self) -> list[BaseRoute]:
        return [
            Route(VOICE, self.voice, methods=["POST"]),
            Route(AFTER, self.after, methods=["POST"]),
            WebSocketRoute(STREAM, self._streams.websocket),
        ]

    async def voice(self, request: Request) -> Response:
        """POST: a new call. Answers with TwiML that has the call streamed to us, or with the busy tone."""
        forwarded = self._access.forwarded(request)
        try:
            form = await (self._forwarded_form(request) if forwarded else self._form(request))
            if hash(form.fields.get("CallSid", "")) in self._streamed_before:
                raise Forbidden("its call has been streamed before: it is an old one, sent again")
        except Forbidden as error:
            return self._access.forbid(request, "a webhook", error)
        asked, called = request.query_params.get("agent", ""), form.fields.get("To", "")
        call_id, origin = form.fields.get("CallSid", ""), _origin(form.fields)
        try:
            if call_id in self._hooked:  # Twilio has sent it again. All of them get the same answer.
                said = await self._hooked.answer(call_id)
            else:
                tenant, agent = self._access.check(called, asked, forwarded.tenant if forwarded else "")
                limit_ms = FORWARDED_MS if forwarded else ASKED_MS
                said = await self._hook_says(call_id, tenant, agent, origin, limit_ms)
        except Refused as error:
            if forwarded and not isinstance(error, Declined):
                raise  # The directory goes on to the next PoP.
            return twilio_webhook.reject(cause(error))
        return self._streamed(form.fields, form.url, asked, _Expected(call_id, False, forwarded, said))

    async def after(self, request: Request) -> Response:
        """POST: the stream, or the attempt to transfer the call, has ended. Answers with TwiML that dials the agent's
        target, has the call streamed to us again if nobody answered, or hangs up."""
        try:
            form, url, _ = await self._form(request)
        except Forbidden as error:
            return self._access.forbid(request, "a webhook", error)
        asked, call_id, now = request.query_params.get("agent", ""), form.get("CallSid", ""), time.monotonic()
        transfers = self._transfers
        wanted = transfers.targets.pop(call_id, None)
        if wanted and wanted.target and wanted.until > now:
            transfers.dialled = {call: kept for call, kept in transfers.dialled.items() if kept.until > now}
            transfers.dialled[call_id] = _Transferred(now + DIALLED_S, wanted.said)
            return twilio_webhook.dial(wanted.target, _after(url, asked))
        failed = form.get("DialCallStatus", "completed") not in ("completed", "answered")
        dialled = transfers.dialled.pop(call_id, None)
        if dialled and dialled.until > now and failed and self._access.has_room(form.get("To", ""), asked):
            return self._streamed(form, url, asked, _Expected(call_id, True, said=dialled.said))
        return twilio_webhook.hang_up()

    async def _hook_says(self, call_id: str, tenant: Tenant, agent: Agent, origin: Origin, limit_ms: int) -> HookAnswer:
        """What the hook of the call's agent says, if it has one. Raises Refused."""
        if not agent.hooks.asked_ms:
            return NO_ANSWER
        with self._access.attempted(tenant, agent):
            return await self._hooked.ask(call_id, tenant, agent, origin, limit_ms)

    def _streamed(self, form: dict[str, str], url: str, asked: str, expected: _Expected) -> Response:
        """TwiML that has the call streamed to us, in answer to a request at `url`."""
        parameters = {
            "from": form.get("From", ""),
            "to": form.get("To", ""),
            "agent": asked,
            OURS: self._tokens.make(expected),
        }
        stream = "ws" + _base(url).removeprefix("http").removeprefix("ws") + STREAM
        return twilio_webhook.stream(stream, parameters, _after(url, asked))

    async def _form(self, request: Request) -> TwilioForm:
        """The form of a request that Twilio has signed. Raises Forbidden."""
        form = await signed_form(request, self.token, self._public_url, self._access.body)
        pays(request)
        return form

    async def _forwarded_form(self, request: Request) -> TwilioForm:
        """The form of a webhook that a directory has forwarded, with the address that Twilio would have asked here."""
        raw = await self._access.body(request)
        here = self._public_url or self._pop.config.fleet.url
        return TwilioForm(dict(parsed(raw)), address(request, here), raw)

    @property
    def _public_url(self) -> str:
        return self._pop.config.telephony.public_url

    # StreamProvider

    def check(self, socket: WebSocket) -> ExpectedStream:
        signatures.twilio(self.token, address(socket, self._public_url), (), socket.headers)
        return ExpectedStream()

    def admit(self, start: StreamStart, expected: ExpectedStream) -> StreamedCall:
        rest = dict(start.parameters)
        caller, called, agent, token = (rest.pop(name, "") for name in ("from", "to", "agent", OURS))
        stream = _Expected(start.call_id, returned=False)
        if token:
            stream = self._tokens.take(token)
            if stream.call_id != start.call_id:
                raise Forbidden("it is of another call than its token")
        elif not self._pop.config.twilio.own_twiml:
            raise Forbidden(
                f"its TwiML is not from {VOICE}, so it brings no token: let that be the number's webhook, or set "
                "twilio.own_twiml for TwiML of your own"
            )
        self._streamed_before.append(hash(start.call_id))
        self._access.came(stream.placed)
        network, owner = (stream.placed.network, stream.placed.tenant) if stream.placed else ("", "")
        if stream.said is not None:
            self._said[start.call_id] = stream.said
        origin = Origin(caller, called, rest)
        return StreamedCall(origin, agent, start.sound, stream.returned, network, owner, stream.said)

    async def transfer(self, start: StreamStart, target: str, ring_s: int) -> None:
        """Remember the target: Twilio asks for it once the stream has ended, and again if nobody answered. Raises
        TransferFailed."""
        if not start.parameters.get(OURS):
            raise TransferFailed(
                f"this caller cannot be transferred: Twilio's webhook must be {VOICE} for that, and it is another one"
            )
        now = time.monotonic()
        said = self._said.get(start.call_id)
        fresh = {start.call_id: _Transferred(now + REMEMBERED_S, said, TransferTarget(target, ring_s))}
        left = {call: kept for call, kept in self._transfers.targets.items() if kept.until > now}
        self._transfers.targets = left | fresh
        self._parts.add(TRANSFERS, TwilioTransfers(fresh))

    async def send_keys(self, start: StreamStart, keys: str) -> None:
        """Raises KeysFailed. Tones in the stream do not reach the far end as keys, and `<Play digits>` in new TwiML
        ends the stream: the call would begin anew."""
        raise KeysFailed(self.dialect.lacks_keys)

    def _take_over(self, handed: TwilioTransfers) -> None:
        self._transfers.targets |= handed.targets
        self._transfers.dialled |= handed.dialled

    async def ended(self, call_id: str, reason: str) -> None:
        """The stream is closed, which is all that Twilio needs."""
        self._said.pop(call_id, None)

    async def close(self) -> None:
        """Stop: no call goes on any more."""
        await self._hooked.close()


def _origin(form: dict[str, str]) -> Origin:
    """Where a call comes from, by its webhook: calls to a SIP domain of Twilio's bring their X- headers."""
    headers = {name: value for name, value in form.items() if name.startswith(SIP_HEADER)}
    return Origin(form.get("From", ""), form.get("To", ""),
                  {name.removeprefix("SipHeader_"): value for name, value in headers.items()})  # fmt: skip


def _base(url: str) -> str:
    """The beginning of all our addresses, by the one that was asked."""
    return url.partition("?")[0].removesuffix(VOICE).removesuffix(AFTER)


def _after(url: str, asked: str) -> str:
    return _base(url) + AFTER + (f"?{urlencode({'agent': asked})}" if asked else "")

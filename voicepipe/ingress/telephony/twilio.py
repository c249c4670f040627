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

from voicepipe.agent import Origin
from voicepipe.base.errors import KeysFailed, TransferFailed
from voicepipe.call_api import Grant, PopApi
from voicepipe.ingress.asgi_scope import pays
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.telephony import signatures, twilio_webhook
from voicepipe.ingress.telephony.dialects import TWILIO, StreamStart
from voicepipe.ingress.telephony.provider_access import ProviderAccess
from voicepipe.ingress.telephony.signatures import Forbidden, OneTimeTokens
from voicepipe.ingress.telephony.stream import StreamedCall, StreamEndpoint
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
OURS = "voicepipe"
"""Name of the stream parameter with the token of our TwiML: it shows that a later request for the stream is due to us
as well. The signature alone would admit anybody who has seen one, since a stream's address is always the same."""
REMEMBERED_S = 60.0
"""Seconds for which a call is remembered: Twilio asks at once what comes after a stream."""
DIALLED_S = 660.0
"""Seconds for which a call that is being transferred is remembered: it rings for ten minutes at most."""
STREAMED = 10_000
"""Calls that are remembered so that nobody streams them again: Twilio's signature has no expiry."""


class _Expected(NamedTuple):
    """A stream that our TwiML has asked for."""

    call_id: str
    returned: bool
    """The call was transferred, and nobody answered."""
    placed: Grant | None = None
    """The token with which a directory has sent the call here."""


class TwilioTransfers(msgspec.Struct):
    """Calls that are being transferred. Twilio asks for them by HTTP, after their streams have ended."""

    targets: dict[str, tuple[float, TransferTarget]] = {}
    """The target of each call that is transferred, and until which monotonic second it is remembered."""
    dialled: dict[str, float] = {}
    """Calls that are being dialled, and until when."""


class Twilio:
    """Twilio as a `StreamProvider`, with its webhooks. `token`: the account's, by which requests are signed."""

    dialect = TWILIO

    def __init__(self, pop: PopApi, calls: Calls, token: str) -> None:
        self._pop = pop
        self._access = ProviderAccess(pop, self.dialect.kind)
        self._streams = StreamEndpoint(pop, calls, self, self._access)
        self.token = token
        self._tokens = OneTimeTokens[_Expected](time.monotonic, partial(pop.takeover_parts.add, STREAMS))
        self._transfers = TwilioTransfers()
        self._parts = pop.takeover_parts
        streams = dict[str, tuple[float, _Expected]]
        self._parts.join(STREAMS, streams, self._tokens.handed_over, self._tokens.take_over, adds=True)
        self._parts.join(TRANSFERS, TwilioTransfers, lambda: self._transfers, self._take_over, adds=True)
        self._streamed_before: deque[int] = deque(maxlen=STREAMED)
        """Hashes of their ids, which take the same memory however long an id is; Python salts them for each process."""

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
        if forwarded:
            self._access.check(
                called, asked, forwarded.tenant
            )  # What it raises has the directory go on to the next PoP.
        elif reason := self._access.turns_down(called, asked):
            return twilio_webhook.reject(reason)
        return self._streamed(form.fields, form.url, asked, placed=forwarded)

    async def after(self, request: Request) -> Response:
        """POST: the stream, or the attempt to transfer the call, has ended. Answers with TwiML that dials the agent's
        target, has the call streamed to us again if nobody answered, or hangs up."""
        try:
            form, url, _ = await self._form(request)
        except Forbidden as error:
            return self._access.forbid(request, "a webhook", error)
        asked, call_id, now = request.query_params.get("agent", ""), form.get("CallSid", ""), time.monotonic()
        transfers = self._transfers
        until, target = transfers.targets.pop(call_id, (0.0, None))
        if target and until > now:
            transfers.dialled = {call: kept for call, kept in transfers.dialled.items() if kept > now}
            transfers.dialled[call_id] = now + DIALLED_S
            return twilio_webhook.dial(target, _after(url, asked))
        failed = form.get("DialCallStatus", "completed") not in ("completed", "answered")
        untaken = transfers.dialled.pop(call_id, 0.0) > now and failed
        if untaken and not self._access.turns_down(form.get("To", ""), asked):
            return self._streamed(form, url, asked, returned=True)
        return twilio_webhook.hang_up()

    def _streamed(
        self, form: dict[str, str], url: str, asked: str, *, returned: bool = False, placed: Grant | None = None
    ) -> Response:
        """TwiML that has the call streamed to us, in answer to a request at `url`."""
        parameters = {
            "from": form.get("From", ""),
            "to": form.get("To", ""),
            "agent": asked,
            OURS: self._tokens.make(_Expected(form.get("CallSid", ""), returned, placed)),
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

    def check(self, socket: WebSocket) -> str:
        signatures.twilio(self.token, address(socket, self._public_url), (), socket.headers)
        return ""

    def admit(self, start: StreamStart, expected: str) -> StreamedCall:
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
        return StreamedCall(Origin(caller, called, rest), agent, start.sound, stream.returned, network, owner)

    async def transfer(self, start: StreamStart, target: str, ring_s: int) -> None:
        """Remember the target: Twilio asks for it once the stream has ended, and again if nobody answered. Raises
        TransferFailed."""
        if not start.parameters.get(OURS):
            raise TransferFailed(
                f"this caller cannot be transferred: Twilio's webhook must be {VOICE} for that, and it is another one"
            )
        now = time.monotonic()
        fresh = {start.call_id: (now + REMEMBERED_S, TransferTarget(target, ring_s))}
        left = {call: kept for call, kept in self._transfers.targets.items() if kept[0] > now}
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


def _base(url: str) -> str:
    """The beginning of all our addresses, by the one that was asked."""
    return url.partition("?")[0].removesuffix(VOICE).removesuffix(AFTER)


def _after(url: str, asked: str) -> str:
    return _base(url) + AFTER + (f"?{urlencode({'agent': asked})}" if asked else "")

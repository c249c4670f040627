"""Webhooks of Twilio and Telnyx at a directory: each call's is forwarded to a PoP that may take the call.

The PoP answers as if the provider had asked it: from then on stream and webhooks go there directly. If it refuses, or
gives no answer, the next candidate is asked, while the caller hears it ring.
"""

import logging
import time
from typing import Literal, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.base.errors import NoPop
from voicepipe.base.foreign_json import decode
from voicepipe.base.places import place_of
from voicepipe.call_api import Grant
from voicepipe.config.credentials import telnyx_key, twilio_token
from voicepipe.config.directory_config import DirectoryConfig
from voicepipe.config.phone_config import PhoneKind
from voicepipe.config.rereads import Use
from voicepipe.directory.directory import Directory
from voicepipe.directory.server.call_placement import DirectoryRules, PhonePlacing
from voicepipe.directory.server.request_proxy import ALONE_S, RequestProxy
from voicepipe.ingress.access import body
from voicepipe.ingress.phone import NoRoute
from voicepipe.ingress.refusal_log import RefusalLog
from voicepipe.ingress.telephony import signatures, twilio_webhook
from voicepipe.ingress.telephony.provider_access import WEBHOOK_BYTES
from voicepipe.ingress.telephony.signatures import Forbidden
from voicepipe.ingress.telephony.telnyx_api import (
    CAUSES,
    VOICE,
    CommandFailed,
    TelnyxApi,
    TelnyxPayload,
    TelnyxWebhook,
    public_key,
)
from voicepipe.ingress.telephony.telnyx_hangups import pop_of
from voicepipe.ingress.telephony.twilio_webhook import signed_form

logger = logging.getLogger(__name__)

MOST_TRIED = 4
"""Candidates that are tried at most, each for 3 s: Twilio waits 15 s for the answer to a webhook."""


class _Outcome(NamedTuple):
    """The result of asking PoPs to take a call."""

    answer: Response | None
    """The answer of the PoP that has taken the call; None: none has."""
    reason: Literal["busy", "rejected"]
    """Why no PoP has taken it."""
    unsure: bool
    """A PoP that was asked has not answered in time: it may have taken the call nevertheless."""


class ProviderWebhooks:
    """The endpoints for these webhooks: one for each provider whose secret is configured. Raises ConfigError: the
    secret is missing."""

    def __init__(
        self, rules: DirectoryRules, directory: Directory, placement: PhonePlacing, proxy: RequestProxy
    ) -> None:
        config = rules.config
        self._rules = rules
        self._directory = directory
        self._placement = placement
        self._proxy = proxy
        self._token = twilio_token(config.twilio).value()
        self._api = TelnyxApi(config.telnyx, telnyx_key(config.telnyx).value())
        self._refusals = RefusalLog(logger, "webhooks")
        rules.rereads.join(self._reread)

    @property
    def _config(self) -> DirectoryConfig:
        return self._rules.config

    def _reread(self, config: DirectoryConfig) -> Use:
        """The providers' secrets, as `Rereads` has it."""
        token, key = twilio_token(config.twilio).value(), telnyx_key(config.telnyx).value()

        def use() -> None:
            self._token = token
            self._api.authorize(key)

        return use

    def routes(self) -> list[BaseRoute]:
        found: list[BaseRoute] = []
        if self._token:
            found.append(Route(twilio_webhook.VOICE, self.twilio, methods=["POST"]))
        if self._config.telnyx.public_key:
            found.append(Route(VOICE, self.telnyx, methods=["POST"]))
        return found

    async def twilio(self, request: Request) -> Response:
        """POST: a new call. Answers with TwiML that has the call streamed to a PoP, or with the busy tone."""
        try:
            form = await signed_form(request, self._token, self._config.telephony.public_url, _body)
        except Forbidden as error:
            return self._forbid(request, "twilio", error)
        outcome = await self._taken("twilio", request, form.fields.get("To", ""), form.raw)
        return outcome.answer or twilio_webhook.reject(outcome.reason)

    async def telnyx(self, request: Request) -> Response:
        """POST: an event of a call. Always 200 for what is signed, or Telnyx would send it again."""
        sent = await _body(request)
        try:
            signatures.telnyx(public_key(self._config.telnyx), sent, request.headers, time.time())
            said = decode(sent, TelnyxWebhook).data
        except Forbidden as error:
            return self._forbid(request, "telnyx", error)
        except msgspec.DecodeError as error:
            logger.warning("telnyx: a webhook is not about a call and is ignored (%s)", error)
            return Response()
        if said.event_type == "call.initiated":
            await self._initiated(said.payload, request, sent)
        elif pop := pop_of(said.payload.client_state):
            await self._forward_event(said.event_type, said.payload, pop, request, sent)
        return Response()

    async def _initiated(self, call: TelnyxPayload, request: Request, sent: bytes) -> None:
        with self._directory.call_claims.seeing_to(call.call_control_id) as wanted:
            if call.direction != "incoming" or not wanted:
                return
            outcome = await self._taken("telnyx", request, call.called or "", sent)
            if outcome.answer is None and not outcome.unsure:
                await self._order(call, "reject", cause=CAUSES[outcome.reason])
            await self._directory.call_claims.done(call.call_control_id)

    async def _forward_event(self, event: str, call: TelnyxPayload, pop: str, request: Request, sent: bytes) -> None:
        """Forward a webhook of a call that this PoP has answered. The PoP gives its own address with its answer, so
        such a webhook comes here only where Telnyx did not reach it there."""
        try:
            there = self._directory.request_token(Grant(id="", tenant="", kind="telnyx"), pop)
            answer = await self._proxy.sent(request, f"{there.url}{VOICE}", there, sent, ALONE_S)
            problem = "" if answer.status_code == 200 else f"{pop} answers with {answer.status_code}"
        except NoPop as error:
            problem = str(error)
        if problem:
            logger.warning("telnyx: %s of %s is lost: %s", event, call.call_control_id, problem)
            if event == "call.answered":  # Nobody would stream it, and Telnyx would hold its caller in silence.
                await self._order(call, "hangup")

    async def _order(self, call: TelnyxPayload, action: str, **fields: str) -> None:
        try:
            await self._api.command(call.call_control_id, action, **fields)
        except CommandFailed as error:
            logger.error("telnyx: %s: %s", call.call_control_id, error)

    async def _taken(self, kind: PhoneKind, request: Request, called: str, sent: bytes) -> "_Outcome":
        place = (self._config.twilio if kind == "twilio" else self._config.telnyx).place
        asked, unsure = request.query_params.get("agent", ""), False

        def may_have_it() -> None:
            nonlocal unsure
            unsure = True

        try:
            # Streams come from elsewhere than webhooks: their network goes by the provider's name and place.
            network = " ".join((kind, *map(str, place)))
            placement = await self._placement.place(
                kind, called, place_of(place), asked=asked, network=network, most=MOST_TRIED
            )
            targets = [(offer, offer.url) for offer in placement.offers]
            answer = await self._proxy.first(request, targets, sent, self._directory.bounced, may_have_it)
        except (NoPop, NoRoute) as error:
            if isinstance(error, NoRoute):
                self._directory.refused(kind, error.reason)
            logger.warning("%s: call refused: %s", kind, error)
            return _Outcome(None, "rejected" if isinstance(error, NoRoute) else "busy", unsure)
        if answer.status_code == 200:
            return _Outcome(answer, "busy", unsure)
        return _Outcome(None, "rejected" if answer.status_code == 404 else "busy", unsure)

    def _forbid(self, request: Request, kind: PhoneKind, error: Forbidden) -> Response:
        self._directory.refused(kind, "bad_signature")
        source = request.client.host if request.client else ""
        self._refusals.log(source, "%s: a webhook is refused: %s", kind, error)
        return PlainTextResponse("Forbidden", 403)


async def _body(request: Request) -> bytes:
    return await body(request, WEBHOOK_BYTES)

"""Refuses a provider's requests that are not signed, and calls for which there is no agent or no slot."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response

from voicepipe.agent import Agent
from voicepipe.base.errors import Declined, Draining, EngineDown, PopFull, Refused, Unauthorized
from voicepipe.call_api import Grant, PopApi, Tenant
from voicepipe.config.phone_config import StreamedKind
from voicepipe.ingress.access import Attempt, Gone, body
from voicepipe.ingress.api_keys import brings_token, offered
from voicepipe.ingress.phone import placed
from voicepipe.ingress.refusal_log import RefusalLog
from voicepipe.ingress.telephony.signatures import Forbidden
from voicepipe.ingress.wire_errors import WireError

logger = logging.getLogger(__name__)

WEBHOOK_BYTES = 64 * 1024
"""Bytes of the largest webhook that is read; those of providers are under 8 kB."""
BUSY = (486, 600)
"""SIP codes that say "busy"."""


class ProviderAccess:
    """Checks the requests of one provider, and refuses those that it has not signed, or whose call cannot be answered.
    `kind`: the provider."""

    def __init__(self, pop: PopApi, kind: StreamedKind) -> None:
        self._pop = pop
        self._kind = kind
        self._refusals = RefusalLog(logger, f"{kind}: requests")

    def attempt(self) -> Attempt:
        """A call that a webhook or a stream asks for."""
        return Attempt(self._pop, self._kind)

    async def body(self, request: Request) -> bytes:
        """The body of a webhook. Raises WireError, Gone."""
        try:
            return await body(request, WEBHOOK_BYTES)
        except WireError:
            self.attempt().refused("bad_request", 400)
            raise

    def forbid(self, connection: HTTPConnection, what: str, error: Forbidden, status: int = 403) -> Response:
        """The answer to `what`, "a webhook" or "a stream", that is not signed and may have been about a call; only the
        log has the reason. `status`: the one for the caller of a stream, whose answer has been sent."""
        self.attempt().refused(error.reason, status)
        source = connection.client.host if connection.client else ""
        self._refusals.log(source, "%s: %s is refused: %s", self._kind, what, error)
        return PlainTextResponse("Forbidden", 403)

    def refused(self, error: Refused, asked: Attempt, status: int = 0) -> None:
        """Log why a call of the provider's is not answered. `status`: as in `Refusal`."""
        asked.refused(error.reason, status)
        self._refusals.log("", "%s: call refused: %s", self._kind, error)

    @contextmanager
    def attempted(self, tenant: Tenant, agent: Agent) -> Iterator[None]:
        """A call of this agent's is to begin; an exception within the context refuses it."""
        attempt = self.attempt()
        attempt.by(tenant, agent)
        try:
            yield
        except Gone:  # Nobody wants it any more.
            raise
        except Refused as error:
            self.refused(error, attempt)
            raise
        except Exception:
            attempt.refused("error", 0)
            raise

    def forwarded(self, request: Request) -> Grant | None:
        """The token of a directory that has forwarded this webhook, having checked the provider's signature; None: none
        has. Raises Unauthorized: the token is not valid for it."""
        tokens = self._pop.tokens
        if tokens is None or not brings_token(request):
            return None
        grant = tokens.read(offered(request) or "")
        if grant.kind != self._kind:
            raise Unauthorized(f"This token is for no call from {self._kind}: ask the directory for another.")
        tokens.use(grant)
        return grant

    def came(self, placed: Grant | None) -> None:
        """The call begins that a directory has sent here; None: it was not sent by one."""
        if placed and self._pop.tokens:
            self._pop.tokens.came(placed.id)

    def check(self, called: str, asked: str, owner: str = "", *, asks_hook: bool = True) -> tuple[Tenant, Agent]:
        """The tenant and the agent of a call. Raises Refused: such a call is not answered here. `asked`, `owner`: as in
        `phone.placed`. `asks_hook`: the agent's hook is asked next if it has one. `HookedCalls` takes a slot for that,
        so none is tried here: the PoP lets fewer callers in just after it has let one in."""
        attempt = self.attempt()
        try:
            tenant, agent = placed(self._pop, self._kind, called, asked, owner=owner)
            attempt.by(tenant, agent)
            if not (asks_hook and agent.hooks.asked_ms):
                with self._pop.admit(tenant, agent):
                    pass
            return tenant, agent
        except Refused as error:
            self.refused(error, attempt)
            raise

    def has_room(self, called: str, asked: str) -> bool:
        """Whether there is a slot for such a call, which its stream takes. `asked`: as in `check`."""
        try:
            self.check(called, asked, asks_hook=False)
        except Refused:
            return False
        return True


def cause(error: Exception) -> Literal["busy", "rejected"]:
    """The reason that a caller gets whose call is refused before it is answered, or fails."""
    if isinstance(error, Declined):
        return "busy" if error.sip_code in BUSY else "rejected"
    return "busy" if isinstance(error, PopFull | Draining | EngineDown) else "rejected"

"""POST /v1/realtime/client_secrets at a directory: `ek_` keys that every directory of the fleet takes."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from voicepipe.base.errors import Unauthorized
from voicepipe.directory.server.request_proxy import RequestProxy
from voicepipe.directory.signed_keys import SESSION_BYTES, SignedKeys
from voicepipe.ingress.access import AccessControl, agent_of, body, decoded, uncached
from voicepipe.ingress.api_keys import Caller, SecretRequest, Tenants
from voicepipe.ingress.wire_errors import WireError

NAMES_AGENT = {"type", "model"}
"""Fields of a session that only name an agent: without others nothing has to be remembered."""


class FleetKeys:
    """The `ek_` keys of a fleet, as `api_keys.ShortLived`."""

    def __init__(self, signed_keys: SignedKeys, tenants: Tenants) -> None:
        self._signed_keys = signed_keys
        self._tenants = tenants

    def find(self, key: str) -> Caller:
        said = self._signed_keys.read(key)
        return Caller(self._tenants.named(said.tenant), said.agent, locked=said.locked, secret=key)


class SecretsApi:
    """The HTTP endpoint that makes `ek_` keys."""

    def __init__(self, access: AccessControl, signed_keys: SignedKeys, proxy: RequestProxy) -> None:
        self._access = access
        self._signed_keys = signed_keys
        self._proxy = proxy

    def routes(self) -> list[BaseRoute]:
        return [Route("/v1/realtime/client_secrets", self.make, methods=["POST"])]

    async def make(self, request: Request) -> Response:
        """POST: a key for a browser, and the session that it will have, the effective one of a PoP."""
        who = self._access.caller(request)
        if who.secret:
            raise Unauthorized("An ek_ key cannot make ek_ keys: use the tenant's own.")
        sent = await self._access.carry_out(who, body(request, 2 * SESSION_BYTES))
        return await self._access.carry_out(who, self._made(who, request, sent))

    async def _made(self, who: Caller, request: Request, sent: bytes) -> Response:
        asked = decoded(sent or b"{}", SecretRequest)
        session = bytes(asked.session)
        if len(session) > SESSION_BYTES:
            too_long = f"The session is over {SESSION_BYTES} bytes, the most that a directory passes on: shorten it."
            raise WireError("invalid_value", too_long, "session")
        says_more = decoded(session, dict[str, msgspec.Raw], "session").keys() - NAMES_AGENT
        answer = await self._proxy.to_any(who, request, sent, agent_of(asked))
        if answer.status_code != 200:
            return answer
        effective = msgspec.json.decode(bytes(answer.body), type=dict[str, Any])["session"]
        value, until = await self._signed_keys.make(
            who.tenant.name,
            effective["model"],
            session if says_more else b"",
            asked.locked,
            asked.expires_after.seconds,
        )
        return uncached({"value": value, "expires_at": until, "session": effective})

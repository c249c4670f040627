"""POST /v1/realtime/calls/{call_id}/accept and /reject: what becomes of a phone call that rings, as OpenAI has it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from voicepipe.base.errors import ConfigError, Unauthorized, UnknownCall
from voicepipe.call_api import HookAnswer, IncomingCall, PopApi
from voicepipe.ingress.access import AccessControl, body, decoded, find_agent
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.calls_api import CALLS
from voicepipe.ingress.realtime.bounds import check_session
from voicepipe.ingress.realtime.rights import effective_session
from voicepipe.ingress.wire_errors import WireError

BEGINS_S, LOOK_S = 10.0, 0.02
"""Seconds for which an accepted call may take until it has begun, and between two looks."""


class _Accept(msgspec.Struct):
    """The part of a session that names the agent."""

    model: str = ""


class _Reject(msgspec.Struct):
    """Body of POST /reject."""

    status_code: Annotated[int, Meta(ge=400, le=699)] = 603


class IncomingCallsHttp:
    """The HTTP endpoints for calls that ring."""

    def __init__(self, pop: PopApi, access: AccessControl, calls: Calls) -> None:
        self._pop = pop
        self._access = access
        self._calls = calls

    def routes(self) -> list[BaseRoute]:
        return [
            Route(f"{CALLS}/{{call_id}}/accept", self._where_it_rings(self.accept), methods=["POST"]),
            Route(f"{CALLS}/{{call_id}}/reject", self._where_it_rings(self.reject), methods=["POST"]),
        ]

    def _where_it_rings(
        self, endpoint: Callable[[Request, Caller, IncomingCall], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint about a call that rings, perhaps at the process before this one. Raises UnknownCall."""

        async def answered(request: Request) -> Response:
            who = self._access.caller(request)
            if who.secret:
                raise Unauthorized("An ek_ key or a call's token cannot accept or reject calls: use the tenant's own.")
            try:
                call = self._pop.incoming.find(request.path_params["call_id"], who.tenant)
            except UnknownCall:
                if before := self._pop.predecessor:
                    return await before.ask(request, await body(request, self._pop.config.limits.event_bytes))
                raise
            return await endpoint(request, who, call)

        return answered

    async def accept(self, request: Request, who: Caller, call: IncomingCall) -> Response:
        """POST a session: 200 once the call has begun, so that it can be followed by its id; 404 if its caller has gone
        meanwhile."""
        sent = await self._access.carry_out(who, body(request, self._pop.config.limits.event_bytes))
        await self._access.carry_out(who, self._accept(who, call, sent or b"{}"))
        for _ in range(round(BEGINS_S / LOOK_S)):
            try:
                self._calls.find(call.id, who)
            except UnknownCall:
                await asyncio.sleep(LOOK_S)
            else:
                return Response()
        raise UnknownCall(f"The call {call.id!r} was accepted, but its caller has gone.")

    async def _accept(self, who: Caller, call: IncomingCall, sent: bytes) -> None:
        """Raises WireError; UnknownCall: it does not ring any more."""
        said = HookAnswer(agent=self._agent(who, call, decoded(sent, _Accept).model), session=sent)
        settings = self._pop.settings(call.agent, call.origin, msgspec.structs.replace(said, session=b""))
        session, _ = effective_session(settings, Caller(who.tenant, session=sent))
        check_session(session, self._pop.config.limits)
        self._pop.incoming.accept(call, said)

    def _agent(self, who: Caller, call: IncomingCall, model: str) -> str:
        """The other agent that a session names; empty: none, or a model of OpenAI's. Raises WireError; UnknownModel:
        the tenant may not have it."""
        try:
            name = self._pop.agent(model).name if model else ""
        except ConfigError:
            return ""
        if name and name not in (call.agent.name, *call.agent.hooks.agents):
            raise WireError(
                "invalid_value",
                f"Invalid value for 'model': hooks.agents of {call.agent.name} does not name {name!r}. Add it there.",
                "model",
            )
        return "" if name == call.agent.name else find_agent(self._pop, who.tenant, name).name

    async def reject(self, request: Request, who: Caller, call: IncomingCall) -> Response:
        """POST {"status_code": 486}, which is the SIP code that the caller gets; 603 if it is left out."""
        sent = await self._access.carry_out(who, body(request))
        self._pop.incoming.reject(call, decoded(sent or b"{}", _Reject).status_code)
        return Response()

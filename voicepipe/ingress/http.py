"""The PoP's HTTP server: Realtime WebSockets, their keys, health, and the built-in pages."""

import asyncio
import logging
import mimetypes
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from voicepipe.agent import Agent, CallSettings
from voicepipe.call_api import PopApi, Tenant
from voicepipe.errors import ConfigError, Draining, PopFull, Refused, Unauthorized
from voicepipe.ingress import server
from voicepipe.ingress.keys import Caller, SecretRequest, Secrets, caller
from voicepipe.ingress.local import LocalOnly, check_exposure
from voicepipe.ingress.realtime.errors import WireError, wire_error
from voicepipe.ingress.realtime.items import fresh_id
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.realtime.websocket import Connection

logger = logging.getLogger(__name__)

WEB = Path(__file__).parents[1] / "web"
BODY_BYTES = 1024 * 1024
SUBPROTOCOL = "realtime"
KEY_SUBPROTOCOL = "openai-insecure-api-key."
"""How browsers, which cannot set headers on a WebSocket, hand over their key."""


class UnknownModel(Refused):
    """The key's owner has no such agent."""


class UnknownCall(Refused):
    """No call has this id."""


_REFUSALS: dict[type[Refused], tuple[int, str, dict[str, str]]] = {
    Unauthorized: (401, "invalid_api_key", {"WWW-Authenticate": "Bearer"}),
    UnknownModel: (404, "model_not_found", {}),
    UnknownCall: (404, "call_id_not_found", {}),
    PopFull: (503, "pop_full", {"Retry-After": "2"}),
    Draining: (503, "draining", {"Retry-After": "30"}),
}
"""HTTP status, code and headers."""


def refusal(error: Refused) -> JSONResponse:
    """The answer to a caller who is not let in."""
    status, code, headers = _REFUSALS.get(type(error), (503, "refused", {"Retry-After": "2"}))
    return JSONResponse(_error_body(code, str(error), None), status, headers)


def _error_body(code: str, message: str, param: str | None) -> dict[str, object]:
    return {"error": {"type": "invalid_request_error", "code": code, "message": message, "param": param}}


def key_of(headers: str | None, subprotocols: list[str]) -> str | None:
    """The key in an Authorization header, or in the subprotocols offered."""
    scheme, _, key = (headers or "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    offered = (name.removeprefix(KEY_SUBPROTOCOL) for name in subprotocols if name.startswith(KEY_SUBPROTOCOL))
    return next(offered, None)


def find_agent(pop: PopApi, tenant: Tenant, name: str | None) -> Agent:
    """The agent that a client means. Stock SDKs insist on a model name of their own: those mean the default agent.

    Raises UnknownModel: the agent exists but not for this tenant.
    """
    try:
        agent = pop.agent(name) if name else _default_agent(pop, tenant)
    except ConfigError:
        agent = _default_agent(pop, tenant)
        logger.info("no agent is called %r: %s answers", name, agent.name)
    if tenant.agents and agent.name not in tenant.agents:
        raise UnknownModel(f"The key's owner has no agent {agent.name!r}.")
    return agent


def _default_agent(pop: PopApi, tenant: Tenant) -> Agent:
    default = pop.agent(None)
    return pop.agent(tenant.agents[0]) if tenant.agents and default.name not in tenant.agents else default


class Realtime:
    """The /v1/realtime endpoints of one PoP."""

    def __init__(self, pop: PopApi) -> None:
        self._pop = pop
        self._secrets = Secrets()

    async def websocket(self, socket: WebSocket) -> None:
        """GET /v1/realtime, refused by HTTP status before it is accepted."""
        limits = self._pop.config.limits
        with ExitStack() as place:
            try:
                who = self._caller(socket)
                if call_id := socket.query_params.get("call_id"):
                    raise UnknownCall(f"No call has the id {call_id!r}.")
                agent = find_agent(self._pop, who.tenant, who.agent or socket.query_params.get("model"))
                seat = place.enter_context(self._pop.admit(who.tenant, agent))
            except Refused as error:
                logger.warning("call refused: %s", error)
                return await socket.send_denial_response(refusal(error))
            await socket.accept(SUBPROTOCOL if SUBPROTOCOL in socket.scope["subprotocols"] else None)
            session, settings = settle(agent, who, int(time.time() + limits.call_ms / 1000))
            await Connection(socket, seat, session, settings, limits).run()

    async def client_secrets(self, request: Request) -> Response:
        """POST /v1/realtime/client_secrets: a key for a browser, and the session that it will have."""
        try:
            who = self._caller(request)
            if who.agent is not None:
                raise Unauthorized("An ek_ key cannot make others: use the tenant's own.")
            asked = _decoded(await _body(request))
            model = asked.session.get("model")
            agent = find_agent(self._pop, who.tenant, model if isinstance(model, str) else None)
            fresh = Caller(who.tenant, agent.name, asked.session)
            session, _ = settle(agent, fresh)
        except Refused as error:
            return refusal(error)
        except WireError as error:
            return JSONResponse(_error_body(error.code, error.message, error.param), 400)
        value, expires_at = self._secrets.make(fresh, asked.expires_after.seconds)
        answer = {"value": value, "expires_at": expires_at, "session": session}
        return Response(msgspec.json.encode(answer), media_type="application/json")

    def _caller(self, connection: Request | WebSocket) -> Caller:
        offered = connection.scope.get("subprotocols", [])
        return caller(self._pop, self._secrets, key_of(connection.headers.get("authorization"), offered))


def settle(agent: Agent, who: Caller, expires_at: int = 0) -> tuple[Session, CallSettings]:
    """The session and settings with which a call begins. Raises WireError."""
    settings = CallSettings.of(agent)
    session = Session.of(settings, id=fresh_id("sess"), expires_at=expires_at).updated(who.session)
    return session, session.settings(settings)


def _decoded(body: bytes) -> SecretRequest:
    try:
        return msgspec.json.decode(body or b"{}", type=SecretRequest)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise wire_error(error) from None


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_BYTES:
            raise WireError("request_too_large", f"The body is over {BODY_BYTES} bytes.")
    return bytes(body)


def app(pop: PopApi) -> Starlette:
    """The ASGI application of one PoP."""
    realtime = Realtime(pop)

    async def healthz(request: Request) -> Response:
        return JSONResponse(pop.health())

    async def readyz(request: Request) -> Response:
        health = pop.health()
        return JSONResponse(health, 200 if health["status"] == "ok" else 503)

    routes: list[BaseRoute] = [
        WebSocketRoute("/v1/realtime", realtime.websocket),
        Route("/v1/realtime/client_secrets", realtime.client_secrets, methods=["POST"]),
        Route("/healthz", healthz),
        Route("/readyz", readyz),
    ]
    if WEB.is_dir():
        mimetypes.init()  # reads files; otherwise at the first page
        routes.append(Mount("/", StaticFiles(directory=WEB, html=True)))
    origins = pop.config.http.origins
    middleware = [] if pop.config.tenants else [Middleware(LocalOnly, origins=origins)]
    if origins:
        middleware.append(
            Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"],
                       expose_headers=["Location"])
        )  # fmt: skip
    return Starlette(routes=routes, middleware=middleware)


async def serve(pop: PopApi, listener: socket.socket | None = None) -> None:
    """Serve one PoP until cancelled; `listener` from `server.bind`, where it is made early. Sets `pop.serving`.

    Raises ConfigError: the address cannot be had, or would let strangers call.
    """
    check_exposure(pop.config)
    application = await asyncio.to_thread(app, pop)  # it looks at files
    await server.serve(application, listener or server.bind(pop.config.http), pop.config, pop.serving)

"""The PoP's HTTP server: Realtime WebSockets, calls, their keys, health, and the built-in pages."""

import asyncio
import logging
import socket
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket

from voicepipe.agent import Agent, CallSettings
from voicepipe.call_api import PopApi
from voicepipe.errors import Refused, Unauthorized
from voicepipe.ingress import dashboard, pages, server
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.calls_api import CallsInProgress
from voicepipe.ingress.doors import Doors, body, decoded, find_agent, mistake, nowhere, settle
from voicepipe.ingress.keys import Caller, SecretRequest
from voicepipe.ingress.lists import Lists
from voicepipe.ingress.local import LocalOnly, check_exposure
from voicepipe.ingress.realtime.bounds import check_session
from voicepipe.ingress.realtime.errors import WireError
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.realtime.websocket import converse, listen_in
from voicepipe.ingress.sip import edge as sip
from voicepipe.ingress.telephony import http as telephony
from voicepipe.ingress.webrtc.http import CallsApi, prepared
from voicepipe.rtp.transport import Network
from voicepipe.supervised import supervised

logger = logging.getLogger(__name__)

WEB = Path(__file__).parents[1] / "web"
SUBPROTOCOL = "realtime"


class _Named(msgspec.Struct):
    """What says which agent is meant; the rest of a session is passed over."""

    model: Any = None


class Realtime:
    """The /v1/realtime endpoints of one PoP."""

    def __init__(self, pop: PopApi, doors: Doors, calls: Calls) -> None:
        self._pop = pop
        self._doors = doors
        self._calls = calls

    async def websocket(self, socket: WebSocket) -> None:
        """GET /v1/realtime, refused by HTTP status before it is accepted."""
        limits = self._pop.config.limits
        with ExitStack() as place:
            try:
                who = self._doors.caller(socket)
                if (call_id := socket.query_params.get("call_id")) is not None:
                    call = self._calls.find(call_id, who)
                    return await listen_in(socket, call, _subprotocol(socket), who.rights(call.answering))
                agent = find_agent(self._pop, who.tenant, who.agent or socket.query_params.get("model"))
                seat = place.enter_context(self._pop.admit(who.tenant, agent))
                self._doors.begins(who)
                session, settings = await self._doors.carry_out(who, self._settled(agent, who))
            except Refused as error:
                return await socket.send_denial_response(self._doors.refuse(socket, error))
            except WireError as error:  # A key's session asks for what its agent has locked since.
                self._doors.tell(socket, 400, error)
                return await socket.send_denial_response(mistake(error))
            await socket.accept(_subprotocol(socket))
            known = partial(self._calls.known, who)
            await converse(socket, seat, session, settings, limits, known, who.rights(agent))

    async def _settled(self, agent: Agent, who: Caller) -> tuple[Session, CallSettings]:
        return settle(agent, who, int(time.time() + self._pop.config.limits.call_ms / 1000))

    async def client_secrets(self, request: Request) -> Response:
        """POST /v1/realtime/client_secrets: a key for a browser, and the session that it will have."""
        who = self._doors.caller(request)
        if who.secret:
            raise Unauthorized("An ek_ key or a token cannot make ek_ keys: use the tenant's own.")
        sent = await self._doors.carry_out(who, body(request, self._pop.config.limits.event_bytes))
        return await self._doors.carry_out(who, self._secret(who, sent))

    async def _secret(self, who: Caller, sent: bytes) -> Response:
        asked = decoded(sent or b"{}", SecretRequest)
        model = decoded(asked.session, _Named, "session").model
        agent = find_agent(self._pop, who.tenant, model if isinstance(model, str) else None)
        fresh = Caller(who.tenant, agent.name, bytes(asked.session), asked.locked)
        session, _ = settle(agent, fresh)
        check_session(session, self._pop.config.limits)
        value, expires_at = self._doors.secrets.make(fresh, asked.expires_after.seconds)
        answer = {"value": value, "expires_at": expires_at, "session": session}
        return Response(msgspec.json.encode(answer), media_type="application/json")


def _subprotocol(socket: WebSocket) -> str | None:
    return SUBPROTOCOL if SUBPROTOCOL in socket.scope["subprotocols"] else None


def app(pop: PopApi, calls: Calls, network: Network, providers: telephony.Providers) -> Starlette:
    """The ASGI application of one PoP."""
    doors = Doors(pop, pop.config.limits.client_percent, pop.tokens)
    realtime = Realtime(pop, doors, calls)

    async def healthz(request: Request) -> Response:
        return JSONResponse(pop.health())

    async def readyz(request: Request) -> Response:
        health = pop.health()
        return JSONResponse(health, 200 if health["status"] == "ok" else 503)

    routes: list[BaseRoute] = [
        WebSocketRoute("/v1/realtime", realtime.websocket),
        Route("/v1/realtime/client_secrets", realtime.client_secrets, methods=["POST"]),
        *CallsApi(pop, doors, calls, network).routes(),
        *CallsInProgress(doors, calls).routes(),
        *Lists(pop, doors).routes(),
        *providers.routes(),
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        *dashboard.routes(pop, doors, WEB),
        Mount("/v1", nowhere),
        *pages.routes(WEB),
    ]
    origins = pop.config.http.origins
    middleware = []
    if not pop.config.tenants:
        middleware.append(Middleware(LocalOnly, tell=doors.tell, origins=origins, signed=telephony.SIGNED))
    if origins:
        middleware.append(
            Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"],
                       expose_headers=["Location"])
        )  # fmt: skip
    return Starlette(routes=routes, middleware=middleware, exception_handlers=doors.answers())


async def serve(pop: PopApi, listener: socket.socket | None = None) -> None:
    """Serve one PoP until cancelled; `listener` from `server.bind`, where it is made early. Sets `pop.serving`.

    Raises ConfigError: the address cannot be had, or would let strangers call.
    """
    check_exposure(pop.config)
    calls = Calls()
    network = await asyncio.to_thread(prepared, pop.config)
    providers = await asyncio.to_thread(telephony.Providers, pop, calls)  # it reads certificates
    application = await asyncio.to_thread(app, pop, calls, network, providers)  # it looks at files
    listening = listener or server.bind(pop.config.http)
    async with sip.listening(pop, calls):
        limits, slots = pop.config.limits, pop.config.pop.slots
        serving = server.serve(application, listening, pop.config.http, slots, limits.message_bytes, pop.serving)
        jobs = {asyncio.create_task(serving), asyncio.create_task(calls.run())}
        tidying = asyncio.create_task(supervised("ending calls left behind", providers.tidy_up))
        try:
            done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            for job in done:
                job.result()
        finally:
            jobs.add(tidying)
            for job in jobs:
                job.cancel()
            await asyncio.wait(jobs)
            await providers.close()

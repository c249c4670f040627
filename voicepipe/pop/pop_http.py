"""The PoP's HTTP server: Realtime WebSockets, calls, their keys, health, and the built-in pages."""

import asyncio
import logging
import socket
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket

from voicepipe.agent import Agent
from voicepipe.base import open_files
from voicepipe.base.errors import Refused, Unauthorized
from voicepipe.base.tasks import supervised
from voicepipe.call_api import DoorKind, PopApi
from voicepipe.call_settings import NOWHERE
from voicepipe.ingress import server
from voicepipe.ingress.access import (
    AccessControl,
    Attempt,
    Gone,
    agent_of,
    attempt,
    body,
    decoded,
    find_agent,
    mistake,
    nowhere,
    uncached,
    unless_gone,
)
from voicepipe.ingress.api_keys import Caller, ClientSecrets, HandedSecret, SecretRequest
from voicepipe.ingress.asgi_scope import peer_of
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.calls_api import CALLS, CallsInProgress
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.loopback_only import LocalOnly, check_exposure
from voicepipe.ingress.model_list import ModelList
from voicepipe.ingress.realtime.bounds import check_session
from voicepipe.ingress.realtime.clients import RealtimeClients
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.rights import Rights, effective_session
from voicepipe.ingress.realtime.session import VOICE, Session
from voicepipe.ingress.realtime.websocket import converse, listen_in
from voicepipe.ingress.sip import sip_server as sip
from voicepipe.ingress.telephony import telephony_http as telephony
from voicepipe.ingress.telephony.signatures import SIGNED
from voicepipe.ingress.trace_context import in_trace
from voicepipe.ingress.webrtc.webrtc_http import WebRtcHttp, prepared
from voicepipe.ingress.wire_errors import WireError
from voicepipe.operator_api import dashboard_http, metrics_http, pages
from voicepipe.operator_api.metrics_http import HEALTH, METRICS
from voicepipe.operator_api.records_http import RecordsHttp
from voicepipe.pop.incoming_calls_http import IncomingCallsHttp
from voicepipe.pop.upgrade_http import UpgradeHttp
from voicepipe.rtp.transport import UdpNetwork

logger = logging.getLogger(__name__)

WEB = Path(__file__).parents[1] / "web"
REALTIME = "/v1/realtime"
SUBPROTOCOL = "realtime"
RTT = "/rtt"


class Realtime:
    """The endpoints below /v1/realtime of one PoP."""

    def __init__(self, pop: PopApi, access: AccessControl, calls: Calls, secrets: ClientSecrets) -> None:
        self._pop = pop
        self._access = access
        self._calls = calls
        self._secrets = secrets

    async def websocket(self, socket: WebSocket) -> None:
        """GET /v1/realtime, refused by HTTP status before it is accepted."""
        with ExitStack() as resources:
            try:
                if (call_id := socket.query_params.get("call_id")) is not None:
                    if (before := self._pop.predecessor) and self._calls.is_elsewhere(call_id):
                        return await before.relay(socket)
                    who = self._access.caller(socket)
                    call = self._calls.find(call_id, who)
                    clients, rights = RealtimeClients.of(call), Rights.of(who, call.agent)
                    return await listen_in(socket, clients, _subprotocol(socket), rights)
                with attempt(self._pop, "websocket") as asked:
                    who = self._access.caller(socket)
                    asked.by(who.tenant)
                    begun = self._begun(who, socket, resources, asked)
                    clients = await self._access.carry_out(who, begun)
            except Gone:
                return
            except Refused as error:
                return await socket.send_denial_response(self._access.refuse(socket, error))
            except WireError as error:  # A key's session asks for what its agent has locked since.
                self._access.log_refusal(socket, 400, error)
                return await socket.send_denial_response(mistake(error))
            await socket.accept(_subprotocol(socket))
            await converse(socket, clients, partial(self._calls.known, who), Rights.of(who, clients.call.agent))

    async def _begun(self, who: Caller, socket: WebSocket, resources: ExitStack, asked: Attempt) -> RealtimeClients:
        """A call that was begun, whose slot and end belong to `resources`. Raises Refused, WireError."""
        limits = self._pop.config.limits
        who = await self._access.with_session(who)
        agent = find_agent(self._pop, who.tenant, who.agent or socket.query_params.get("model"))
        asked.by(who.tenant, agent)
        until = int(time.time() + limits.call_ms / 1000)
        session, settings = effective_session(self._pop.settings(agent), who, until)
        slot = resources.enter_context(self._pop.admit(who.tenant, agent))
        if agent.hooks.before_call:
            said = await unless_gone(socket, self._pop.ask_hook(slot, agent, NOWHERE, "websocket"))
            session, settings = effective_session(self._pop.settings(agent, NOWHERE, said), who, until)
            agent = settings.agent
        self._access.begins(who, "websocket")
        sound = session.audio
        line = WebSocketLine(sound.input.format, sound.output.format, peer=peer_of(socket), network=who.network)
        call = HostedCall(line, slot, in_trace(settings, socket), limits)
        resources.callback(call.close)
        return RealtimeClients(call, session, Rights.of(who, agent))

    async def client_secrets(self, request: Request) -> Response:
        """POST /v1/realtime/client_secrets: a key for a browser, and the session that it will have."""
        who = self._access.caller(request)
        if who.secret:
            raise Unauthorized("An ek_ key or a token cannot make ek_ keys: use the tenant's own.")
        sent = await self._access.carry_out(who, body(request, self._pop.config.limits.event_bytes))
        return await self._access.carry_out(who, self._secret(who, sent))

    async def _secret(self, who: Caller, sent: bytes) -> Response:
        asked = decoded(sent or b"{}", SecretRequest)
        agent = find_agent(self._pop, who.tenant, agent_of(asked))
        fresh = Caller(who.tenant, agent.name, bytes(asked.session), asked.locked)
        session, settings = effective_session(self._pop.settings(agent), fresh)
        check_session(session, self._pop.config.limits)
        # A directory makes keys of its own, and asks whether the session will do.
        made = ("", 0) if who.grant else self._secrets.make(fresh, asked.expires_after.seconds)
        shown = session.replaced(VOICE, self._voice_of(session, agent))
        shown = Rights.of(fresh, agent).shown(shown, settings)
        return uncached({"value": made[0], "expires_at": made[1], "session": shown})

    def _voice_of(self, session: Session, agent: Agent) -> str:
        asked = session.audio.output.voice
        known = self._pop.voice_for(asked) == asked
        return self._pop.voice_for(asked if known else agent.voice, agent.language)


async def rtt(request: Request) -> Response:
    """GET /rtt, without a key: an empty answer, by which a page measures the round trip to this PoP."""
    return Response(status_code=204, headers={"Cache-Control": "no-store", "Timing-Allow-Origin": "*"})


def _subprotocol(socket: WebSocket) -> str | None:
    return SUBPROTOCOL if SUBPROTOCOL in socket.scope["subprotocols"] else None


def _door(connection: HTTPConnection) -> DoorKind | None:
    """The kind of ingress at which a request or a WebSocket asks for a call; None: it asks for something else."""
    scope = connection.scope
    if scope["type"] == "websocket":
        return "websocket" if scope["path"] == REALTIME and "call_id" not in connection.query_params else None
    return "webrtc" if scope["path"] == CALLS and scope["method"] == "POST" else None


def app(pop: PopApi, calls: Calls, network: UdpNetwork, providers: telephony.Providers) -> Starlette:
    """The ASGI application of one PoP."""

    def knows(tenant: str) -> bool:
        return not pop.config.tenants or any(known.name == tenant for known in pop.config.tenants)

    secrets = ClientSecrets(knows=knows, made=partial(pop.takeover_parts.add, "ek_ keys"))
    pop.takeover_parts.join("ek_ keys", list[HandedSecret], secrets.handed_over, secrets.take_over, adds=True)
    access = AccessControl(pop, secrets, pop.config.limits.client_percent, pop.tokens)
    realtime = Realtime(pop, access, calls, secrets)

    def turned_away(connection: HTTPConnection, status: int, why: str) -> None:
        access.log_refusal(connection, status, why)
        if door := _door(connection):
            Attempt(pop, door).refused("forbidden", status)

    routes: list[BaseRoute] = [
        WebSocketRoute(REALTIME, realtime.websocket),
        Route("/v1/realtime/client_secrets", realtime.client_secrets, methods=["POST"]),
        *WebRtcHttp(pop, access, calls, network).routes(),
        *CallsInProgress(pop, access, calls).routes(),
        *IncomingCallsHttp(pop, access, calls).routes(),
        *ModelList(pop, access).routes(),
        *providers.routes(),
        Route(RTT, rtt),
        *metrics_http.health_routes(lambda: pop.health()),
        metrics_http.route(pop.may_scrape, pop.metrics.read),
        *dashboard_http.routes(pop, access, WEB),
        *RecordsHttp(pop, access).routes(),
        *UpgradeHttp(pop, access).routes(),
        Mount("/v1", nowhere),
        *pages.routes(WEB),
    ]
    origins, in_fleet = pop.config.http.origins, pop.tokens is not None
    middleware = []
    if origins or in_fleet:
        # A page that a directory has sent here has a token, and no other page has anything that would let it in.
        allowed = ("*",) if in_fleet else origins
        middleware.append(
            Middleware(CORSMiddleware, allow_origins=allowed, allow_methods=["*"], allow_headers=["*"],
                       expose_headers=["Location"])
        )  # fmt: skip
    public = (*SIGNED, RTT, METRICS, *(HEALTH if in_fleet else ()))
    middleware.append(Middleware(LocalOnly, log=turned_away, origins=origins, public=public, tokens=in_fleet,
                                 has_keys=lambda: bool(pop.config.tenants)))  # fmt: skip
    return Starlette(routes=routes, middleware=middleware, exception_handlers=access.answers())


async def serve(pop: PopApi, listener: socket.socket | None = None) -> None:
    """Serve one PoP until cancelled; `listener` from `server.bind`, where it is made early. Sets `pop.serving`. Where
    the PoP replaces another process, it takes the sockets over from that.

    Raises ConfigError: the address cannot be had, or would let strangers call.
    """
    check_exposure(pop.config)
    calls = Calls(pop.takeover_parts)
    network = await asyncio.to_thread(prepared, pop.config)
    providers = await asyncio.to_thread(telephony.Providers, pop, calls)  # it reads certificates
    application = await asyncio.to_thread(app, pop, calls, network, providers)  # it looks at files
    phones, before = sip.server_of(pop, calls), pop.predecessor
    taken = await before.sockets(pop.takeover_parts) if before else None
    listening = taken.http if taken else listener or server.bind(pop.config.http)
    async with sip.listening(phones, taken.sip if taken else None):
        room = await asyncio.to_thread(open_files.for_calls, pop.config.pop.slots)
        message_bytes = pop.config.limits.message_bytes
        serving = server.serve(application, listening, pop.config.http, room, message_bytes, pop.serving, pop.rereads,
                               lambda http: pop.successor.fronts(http, phones))  # fmt: skip
        jobs: set[asyncio.Task[Any]] = {asyncio.create_task(job) for job in (serving, calls.run())}
        tidying = asyncio.create_task(supervised("ending calls left behind", providers.tidy_up))
        ready = asyncio.create_task(pop.serving.wait())
        try:
            await asyncio.wait({*jobs, ready}, return_when=asyncio.FIRST_COMPLETED)
            if phones and pop.serving.is_set():
                phones.resume()
            done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            for job in done:
                job.result()
        finally:
            jobs |= {tidying, ready}
            for job in jobs:
                job.cancel()
            await asyncio.wait(jobs)
            await providers.close()

"""Begins WebRTC calls over HTTP, and lists the servers by which callers reach us from behind a firewall."""

import base64
import hashlib
import hmac
import logging
import socket
import time
from contextlib import ExitStack
from typing import Any

import ifaddr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.audio import opus
from voicepipe.base.errors import ConfigError
from voicepipe.base.round_robin import owned_by
from voicepipe.call_api import PopApi
from voicepipe.call_settings import NOWHERE, CallSettings
from voicepipe.config import Config
from voicepipe.config.credentials import secret_of
from voicepipe.config.pop_config import WebRtcConfig
from voicepipe.config.rereads import Use
from voicepipe.ingress.access import AccessControl, Attempt, attempt, body, find_agent, unless_gone
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.calls_api import CALLS
from voicepipe.ingress.loopback_only import is_loopback
from voicepipe.ingress.realtime.bounds import check_session
from voicepipe.ingress.realtime.rights import Rights, effective_session, permitted
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.trace_context import in_trace
from voicepipe.ingress.webrtc import offer
from voicepipe.ingress.webrtc.peer import WebRtcCall
from voicepipe.ingress.webrtc.unconnected import UnconnectedCalls
from voicepipe.ingress.wire_errors import WireError
from voicepipe.rtp import sdp
from voicepipe.rtp.sdp_text import SdpError
from voicepipe.rtp.transport import UdpNetwork, certificate

logger = logging.getLogger(__name__)


def prepared(config: Config) -> UdpNetwork:
    """The media settings, from the configuration and this machine's addresses. Slow work is done here: the codec's
    library is loaded, this process's certificate made. Raises ConfigError."""
    opus.load()
    certificate()
    webrtc, host = config.webrtc, config.http.host
    addresses = webrtc.addresses
    for address in addresses:
        _try(address)
    if not addresses and host not in ("0.0.0.0", "::"):
        addresses = ("127.0.0.1",) if host == "localhost" else (host,)
    if not addresses:
        found = [ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips if isinstance(ip.ip, str)]
        addresses = tuple(sorted(found, key=is_loopback))
    return UdpNetwork(addresses, webrtc.public_address, (webrtc.first_port, webrtc.last_port))


def _try(address: str) -> None:
    """Raises ConfigError: the address is not this machine's."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError as error:
        raise ConfigError(
            f"webrtc.addresses: {address} is no address of this machine ({error.strerror}); what a NAT shows for it "
            "belongs in webrtc.public_address"
        ) from error


class WebRtcHttp:
    """The HTTP endpoints for WebRTC: POST /v1/realtime/calls, and /v1/realtime/ice-servers. Endpoints for all calls are
    in `calls_api.py`."""

    def __init__(self, pop: PopApi, access: AccessControl, calls: Calls, network: UdpNetwork) -> None:
        self._pop = pop
        self._access = access
        self._calls = calls
        self._network = network
        self._turn_secret = secret_of(pop.config, "webrtc.turn_secret")
        self._waiting = UnconnectedCalls(lambda: pop.config)
        pop.rereads.join(self._reread)

    def _reread(self, config: Config) -> Use:
        """The secret that coturn has, too, as `Rereads` has it."""
        secret = secret_of(config, "webrtc.turn_secret")

        def use() -> None:
            self._turn_secret = secret

        return use

    def routes(self) -> list[BaseRoute]:
        return [
            Route(CALLS, self.create, methods=["POST"]),
            Route("/v1/realtime/ice-servers", self.ice_servers),
        ]

    async def create(self, request: Request) -> Response:
        """POST: an offer as SDP, or as a form of `sdp` and `session`. 201 with our answer; Location is the call."""
        longest = offer.OFFER_BYTES + self._pop.config.limits.event_bytes
        try:
            with attempt(self._pop, "webrtc") as asked:
                who = self._access.caller(request)
                asked.by(who.tenant)
                sent = await self._access.carry_out(who, body(request, longest))
                call_id, answer = await self._access.carry_out(who, self._placed(who, request, sent, asked))
        except SdpError as error:
            raise WireError("invalid_offer", str(error), "sdp") from None
        return Response(answer, 201, {"Location": f"{CALLS}/{call_id}"}, media_type=offer.SDP)

    async def _placed(self, who: Caller, request: Request, sent: bytes, asked: Attempt) -> tuple[str, str]:
        who = await self._access.with_session(who)
        sent_sdp, patch = await offer.read(request.headers, sent, self._pop.config.limits.event_bytes)
        model = patch.get("model")
        named = model if isinstance(model, str) else request.query_params.get("model")
        agent = find_agent(self._pop, who.tenant, who.agent or named)
        asked.by(who.tenant, agent)
        begins = self._begins(self._pop.settings(agent), who, request, patch)
        with ExitStack() as resources, ExitStack() as waits:
            waits.enter_context(self._waiting.slot(who))
            slot = resources.enter_context(self._pop.admit(who.tenant, agent))
            if agent.hooks.before_call:
                said = await unless_gone(request, self._pop.ask_hook(slot, agent, NOWHERE, "webrtc"))
                begins = self._begins(self._pop.settings(agent, NOWHERE, said), who, request, patch)
            self._access.begins(who, "webrtc")
            session, settings, rights = begins
            settings = in_trace(session.settings(settings), request)
            described, config = sdp.read(sent_sdp), self._pop.config
            call = WebRtcCall(described, self._network, slot, session, settings, config, rights, who.network)
            try:
                with owned_by(call.hosted.id):  # So are the sockets that it opens.
                    answer = await call.answer()
                call.waits = waits.pop_all()
                return self._calls.adopt(call, who, resources), answer
            except BaseException:
                await call.close()
                raise

    def _begins(
        self, settings: CallSettings, who: Caller, request: Request, patch: dict[str, Any]
    ) -> tuple[Session, CallSettings, Rights]:
        """The session with which the call begins, the settings that it changes, and its client's rights. Raises
        WireError."""
        try:
            until = int(time.time() + self._pop.config.limits.call_ms / 1000)
            session, settings = effective_session(settings, who, until)
        except WireError as error:  # A key's session asks for what its agent has locked since.
            self._access.log_refusal(request, 400, error)
            raise
        rights = Rights.of(who, settings.agent)
        session = permitted(rights, session, patch, settings)
        check_session(session, self._pop.config.limits)
        return session, settings, rights

    async def ice_servers(self, request: Request) -> Response:
        """GET: STUN and TURN servers as a browser's RTCPeerConnection takes them."""
        self._access.caller(request)
        servers = ice_servers(self._pop.config.webrtc, self._turn_secret, time.time())
        return JSONResponse({"ice_servers": servers})


def ice_servers(webrtc: WebRtcConfig, secret: str, now: float) -> list[dict[str, Any]]:
    """As `RTCPeerConnection` takes them; empty where none is configured. `now`: Unix seconds."""
    if not webrtc.turn_urls:
        return []
    username = f"{int(now) + webrtc.turn_ttl_s}:voicepipe"
    credential = base64.b64encode(hmac.new(secret.encode(), username.encode(), hashlib.sha1).digest()).decode()
    return [{"urls": list(webrtc.turn_urls), "username": username, "credential": credential}]

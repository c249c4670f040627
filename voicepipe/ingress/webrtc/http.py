"""Place a WebRTC call over HTTP, and how to reach us from behind a firewall."""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from typing import Any

import ifaddr
import msgspec
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.audio import opus
from voicepipe.call_api import PopApi
from voicepipe.config import Config, turn_secret
from voicepipe.errors import ConfigError
from voicepipe.foreign_json import decode
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.calls_api import CALLS
from voicepipe.ingress.doors import Doors, body, find_agent, permitted, settle
from voicepipe.ingress.keys import Caller
from voicepipe.ingress.local import is_loopback
from voicepipe.ingress.realtime.bounds import check_session
from voicepipe.ingress.realtime.errors import WireError
from voicepipe.ingress.webrtc.ice_servers import ice_servers
from voicepipe.ingress.webrtc.peer import WebRtcCall
from voicepipe.ingress.webrtc.waiting import Waiting
from voicepipe.rtp import sdp
from voicepipe.rtp.sdp_text import SdpError
from voicepipe.rtp.transport import Network, certificate

logger = logging.getLogger(__name__)
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # what is wrong with a form is told to its sender

SDP = "application/sdp"
OFFER_BYTES = 64 * 1024
"""Of a form beside its session; a browser's offer of sound has 5 kB."""
PIECE_BYTES = 16 * 1024
"""Of a form, at a time."""


def prepared(config: Config) -> Network:
    """Where media are received, from the configuration and this machine's addresses. What takes time is done: the
    codec's library is loaded, this process's certificate made. Raises ConfigError."""
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
    return Network(addresses, webrtc.public_address, (webrtc.first_port, webrtc.last_port))


def _try(address: str) -> None:
    """Raises ConfigError: it is not this machine's."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError as error:
        raise ConfigError(
            f"webrtc.addresses: {address} is no address of this machine ({error.strerror}); what a NAT shows for it "
            "belongs in webrtc.public_address"
        ) from error


class CallsApi:
    """POST /v1/realtime/calls, and /v1/realtime/ice-servers. What can be done with any call is in `calls_api.py`."""

    def __init__(self, pop: PopApi, doors: Doors, calls: Calls, network: Network) -> None:
        self._pop = pop
        self._doors = doors
        self._calls = calls
        self._network = network
        self._turn_secret = turn_secret(pop.config)
        self._waiting = Waiting(pop.config)

    def routes(self) -> list[BaseRoute]:
        return [
            Route(CALLS, self.create, methods=["POST"]),
            Route("/v1/realtime/ice-servers", self.ice_servers),
        ]

    async def create(self, request: Request) -> Response:
        """POST: an offer as SDP, or as a form of `sdp` and `session`. 201 with our answer; Location is the call."""
        who = self._doors.caller(request)
        longest = OFFER_BYTES + self._pop.config.limits.event_bytes
        sent = await self._doors.carry_out(who, body(request, longest))
        try:
            call_id, answer = await self._doors.carry_out(who, self._placed(who, request, sent))
        except SdpError as error:
            raise WireError("invalid_offer", str(error), "sdp") from None
        return Response(answer, 201, {"Location": f"{CALLS}/{call_id}"}, media_type=SDP)

    async def _placed(self, who: Caller, request: Request, sent: bytes) -> tuple[str, str]:
        offer, asked = await _offer(request.headers, sent, self._pop.config.limits.event_bytes)
        model = asked.get("model")
        named = model if isinstance(model, str) else request.query_params.get("model")
        agent = find_agent(self._pop, who.tenant, who.agent or named)
        try:
            session, settings = settle(agent, who, int(time.time() + self._pop.config.limits.call_ms / 1000))
        except WireError as error:  # A key's session asks for what its agent has locked since.
            self._doors.tell(request, 400, error)
            raise
        rights = who.rights(agent)
        session = permitted(rights, session, asked, agent)
        check_session(session, self._pop.config.limits)
        with ExitStack() as place, ExitStack() as waits:
            waits.enter_context(self._waiting.place(who))
            seat = place.enter_context(self._pop.admit(who.tenant, agent))
            self._doors.begins(who)
            settings = session.settings(settings)
            call = WebRtcCall(sdp.read(offer), self._network, seat, session, settings, self._pop.config, rights)
            try:
                answer = await call.answer()
                call.waits = waits.pop_all()
                return self._calls.hold(call, who, place), answer
            except BaseException:
                await call.close()
                raise

    async def ice_servers(self, request: Request) -> Response:
        """GET: STUN and TURN servers as a browser's RTCPeerConnection takes them."""
        self._doors.caller(request)
        servers = ice_servers(self._pop.config.webrtc, self._turn_secret, time.time())
        return JSONResponse({"ice_servers": servers})


async def _offer(headers: Headers, sent: bytes, most: int) -> tuple[str, dict[str, Any]]:
    """The offer, and what of the session the caller asks for in `most` bytes at most. Raises WireError."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == SDP:
        return sent.decode(errors="replace"), {}
    if kind != "multipart/form-data":
        raise WireError("invalid_value", f"Send the offer as {SDP}, or as multipart/form-data with the parts sdp and "
                        "session.", "content-type")  # fmt: skip
    try:
        form = await MultiPartParser(_boundary(headers), _pieces(sent), max_files=2, max_fields=4).parse()
    except MultiPartException as error:
        raise WireError("invalid_value", f"The form cannot be read: {error.message}", "content-type") from None
    parts = {name: await _text(form[name]) for name in ("sdp", "session") if name in form}
    await form.close()
    if "sdp" not in parts:
        raise WireError("missing_required_parameter", "The form has no part 'sdp'.", "sdp")
    session = (parts.get("session") or "{}").encode(errors="replace")
    if len(session) > most:
        too_long = f"The part 'session' is over {most} bytes, the most that is taken: shorten it."
        raise WireError("invalid_value", too_long, "session")
    try:
        return parts["sdp"], decode(session, dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError("invalid_json", f"The part 'session' is no JSON object: {error}.", "session") from None


def _boundary(headers: Headers) -> Headers:
    """What a form's parser needs to know, and no charset: forms have none (RFC 7578, 5.1.2), and some that Python knows
    take seconds for a long text."""
    _, parameters = parse_options_header(headers["content-type"])
    boundary = parameters.get(b"boundary", b"").decode("latin-1")
    if not boundary or set(boundary) & {'"', "\\"}:
        raise WireError("invalid_value", "The form's content-type names no boundary of its parts.", "content-type")
    return Headers({"content-type": f'multipart/form-data; boundary="{boundary}"'})


async def _pieces(data: bytes) -> AsyncGenerator[bytes, None]:
    """The parser reads each in one step of the event loop."""
    for start in range(0, len(data), PIECE_BYTES):
        yield data[start : start + PIECE_BYTES]
        await asyncio.sleep(0)


async def _text(part: Any) -> str:
    return part if isinstance(part, str) else (await part.read()).decode(errors="replace")

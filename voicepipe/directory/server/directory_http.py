"""A directory's HTTP server: it tells callers where to call, and relays for those who cannot ask."""

import math
import ssl
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal

import httpx
import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from voicepipe.base.places import Place, distance_km
from voicepipe.base.trust import for_sockets
from voicepipe.config.credentials import OperatorKeys
from voicepipe.config.directory_config import DirectoryConfig
from voicepipe.config.rereads import Rereads
from voicepipe.directory.directory import Directory, Placement
from voicepipe.directory.editions.directory_editions import DirectoryEditions
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.directory.router import TAKES
from voicepipe.directory.server.call_placement import (
    CallPlacing,
    CallRequest,
    DirectoryRules,
    PhonePlacing,
    network_of_client,
)
from voicepipe.directory.server.fleet_metrics import FleetMetrics
from voicepipe.directory.server.operator import OperatorAccess, OperatorApi
from voicepipe.directory.server.provider_webhooks import ProviderWebhooks
from voicepipe.directory.server.records_proxy import RecordsProxy
from voicepipe.directory.server.relay import Relay
from voicepipe.directory.server.relay_drain import RelayDrain
from voicepipe.directory.server.request_proxy import TIMEOUT, RequestProxy
from voicepipe.directory.server.secrets import FleetKeys, SecretsApi
from voicepipe.directory.signed_keys import SignedKeys
from voicepipe.directory.tokens import VALID_S
from voicepipe.ingress.access import AccessControl, body, decoded, nowhere, uncached
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.loopback_only import LocalOnly
from voicepipe.ingress.telephony.signatures import SIGNED
from voicepipe.operator_api import metrics_http, pages
from voicepipe.operator_api.metrics_http import METRICS

REGIONS_AGE_S = 30
"""Seconds for which a client may keep the list of regions."""
PERCENT = 25
"""Percent of the server's time for one `ek_` key; one tenant has twice as much, so that none has all of it."""
KEPT_S = 4.0
"""Seconds for which an unused connection to a PoP is kept: PoPs close theirs after 5 s, and a request that meets that
would be lost."""
WEB = Path(__file__).parents[2] / "web"


Status = Literal["ok", "cut_off", "no_pops", "draining"]


class DirectoryHealth(msgspec.Struct, frozen=True, omit_defaults=True):
    """Body of GET /healthz at a directory."""

    status: Status
    pops: int
    """PoPs that take calls."""
    relayed: int
    """Calls that go through the directory."""
    warning: str = ""
    """Files cannot be used as they are now: of the certificate, of a configuration that was read again."""


class DirectoryApi:
    """The HTTP endpoints for callers who ask where to call."""

    def __init__(
        self,
        directory: Directory,
        access: AccessControl,
        placement: CallPlacing,
        relay_drain: RelayDrain,
        rereads: Rereads[DirectoryConfig],
    ) -> None:
        self._directory = directory
        self._rereads = rereads
        self._access = access
        self._placement = placement
        self._relay_drain = relay_drain

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1/calls", self.calls, methods=["POST"]),
            Route("/v1/regions", self.regions),
            *metrics_http.health_routes(self._health),
        ]

    async def calls(self, request: Request) -> Response:
        """POST: up to three PoPs for this call, the best first, with a token for each."""
        who = self._access.caller(request)
        sent = await body(request)
        return await self._access.carry_out(who, self._placed(who, sent, network_of_client(request)))

    async def _placed(self, who: Caller, sent: bytes, network: str) -> Response:
        placement = await self._placement.place(who, decoded(sent or b"{}", CallRequest), network)
        return uncached(_answer(placement))

    async def regions(self, request: Request) -> Response:
        """GET: the PoPs with their addresses, the nearest to the directory first."""
        self._access.caller(request)
        here = self._placement.here
        rows = [_region(seen) for seen in sorted(self._directory.pops(), key=lambda seen: _distance(seen, here))]
        return JSONResponse({"regions": rows}, headers={"Cache-Control": f"max-age={REGIONS_AGE_S}"})

    def _health(self) -> DirectoryHealth:
        pops = [seen for seen in self._directory.pops() if seen.condition.status in TAKES]
        status: Status = "cut_off" if self._directory.is_cut_off else "ok" if pops else "no_pops"
        if self._relay_drain.has_begun:
            status = "draining"
        return DirectoryHealth(status, len(pops), self._relay_drain.calls, self._rereads.warning)


async def _to_map(request: Request) -> Response:
    """Redirects from the address of a PoP's dashboard to the fleet's."""
    return RedirectResponse("map")


def app(
    rules: DirectoryRules,
    directory: Directory,
    signed_keys: SignedKeys,
    operator: OperatorKeys,
    client: httpx.AsyncClient,
    beside: Sequence[BaseRoute] = (),
    relay_drain: RelayDrain | None = None,
    editions: DirectoryEditions | None = None,
) -> Starlette:
    """The ASGI application of a directory. `client` reaches PoPs; `beside` is served besides its own endpoints;
    `relay_drain` is notified when it is to be stopped; `editions`: None if it takes no pushes."""
    config, relay_drain = rules.config, relay_drain or RelayDrain()
    metrics = FleetMetrics(config.directory.id)
    directory.followers.append(metrics)

    def read(accept: str) -> Callable[[], tuple[bytes, str]]:
        return metrics.read(accept, directory.heard(), relay_drain.calls, directory.is_cut_off)

    access = AccessControl(rules.keys, FleetKeys(signed_keys, rules.keys), PERCENT)
    operators = OperatorAccess(rules.keys, operator)
    rules.rereads.join(operators.reread)
    placement = CallPlacing(rules, directory, signed_keys)
    proxy = RequestProxy(access, directory, placement, client)
    middleware = []
    if config.http.origins:
        middleware.append(Middleware(CORSMiddleware, allow_origins=config.http.origins, allow_methods=["*"],
                                     allow_headers=["*"], expose_headers=["Location"]))  # fmt: skip
    public = (METRICS, *SIGNED)
    middleware.append(Middleware(LocalOnly, log=access.log_refusal, origins=config.http.origins, public=public,
                                 has_keys=lambda: bool(rules.config.tenants)))  # fmt: skip
    routes: list[BaseRoute] = [
        *DirectoryApi(directory, access, placement, relay_drain, rules.rereads).routes(),
        WebSocketRoute(
            "/v1/realtime", Relay(access, placement, proxy, relay_drain, for_sockets(config.tls.ca)).websocket
        ),
        *SecretsApi(access, signed_keys, proxy).routes(),
        *proxy.routes(),
        *RecordsProxy(access, directory, operators, proxy).routes(),
        *ProviderWebhooks(rules, directory, PhonePlacing(rules, directory), proxy).routes(),
        *OperatorApi(directory, operators, editions).routes(),
        metrics_http.route(operators.may_scrape, read),
        *beside,
        Mount("/v1", nowhere),
        Route("/map", pages.page(WEB / "map.html")),
        Route("/dashboard", _to_map),
        Route("/calls", pages.page(WEB / "calls.html")),
        *pages.routes(WEB),
    ]
    return Starlette(routes=routes, middleware=middleware, exception_handlers=access.answers())


def reaching_pops(verify: ssl.SSLContext | bool = True) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    """Yields the client that forwards requests: connections to PoPs stay open, since call set-ups have no time to
    spare. Their number is limited for each PoP (`request_proxy.MOST_AT_ONE`), so that a PoP that was stopped does not
    take all of them. `verify`: whose certificates are trusted."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=KEPT_S)
    return httpx.AsyncClient(timeout=TIMEOUT, limits=limits, follow_redirects=False, trust_env=True, verify=verify)


def _answer(placement: Placement) -> dict[str, Any]:
    candidates = [
        {"pop": offer.pop, "url": offer.url, "token": offer.token, "turn_ms_est": offer.turn_ms}
        for offer in placement.offers
    ]
    return {
        "call_id": placement.placement_id,
        "expires_in": int(VALID_S),
        "degraded": placement.degraded,
        "candidates": candidates,
    }


def _region(seen: SeenPop) -> dict[str, Any]:
    its = seen.condition
    urls = {kind: its.call_url(kind) for kind in its.kinds}
    return {"region": its.region, "pop": seen.pop, "url": its.url, "urls": urls, "probe": f"{its.url}/rtt"}


def _distance(seen: SeenPop, here: Place | None) -> float:
    """The distance for sorting; unknown ones come last, as in a choice."""
    place = seen.condition.place
    return distance_km(here, place) if here and place else math.inf

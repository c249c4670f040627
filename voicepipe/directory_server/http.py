"""Where to call: asked by callers who then connect to a PoP by themselves."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from voicepipe.call_api import Grant, Tenant
from voicepipe.directory.directory import Directory, Placement
from voicepipe.directory.router import TAKES, Wanted
from voicepipe.directory.tokens import VALID_S
from voicepipe.directory.view import Seen
from voicepipe.directory_config import DirectoryConfig
from voicepipe.ingress.doors import Doors, body, decoded, nowhere
from voicepipe.ingress.local import LocalOnly
from voicepipe.places import Place, distance_km, place_of
from voicepipe.tenants import Tenants

MOST_TOLD = 64
"""PoPs whose round trips a caller may tell, and those that they have tried."""
REGIONS_AGE_S = 30
"""So long a client may keep the list of regions."""
Text = Annotated[str, Meta(max_length=200)]
Pop = Annotated[str, Meta(max_length=64)]


class Require(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a PoP must have."""

    agent: Text = ""
    language: Text = ""
    model: Text = ""
    zone: Text = ""


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST /v1/calls."""

    kind: Annotated[str, Meta(pattern="^(websocket|webrtc)$")] = "websocket"
    rtt_ms: Annotated[dict[Pop, Annotated[float, Meta(ge=0, le=10_000)]], Meta(max_length=MOST_TOLD)] = {}
    place: Place | None = None
    require: Require = Require()
    tried: Annotated[tuple[Pop, ...], Meta(max_length=MOST_TOLD)] = ()


class DirectoryApi:
    """The endpoints."""

    def __init__(self, config: DirectoryConfig, directory: Directory, doors: Doors) -> None:
        self._directory = directory
        self._doors = doors
        self._here = place_of(config.directory.place)
        self._zones = {tenant.name: tenant.zone for tenant in config.tenants}

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1/calls", self.calls, methods=["POST"]),
            Route("/v1/regions", self.regions),
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
            Mount("/v1", nowhere),
        ]

    async def calls(self, request: Request) -> Response:
        """POST: up to three places where this call may go, the best first, with a token for each."""
        who = self._doors.caller(request)
        sent = await body(request)
        return await self._doors.carry_out(who, self._placed(who.tenant, sent))

    async def _placed(self, tenant: Tenant, sent: bytes) -> Response:
        asked = decoded(sent or b"{}", Asked)
        wanted = Wanted(
            kind=asked.kind,
            place=asked.place or self._here,
            rtt_ms=asked.rtt_ms,
            zone=self._zones.get(tenant.name) or asked.require.zone,
            agent=asked.require.agent,
            language=asked.require.language,
            model=asked.require.model,
            tried=frozenset(asked.tried),
        )
        grant = Grant(id="", tenant=tenant.name, agents=tenant.agents, slots=tenant.slots)
        return JSONResponse(_answer(await self._directory.place(wanted, grant)), headers={"Cache-Control": "no-store"})

    async def regions(self, request: Request) -> Response:
        """GET: the PoPs, the nearest to the directory first, and where callers reach them."""
        self._doors.caller(request)
        rows = [_region(seen) for seen in sorted(self._directory.pops(), key=lambda seen: _distance(seen, self._here))]
        return JSONResponse({"regions": rows}, headers={"Cache-Control": f"max-age={REGIONS_AGE_S}"})

    async def healthz(self, request: Request) -> Response:
        return JSONResponse(self._health())

    async def readyz(self, request: Request) -> Response:
        health = self._health()
        return JSONResponse(health, 200 if health["status"] == "ok" else 503)

    def _health(self) -> dict[str, Any]:
        pops = [seen for seen in self._directory.pops() if seen.condition.status in TAKES]
        status = "cut_off" if self._directory.is_cut_off else "ok" if pops else "no_pops"
        return {"status": status, "pops": len(pops)}


def app(config: DirectoryConfig, directory: Directory, tenants: Tenants) -> Starlette:
    """The ASGI application of one directory."""
    doors = Doors(tenants)
    middleware = []
    if not config.tenants:
        middleware.append(Middleware(LocalOnly, tell=doors.tell, origins=config.http.origins))
    if config.http.origins:
        middleware.append(Middleware(CORSMiddleware, allow_origins=config.http.origins, allow_methods=["*"],
                                     allow_headers=["*"]))  # fmt: skip
    routes = DirectoryApi(config, directory, doors).routes()
    return Starlette(routes=routes, middleware=middleware, exception_handlers=doors.answers())


def _answer(placement: Placement) -> dict[str, Any]:
    candidates = [
        {"pop": offer.pop, "url": offer.url, "token": offer.token, "turn_ms_est": offer.turn_ms}
        for offer in placement.offers
    ]
    return {
        "call_id": placement.call,
        "expires_in": int(VALID_S),
        "degraded": placement.degraded,
        "candidates": candidates,
    }


def _region(seen: Seen) -> dict[str, Any]:
    urls = seen.condition.urls
    return {"region": seen.condition.region, "pop": seen.pop, "urls": urls}


def _distance(seen: Seen, here: Place | None) -> float:
    place = seen.condition.place
    return distance_km(here, place) if here and place else 0.0

"""Monitoring of a server: GET /metrics for Prometheus, with its keys; health checks for load balancers."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from voicepipe.base.errors import Unauthorized
from voicepipe.ingress.access import uncached
from voicepipe.ingress.api_keys import key_of
from voicepipe.ingress.asgi_scope import pays
from voicepipe.ingress.loopback_only import asks_from_here

METRICS = "/metrics"
HEALTH = "/healthz", "/readyz"
"""Path of the health check of load balancers and Kubernetes. With tenants it is open to everybody, and so it is at a
PoP of a fleet."""


class HasStatus(Protocol):
    """Has a health status."""

    @property
    def status(self) -> str:
        """The status of a server; "ok" while it takes calls."""


def health_routes(health: Callable[[], HasStatus]) -> list[Route]:
    """/healthz answers with 200 as long as the server does, /readyz with 503 unless calls are taken. As Kubernetes' own
    servers do, /readyz?exclude=full leaves a check out: it answers 200 while the status is "full", too."""

    async def healthz(request: Request) -> Response:
        return uncached(health())

    async def readyz(request: Request) -> Response:
        now = health()
        return uncached(now, 200 if now.status in ("ok", *request.query_params.getlist("exclude")) else 503)

    return [Route(path, endpoint) for path, endpoint in zip(HEALTH, (healthz, readyz), strict=True)]


def route(may_scrape: Callable[[str | None], bool], read: Callable[[str], Callable[[], tuple[bytes, str]]]) -> Route:
    """GET /metrics, for holders of a key that `may_scrape` allows; where it allows none, for this machine only. `read`:
    as `MetricsApi.read`."""

    async def metrics(request: Request) -> Response:
        key = key_of(request.headers.get("authorization"), [])
        if not may_scrape(key):
            raise Unauthorized(
                "/metrics is opened by the key of http.metrics_key_env, or the operator's: send one of them."
            )
        if key:
            pays(request)
        elif not asks_from_here(request.scope):
            raise Unauthorized(
                "Without a key /metrics answers this machine alone: set http.metrics_key_env, and send it."
            )
        body, content_type = await asyncio.to_thread(read(request.headers.get("accept", "")))
        return Response(body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    return Route(METRICS, metrics)

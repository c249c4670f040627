"""GET /metrics: what Prometheus scrapes, and who may."""

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from voicepipe.errors import Unauthorized
from voicepipe.ingress.keys import key_of
from voicepipe.ingress.local import asks_from_here
from voicepipe.ingress.scope import pays

METRICS = "/metrics"


def route(may_scrape: Callable[[str | None], bool], read: Callable[[str], Callable[[], tuple[bytes, str]]]) -> Route:
    """Whoever has a key of which `may_scrape` says so; where it says so of none, this machine alone. `read`: as
    `MetricsApi.read`."""

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

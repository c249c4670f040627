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


def route(may_scrape: Callable[[str], bool], read: Callable[[str], Callable[[], tuple[bytes, str]]]) -> Route:
    """This machine may ask, and from elsewhere who has a key of which `may_scrape` says so. `read`: as
    `MetricsApi.read`."""

    async def metrics(request: Request) -> Response:
        key = key_of(request.headers.get("authorization"), [])
        if not (may_scrape(key) if key else asks_from_here(request.scope)):
            raise Unauthorized(
                "/metrics answers this machine, and whoever sends the key of http.metrics_key_env as a bearer token."
            )
        pays(request)
        body, content_type = await asyncio.to_thread(read(request.headers.get("accept", "")))
        return Response(body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    return Route(METRICS, metrics)

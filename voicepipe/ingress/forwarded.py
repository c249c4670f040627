"""Requests that a proxy has passed on count by the address that they come from, and not by the proxy's."""

import time

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from voicepipe.ingress.accept import TOLD
from voicepipe.ingress.refusals import RefusalLog
from voicepipe.ingress.scope import REFUSALS, VISIT
from voicepipe.ingress.visits import Visit


class Forwarded:
    """ASGI, within uvicorn's own middleware: that has put a trusted proxy's `X-Forwarded-For` into `client`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit: Visit = scope["state"][VISIT]
        client = scope["client"][0] if scope["client"] else visit.source
        if visit.asks(client, time.monotonic()):
            return await self._app(scope, receive, send)
        refusals: RefusalLog = scope["state"][REFUSALS]
        refusals.tell(client, "requests from %s, by the proxy %s, are refused: too many", client, visit.source)
        response = Response(TOLD, 429, {"Retry-After": "2"}, "application/json")
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(response)
        else:
            await response(scope, receive, send)

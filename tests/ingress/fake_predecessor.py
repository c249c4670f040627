"""The process before a PoP's own: it keeps what it is asked and passed on."""

import asyncio
import socket

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.websockets import WebSocket

from voicepipe.base.takeover import TakenSockets, TakeoverParts


class FakePredecessor:
    """Implements `PredecessorApi`. `http`: the socket that it hands over."""

    http: socket.socket

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.asked: list[tuple[str, bytes]] = []
        self.relayed: list[str] = []
        self.passed: list[bytes] = []

    async def sockets(self, parts: TakeoverParts) -> TakenSockets:
        return TakenSockets(self.http, None)

    async def ask(self, request: Request, body: bytes) -> Response:
        self.asked.append((request.url.path, body))
        return PlainTextResponse("from before", 202)

    async def relay(self, socket: WebSocket) -> None:
        self.relayed.append(str(socket.url.query))
        await socket.accept()
        await socket.close()

    def pass_on(self, data: bytes, source: tuple[str, int]) -> None:
        self.passed.append(data)

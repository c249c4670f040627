"""Sends the messages of an outbox on a WebSocket, at its client's pace. A client that does not read them is
disconnected."""

import asyncio
from collections import deque
from collections.abc import Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from voicepipe.ingress.asgi_scope import LINGER, peer_of


class Outbox:
    """Messages that wait to be sent. Over `limit` bytes it is full: `on_full` is called, and nothing more is taken."""

    def __init__(self, limit: int, on_full: Callable[[], None]) -> None:
        self._limit = limit
        self._on_full: Callable[[], None] | None = on_full
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self.closed = False

    def put(self, message: bytes) -> None:
        """Queue a message; nothing happens once it is closed."""
        if self.closed:
            return
        self._bytes += len(message)
        if self._bytes <= self._limit:
            self._messages.append(message)
            self._changed.set()
            return
        on_full = self._on_full
        self._messages.clear()
        self.close()
        if on_full:
            on_full()

    def close(self) -> None:
        """Take no more messages; those that are queued are still sent."""
        self.closed = True
        self._on_full = None  # It knows the client, which knows us.
        self._changed.set()

    async def get(self) -> bytes | None:
        """The next message; None: there will be none."""
        while not self._messages and not self.closed:
            self._changed.clear()
            await self._changed.wait()
        if not self._messages:
            return None
        message = self._messages.popleft()
        self._bytes -= len(message)
        return message


class SocketSender:
    """Sends the messages of an outbox on one WebSocket, and ends it."""

    def __init__(self, socket: WebSocket) -> None:
        self.peer = peer_of(socket)
        """The client's connection."""
        self._socket = socket

    async def write(self, outbox: Outbox, code: Callable[[], int] = lambda: 1000) -> None:
        """Send until the outbox is closed and empty, then close the socket with the close code of RFC 6455 that `code`
        gives by then."""
        try:
            while (message := await outbox.get()) is not None:
                await self._socket.send_text(message.decode())
            await self._socket.close(code())
        except (WebSocketDisconnect, RuntimeError):  # gone; Starlette raises the second after a close
            outbox.close()

    async def flush(self, writer: "asyncio.Task[None]") -> None:
        """Give the other side a while to take what is left for it. `writer` runs `write`, whose outbox is closed."""
        done, _ = await asyncio.wait({writer}, timeout=LINGER)
        if not done:
            writer.cancel()
            self.peer.abort()

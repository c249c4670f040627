"""A network with a round trip between a caller and a PoP that are on one machine: TCP, each way held back by half."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast


class _Late(asyncio.Protocol):
    """One end of a connection: what it gets, the other end sends `delay_s` later, in the same order."""

    def __init__(self, delay_s: float) -> None:
        self.other: _Late | None = None
        self._delay_s = delay_s
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[tuple[float, bytes | None]] = deque()
        """When it is due; None: the connection ends."""
        self._early: list[bytes | None] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, and does not say so.
        for data in self._early:
            self._put(data)

    def data_received(self, data: bytes) -> None:
        assert self.other
        self.other.deliver(data)

    def connection_lost(self, exc: Exception | None) -> None:
        assert self.other
        self.other.deliver(None)

    def deliver(self, data: bytes | None) -> None:
        """Send this after the delay."""
        self._waiting.append((time.monotonic() + self._delay_s, data))
        if len(self._waiting) == 1:
            self._wake()

    def _wake(self) -> None:
        asyncio.get_running_loop().call_later(self._waiting[0][0] - time.monotonic(), self._due)

    def _due(self) -> None:
        # One timer for all that waits: those of two messages that are due together could go off in either order.
        now = time.monotonic()
        while self._waiting and self._waiting[0][0] <= now:
            self._put(self._waiting.popleft()[1])
        if self._waiting:
            self._wake()

    def _put(self, data: bytes | None) -> None:
        if self._transport is None:
            self._early.append(data)
        elif data is None:
            self._transport.close()
        else:
            self._transport.write(data)


@asynccontextmanager
async def far_away(host: str, port: int, rtt_ms: float) -> AsyncIterator[int]:
    """A port of this machine that leads to a server, with a round trip of `rtt_ms` between. Connecting itself takes no
    time; what is then sent does."""
    loop = asyncio.get_running_loop()
    connecting = set[asyncio.Task[object]]()

    def accepted() -> _Late:
        near, far = _Late(rtt_ms / 2000), _Late(rtt_ms / 2000)
        near.other, far.other = far, near
        task: asyncio.Task[object] = asyncio.ensure_future(loop.create_connection(lambda: far, host, port))
        connecting.add(task)
        task.add_done_callback(lambda task: near.deliver(None) if task.cancelled() or task.exception() else None)
        return near

    server = await loop.create_server(accepted, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in connecting:
            task.cancel()

"""The bus between hosts: NATS, core subjects alone. Nothing is stored, so nothing needs a quorum.

PoPs and directories come up and go on without it. Each tries for ever to reach one of its servers. What a PoP would say
meanwhile is dropped and not kept for later: a report that is old misleads.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error

from voicepipe.directory.bus import WAITING, Message, put, taken

logger = logging.getLogger(__name__)

PING_S = 1
"""A server is pinged so often, and given up after `UNANSWERED` pings, even where its connection is not closed."""
UNANSWERED = 2
AGAIN_S = 0.25
"""Between two tries of the same server."""
CONNECT_S = 2
LOG_EVERY_S = 10.0
"""At most one line about what goes wrong."""


class Servers(msgspec.Struct, frozen=True):
    """How to reach NATS."""

    urls: Sequence[str]
    """As "nats://nats.example.com:4222", or "tls://..."."""
    credentials: Path | None = None
    """A file with the user's JWT and seed. They say on which subjects this host may publish."""
    user: str = ""
    """Without credentials: as the server's configuration names it."""
    password: str = ""


class NatsBus:
    """Implements `bus.Bus`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reached = asyncio.Event()
        self._troubled_at = -LOG_EVERY_S
        self._ends = False

    @classmethod
    @asynccontextmanager
    async def connected(cls, servers: Servers) -> AsyncIterator["NatsBus"]:
        """A bus, at once; its servers may be reached later."""
        bus = cls(Client())
        connecting = asyncio.create_task(bus._connect(servers))
        try:
            yield bus
        finally:
            bus._ends = True
            connecting.cancel()
            with suppress(asyncio.CancelledError):
                await connecting
            await bus._client.close()

    async def publish(self, subject: str, data: bytes) -> None:
        if self._client.is_connected:
            with suppress(Error):  # It has just been lost.
                await self._client.publish(subject, data)

    @asynccontextmanager
    async def listen(self, *patterns: str) -> AsyncIterator[AsyncIterator[Message]]:
        waiting = asyncio.Queue[Message](WAITING)

        async def hear(message: Msg) -> None:
            put(waiting, Message(message.subject, message.data))

        await self._reached.wait()
        heard = [await self._client.subscribe(pattern, cb=hear) for pattern in patterns]
        try:
            yield taken(waiting)
        finally:
            for subscription in heard:
                with suppress(Error):
                    await subscription.unsubscribe()

    def is_connected(self) -> bool:
        return self._client.is_connected

    async def _connect(self, servers: Servers) -> None:
        await self._client.connect(
            list(servers.urls),
            error_cb=self._troubled,
            disconnected_cb=self._lost,
            reconnected_cb=self._found,
            connect_timeout=CONNECT_S,
            reconnect_time_wait=AGAIN_S,  # type: ignore[arg-type]  # It is slept for.
            max_reconnect_attempts=-1,
            ping_interval=PING_S,
            max_outstanding_pings=UNANSWERED,
            user_credentials=str(servers.credentials) if servers.credentials else None,
            user=servers.user or None,
            password=servers.password or None,
            pending_size=0,
        )
        self._reached.set()

    async def _troubled(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._troubled_at >= LOG_EVERY_S:
            self._troubled_at = now
            logger.warning("the bus (NATS): %s", error or type(error).__name__)

    async def _lost(self) -> None:
        if not self._ends:
            logger.warning("the bus (NATS) is lost: the servers are tried in turn; live calls go on")

    async def _found(self) -> None:
        logger.info("the bus (NATS) is there again, at %s", self._client.connected_url and
                    self._client.connected_url.netloc.rpartition("@")[2])  # fmt: skip

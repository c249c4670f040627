"""The bus between hosts: NATS, core subjects alone. Nothing is stored, so nothing needs a quorum.

PoPs and directories come up and go on without it. Each tries for ever to reach one of its servers. What a PoP would say
meanwhile is dropped and not kept for later: a report that is old misleads.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from nats.aio.client import Client, RawCredentials
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error

from voicepipe.base.errors import ConfigError
from voicepipe.base.trust import for_sockets, refusal
from voicepipe.config.credentials import bus_password
from voicepipe.config.fleet_config import BusConfig
from voicepipe.directory.bus import WAITING, BusMessage, put, taken

logger = logging.getLogger(__name__)

PING_S = 1
"""Seconds between pings to a server. It is given up after `UNANSWERED` pings, even where its connection is not
closed."""
UNANSWERED = 2
AGAIN_S = 0.25
"""Seconds between two attempts to reach the same server."""
LATER_S = 2.0
"""Seconds before another client is made, where the server has rejected the last one."""
CONNECT_S = 2
LOG_EVERY_S = 10.0
"""Seconds between two lines of the log about errors."""


class _Subscriber:
    """A subscription, which moves from one client to the next."""

    def __init__(self, patterns: tuple[str, ...], waiting: asyncio.Queue[BusMessage]) -> None:
        self._patterns = patterns
        self._waiting = waiting
        self._client: Client | None = None
        self._subscriptions: list[Subscription] = []

    async def subscribe(self, client: Client) -> None:
        """Subscribe with this client, and with no other any more."""
        if client is self._client:
            return
        self._client = client
        self._subscriptions = [await client.subscribe(pattern, cb=self._receive) for pattern in self._patterns]

    async def leave(self) -> None:
        for subscription in self._subscriptions:
            with suppress(Error):
                await subscription.unsubscribe()

    async def _receive(self, message: Msg) -> None:
        put(self._waiting, BusMessage(message.subject, message.data))


class _TlsClient(Client):
    """nats-py's client, which says nothing in clear where the address is tls://. By itself it would, if the server,
    or somebody on the way, asks for no TLS."""

    def _connect_command(self) -> bytes:
        """The first message to a server, which holds the password. Raises Error: it would go out in clear."""
        server = self._current_server
        if server and server.uri.scheme == "tls" and not self._server_info.get("tls_required"):
            raise Error(f"{server.uri.hostname} asks for no TLS, and its address is tls://: nothing is said to it")
        return bytes(super()._connect_command())


class NatsBus:
    """The bus between hosts, by NATS: implements `bus.Bus`."""

    def __init__(self, read_password: Callable[[], str], password: str) -> None:
        self._read_password = read_password
        self._password = password
        """As last read; after each error it is read again, since it may have been replaced."""
        self._client: Client = _TlsClient()
        self._listeners: list[_Subscriber] = []
        self._reached = asyncio.Event()
        self._troubled_at = -LOG_EVERY_S
        self._ends = False

    @classmethod
    @asynccontextmanager
    async def connected(cls, config: BusConfig, ca: str = "") -> AsyncIterator["NatsBus"]:
        """Yields a bus at once; its servers may be reached later. `ca`: as `trust.trusting`. Raises ConfigError: its
        password is missing, or `ca` is unfit."""
        read_password = bus_password(config).value
        bus = cls(read_password, await asyncio.to_thread(read_password))
        tls = await asyncio.to_thread(for_sockets, ca)
        connecting = asyncio.create_task(bus._keep_connected(config, tls))
        try:
            yield bus
        finally:
            bus._ends = True
            connecting.cancel()
            with suppress(asyncio.CancelledError):
                await connecting
            with suppress(Exception):  # It may have begun to connect, or not.
                await bus._client.close()

    async def publish(self, subject: str, data: bytes) -> None:
        if self._client.is_connected:
            with suppress(Error):  # It has just been lost.
                await self._client.publish(subject, data)

    @asynccontextmanager
    async def listen(self, *patterns: str) -> AsyncIterator[AsyncIterator[BusMessage]]:
        waiting = asyncio.Queue[BusMessage](WAITING)
        listener = _Subscriber(patterns, waiting)
        await self._reached.wait()
        self._listeners.append(listener)
        try:
            with suppress(Error):  # It has just been lost for good: the next client subscribes.
                await listener.subscribe(self._client)
            yield taken(waiting)
        finally:
            self._listeners.remove(listener)
            await listener.leave()

    def is_connected(self) -> bool:
        return self._client.is_connected

    async def _keep_connected(self, config: BusConfig, tls: ssl.SSLContext) -> None:
        """Keep a client connected until cancelled. A client reconnects by itself to a server that it has lost. But one
        that the server rejects (its user is unknown or has expired, say) is closed for good, and replaced here."""
        while True:
            closed = asyncio.Event()
            self._client = _TlsClient()
            try:
                await self._connect(config, tls, closed)
                if self._ends:  # nats-py swallows a cancellation that comes while it connects.
                    return
                for listener in tuple(self._listeners):
                    await listener.subscribe(self._client)
                self._reached.set()
                await closed.wait()
            except Exception as error:  # Whatever it is, the bus has to be there again once it is mended.
                await self._troubled(error)
            self._reached.clear()
            with suppress(Exception):
                await self._client.close()
            await asyncio.sleep(LATER_S)

    async def _connect(self, config: BusConfig, tls: ssl.SSLContext, closed: asyncio.Event) -> None:
        async def close() -> None:
            closed.set()

        await self._client.connect(
            list(config.servers),
            error_cb=self._troubled,
            disconnected_cb=self._lost,
            reconnected_cb=self._found,
            closed_cb=close,
            connect_timeout=CONNECT_S,
            reconnect_time_wait=AGAIN_S,  # type: ignore[arg-type]  # It is slept for.
            max_reconnect_attempts=-1,
            ping_interval=PING_S,
            max_outstanding_pings=UNANSWERED,
            user_credentials=await _credentials(config),
            user=config.user or None,
            password=(lambda: self._password) if config.user else None,
            pending_size=0,
            tls=tls,
        )

    async def _troubled(self, error: Exception) -> None:
        try:
            self._password = await asyncio.to_thread(self._read_password)
        except ConfigError as unreadable:
            error = unreadable
        now = time.monotonic()
        if now - self._troubled_at >= LOG_EVERY_S:
            self._troubled_at = now
            logger.warning("the bus (NATS): %s", refusal(error) or error or type(error).__name__)

    async def _lost(self) -> None:
        if not self._ends:
            logger.warning("the bus (NATS) is lost: its servers are tried again; live calls go on")

    async def _found(self) -> None:
        logger.info("the bus (NATS) is there again, at %s", self._client.connected_url and
                    self._client.connected_url.netloc.rpartition("@")[2])  # fmt: skip


async def _credentials(config: BusConfig) -> RawCredentials | None:
    """The credentials in the file as it is now. Raises ConfigError: it has none, and nats-py would search it for
    ever."""
    if not config.credentials:
        return None
    file = Path(config.credentials)
    try:
        said = await asyncio.to_thread(file.read_text)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"bus.credentials: {file} cannot be read ({error}): correct the path") from error
    if not all(f"-----BEGIN {what}-----" in said for what in ("NATS USER JWT", "USER NKEY SEED")):
        raise ConfigError(f"bus.credentials: {file} is no credentials file: make one by `nsc generate creds`")
    return RawCredentials(said)

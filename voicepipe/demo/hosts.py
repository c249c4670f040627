"""The hosts of `voicepipe demo --pops`: on each runs a PoP, until somebody pulls the plug, or drains it. All are on
this machine, and each says that it is in a city of its own."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Literal, NamedTuple
from weakref import WeakSet

import msgspec

from voicepipe.base.errors import VoicepipeError, cause
from voicepipe.config import Config, HttpConfig
from voicepipe.config.fleet_config import FleetConfig
from voicepipe.directory.bus import Bus, BusMessage
from voicepipe.engines.base import Engines
from voicepipe.ingress import server
from voicepipe.pop.running import member
from voicepipe.serving.runtime import free_port, url

logger = logging.getLogger(__name__)

DRAIN_S = 5.0
"""Seconds: whoever ends the demo does not wait longer for calls that pages have left open."""
State = Literal["starting", "up", "draining", "stopped"]


class Cable:
    """A host's own connection to the bus, which can be cut. Implements `bus.Bus`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._is_cut = False

    def cut(self) -> None:
        """Cut the connection: from now on nothing is published by it, not even a goodbye."""
        self._is_cut = True

    async def publish(self, subject: str, data: bytes) -> None:
        if not self._is_cut:
            await self._bus.publish(subject, data)

    def listen(self, *patterns: str) -> AbstractAsyncContextManager[AsyncIterator[BusMessage]]:
        return self._bus.listen(*patterns)

    def is_connected(self) -> bool:
        return not self._is_cut


class DemoSocket(socket.socket):
    """A listening socket with its connections."""

    def __init__(self, http: HttpConfig) -> None:
        """Raises ConfigError: the address cannot be used."""
        super().__init__(fileno=server.bind(http).detach())
        self._connections: WeakSet[socket.socket] = WeakSet()

    def accept(self) -> tuple[socket.socket, object]:
        connection, address = super().accept()
        self._connections.add(connection)
        return connection, address

    def cut(self) -> None:
        """End all connections as the system does when a process dies: no protocol says goodbye."""
        for connection in list(self._connections):
            with suppress(OSError):  # It may be closed already.
                connection.shutdown(socket.SHUT_RDWR)


class PopCity(NamedTuple):
    """The name of a PoP with its city."""

    pop: str
    name: str
    region: str
    zone: str
    place: tuple[float, float]


CITIES = (
    PopCity("fra1", "Frankfurt", "eu-central", "eu", (50.1, 8.7)),
    PopCity("iad1", "Virginia", "us-east", "us", (39.0, -77.5)),
    PopCity("nrt1", "Tokyo", "ap-northeast", "jp", (35.7, 139.7)),
    PopCity("lhr1", "London", "eu-west", "uk", (51.5, -0.1)),
    PopCity("syd1", "Sydney", "ap-southeast", "au", (-33.9, 151.2)),
)
"""The cities of the PoPs, in order."""
SLOTS = 4
"""Slots of a PoP: few, so that a few calls fill it and others begin to share."""


def configured(config: Config, city: PopCity, key: Path) -> Config:
    """`config` for the PoP of this city, on a free port of loopback. `key`: the directory's public one. Raises
    ConfigError."""
    http = HttpConfig(port=0)
    http = msgspec.structs.replace(http, port=free_port(http))
    pop = msgspec.structs.replace(config.pop, id=city.pop, region=city.region, slots=SLOTS)
    fleet = FleetConfig(keys=(str(key),), url=url(http), place=city.place, zone=city.zone)
    return msgspec.structs.replace(config, pop=pop, http=http, fleet=fleet)


class DemoHost:
    """A host on which a PoP runs, until it is stopped or drained. `run` owns the PoP's task: `start` and `stop` only
    set what is wanted."""

    def __init__(self, city: PopCity, config: Config, bus: Bus, engines: Engines) -> None:
        self.city = city
        self.config = config
        self.state: State = "stopped"
        self.answers = asyncio.Event()
        """Set when the first of its PoPs takes calls, or did."""
        self._bus = bus
        self._engines = engines
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._plug_pulled = asyncio.Event()

    def start(self) -> None:
        """Run a PoP, unless one runs."""
        self._wanted.set()

    def stop(self) -> None:
        """Stop the PoP as if the host died: its connections are cut without a goodbye. Nothing happens where no PoP
        runs."""
        self._wanted.clear()
        self._plug_pulled.set()

    async def run(self) -> None:
        """Run PoPs until cancelled, one after the other; the last one drains. Raises what keeps the first from
        starting."""
        while True:
            await self._wanted.wait()
            self._plug_pulled.clear()
            self.state = "starting"
            try:
                await self._one()
            except VoicepipeError as error:
                if not self.answers.is_set():
                    raise
                logger.error("%s does not start again: %s", self.city.pop, error)
            if not self._plug_pulled.is_set():  # It ended by itself; otherwise `start` may have been asked for since.
                self._wanted.clear()
            self.state = "stopped"

    async def _one(self) -> None:
        """Run one PoP, until it is drained or dies."""
        cable, listener = Cable(self._bus), DemoSocket(self.config.http)
        pop = asyncio.create_task(self._answer(cable, listener))
        dying = asyncio.create_task(self._plug_pulled.wait())
        try:
            await asyncio.wait({pop, dying}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _end(pop, DRAIN_S)
            raise
        finally:
            dying.cancel()
        if pop.done():
            return _raise(pop)
        cable.cut()
        listener.cut()
        await _end(pop, 0)

    async def _answer(self, cable: Cable, listener: DemoSocket) -> None:
        with listener:
            async with member(self.config, cable, self._engines, listener) as pop:
                self.state = "up"
                self.answers.set()
                await pop.dismissed()
                self.state = "draining"


async def _end(pop: asyncio.Task[None], drain_s: float) -> None:
    """Drain the PoP; after `drain_s` its calls are ended, as a second signal does with a PoP of its own process."""
    for patience_s in (drain_s, None):
        pop.cancel()
        await asyncio.wait({pop}, timeout=patience_s)


def _raise(pop: asyncio.Task[None]) -> None:
    """Raise the error of a task that failed, if it did, out of the groups of its tasks."""
    error = pop.exception()
    if error:
        raise cause(error)

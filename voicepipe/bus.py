"""The bus that is configured."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from voicepipe.credentials import bus_password
from voicepipe.directory.bus import Bus
from voicepipe.fleet_config import BusConfig


@asynccontextmanager
async def on_bus(config: BusConfig) -> AsyncIterator[Bus]:
    """The bus that is configured. Raises ConfigError."""
    from voicepipe.directory.nats_bus import NatsBus

    async with NatsBus.connected(config, bus_password(config)) as bus:
        yield bus

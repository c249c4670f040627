"""The bus that is configured."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from voicepipe.config.credentials import bus_password
from voicepipe.config.fleet_config import BusConfig
from voicepipe.directory.bus import Bus


@asynccontextmanager
async def on_bus(config: BusConfig) -> AsyncIterator[Bus]:
    """Yields the bus that is configured. Raises ConfigError."""
    from voicepipe.directory.nats_bus import NatsBus

    async with NatsBus.connected(config, bus_password(config)) as bus:
        yield bus

"""The bus that is configured."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from voicepipe.config import bus_password
from voicepipe.directory.bus import Bus
from voicepipe.fleet_config import BusConfig


@asynccontextmanager
async def on_bus(config: BusConfig) -> AsyncIterator[Bus]:
    """The bus that is configured. Raises ConfigError."""
    from voicepipe.directory.nats_bus import NatsBus, Servers

    credentials = Path(config.credentials) if config.credentials else None
    async with NatsBus.connected(Servers(config.servers, credentials, config.user, bus_password(config))) as bus:
        yield bus

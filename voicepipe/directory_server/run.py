"""`voicepipe directory`: hear what PoPs report, and say to callers where to call, until a signal."""

import asyncio

from voicepipe import descriptors
from voicepipe.bus import on_bus
from voicepipe.config import keys_of
from voicepipe.directory.directory import Directory
from voicepipe.directory_config import DirectoryConfig
from voicepipe.directory_server.http import app
from voicepipe.errors import ConfigError
from voicepipe.fleet_keys import signer
from voicepipe.ingress import server
from voicepipe.ingress.doors import BODY_BYTES
from voicepipe.ingress.local import check_who_may_call
from voicepipe.supervised import supervised
from voicepipe.tenants import Tenants


async def serve(config: DirectoryConfig, serving: asyncio.Event) -> None:
    """Until cancelled. `serving` is set once callers get in. Raises ConfigError."""
    descriptors.raise_limit()
    tenants = Tenants(keys_of(config.tenants), "directory")
    signing = signer(config.directory.key)
    listener = server.bind(config.http)
    async with on_bus(config.bus) as bus, asyncio.TaskGroup() as group:
        directory = Directory(bus, signing)
        group.create_task(supervised("hearing the bus", directory.run))
        application = app(config, directory, tenants)
        await server.serve(application, listener, config.http, config.directory.connections, BODY_BYTES, serving)


def check(config: DirectoryConfig) -> None:
    """Raises ConfigError: it cannot run like this."""
    if not config.bus.servers:
        raise ConfigError(
            "bus.servers: a directory hears of PoPs by NATS; say where that is, such as "
            '["nats://127.0.0.1:4222"] after: nats-server -a 127.0.0.1'
        )
    check_who_may_call(config.http, config.tenants)

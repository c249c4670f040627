"""Hosts of a fleet to which editions are pushed, in one process; each has its own way to the bus."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.directory.fleets import (
    FRANKFURT,
    LONG_S,
    OWNERS,
    SIGNER,
    settings,
)
from tests.support.waiting import until
from voicepipe.config import Config, HttpConfig
from voicepipe.config.directory_config import DirectoryConfig, DirectorySection
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.editions.directory_editions import DirectoryEditions, begun, store_of
from voicepipe.directory.server.call_placement import DirectoryRules
from voicepipe.directory.server.run import use_config
from voicepipe.pop.pop import Pop
from voicepipe.pop.running import member

AGENT = 'name = "{name}"\ngreeting = "{greeting}"\n'
HELLO, GOOD_DAY = ({"agents/front-desk.toml": AGENT.format(name="front-desk", greeting=said)}
                   for said in ("Hello.", "Good day."))  # fmt: skip
ROUTES = '[[routes]]\ncalled = "+49*"\nagent = "sales"\nregion = "eu"\n'
CODE = 'name = "t"\n[[tools]]\nname = "x"\nfunction = "{}"\n'
SALES = {"agents/sales.toml": AGENT.format(name="sales", greeting="Sales.")}
TENANTS = '[[tenants]]\nname = "harbour"\nkey_env = "HARBOUR_KEY"\nzone = "eu"\n'
RULED = {**HELLO, **SALES, "fleet.toml": ROUTES + TENANTS}
WITH_KEY = HttpConfig(operator_key_env="OPS_KEY")


class OwnWay:
    """One host's way to the bus; it can be cut."""

    def __init__(self, bus: MemoryBus) -> None:
        self.is_cut = False
        self._bus = bus

    async def publish(self, subject: str, data: bytes) -> None:
        if not self.is_cut:
            await self._bus.publish(subject, data)

    @asynccontextmanager
    async def listen(self, *patterns: str) -> AsyncIterator[AsyncIterator[BusMessage]]:
        async with self._bus.listen(*patterns) as messages:
            yield self._heard(messages)

    def is_connected(self) -> bool:
        return not self.is_cut

    async def _heard(self, messages: AsyncIterator[BusMessage]) -> AsyncIterator[BusMessage]:
        async for message in messages:
            if not self.is_cut:
                yield message


@asynccontextmanager
async def taking(
    bus: MemoryBus, folder: Path, name: str = "directory", **tables: Any
) -> AsyncIterator[tuple[DirectoryEditions, Directory, DirectoryRules]]:
    """A directory that takes pushes; not over HTTP."""
    config = DirectoryConfig(directory=DirectorySection(id=name, editions=str(folder / "directories")), **tables)
    store, way = store_of(config), OwnWay(bus)
    assert store
    directory, rules = Directory(way, SIGNER), DirectoryRules(config, OWNERS if config.tenants else {})
    began = await asyncio.to_thread(begun, config, store)
    editions = DirectoryEditions(way, directory, config, store, began, partial(use_config, rules, directory))
    async with asyncio.TaskGroup() as group:
        jobs = [group.create_task(job) for job in (directory.run(), editions.run(), editions.listen())]
        yield editions, directory, rules
        for job in jobs:
            job.cancel()


async def pop_settings(name: str, public: str, folder: Path, **changes: Any) -> Config:
    its = {"editions": str(folder / "editions"), **changes.pop("fleet", {})}
    return await asyncio.to_thread(settings, name, public, FRANKFURT, fleet=its, **changes)


@asynccontextmanager
async def pops(bus: MemoryBus, directory: Directory, *configs: Config) -> AsyncIterator[tuple[list[Pop], list[OwnWay]]]:
    """They run, and the directory has heard of them."""
    async with AsyncExitStack() as stack:
        ways = [OwnWay(bus) for _ in configs]
        made = [await stack.enter_async_context(member(config, way))
                for config, way in zip(configs, ways, strict=True)]  # fmt: skip
        await until(lambda: len(directory.pops()) == len(configs), LONG_S)
        yield made, ways


def numbers(directory: Directory) -> dict[str, int]:
    """Which edition each PoP has reported."""
    return {seen.pop: seen.condition.edition.number for seen in directory.heard() if seen.condition.edition}

"""PoPs in one process, and a directory beside them where they have no NATS to speak by.

`python -m latency_probes.components.directory.host SPEC`: a JSON object as `Hosted`. It says "answers at URL" once all
is ready.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import uvloop

from latency_probes.components.directory import simulated
from voicepipe import config
from voicepipe.config import load_directory
from voicepipe.config.fleet_config import BusConfig
from voicepipe.directory.bus import Bus, MemoryBus
from voicepipe.directory.nats_bus import NatsBus
from voicepipe.directory.server.run import serve
from voicepipe.pop.running import member


class Hosted(msgspec.Struct, frozen=True):
    """What the process runs."""

    pops: tuple[str, ...] = ()
    """Files with the configuration of each."""
    simulated: int = 0
    """PoPs that only report."""
    directory: str = ""
    """File with its configuration; empty: it is elsewhere."""
    bus: str = ""
    """NATS; empty: a bus in memory."""


@asynccontextmanager
async def _speaking(url: str) -> AsyncIterator[Bus]:
    if not url:
        yield MemoryBus()
        return
    async with NatsBus.connected(BusConfig(servers=(url,))) as bus:
        yield bus


async def main(hosted: Hosted) -> None:
    """Until cancelled."""
    async with _speaking(hosted.bus) as bus, asyncio.TaskGroup() as group, AsyncExitStack() as stack:
        url = "http://nowhere"
        if hosted.directory:
            settings, ready = load_directory(Path(hosted.directory)), asyncio.Event()
            group.create_task(serve(settings, ready, bus))
            await ready.wait()
            url = f"http://{settings.http.host}:{settings.http.port}"
        for file in hosted.pops:
            await stack.enter_async_context(member(config.load(Path(file)), bus))
        group.create_task(simulated.report(bus, hosted.simulated))
        print(f"answers at {url}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(msgspec.json.decode(sys.argv[1], type=Hosted)))

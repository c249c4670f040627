"""The hosts of a demo: a PoP that can be stopped as if it died, and started."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets

from tests.directory.fleets import FRANKFURT, LONG_S, public_key, settings
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from tests.support.waiting import until
from voicepipe.demo.hosts import CITIES, Cable, DemoHost
from voicepipe.directory import subjects
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.engines.base import Engines
from voicepipe.serving.runtime import url


@pytest.fixture
def public(tmp_path: Path) -> str:
    """The path of the directory's public key."""
    return public_key(tmp_path)


@asynccontextmanager
async def host(public: str, bus: MemoryBus) -> AsyncIterator[DemoHost]:
    engines = Engines(ScriptedVad(), ScriptedAsr(), ScriptedLlm(), ScriptedTts())
    made = DemoHost(CITIES[0], settings("fra1", public, FRANKFURT, pop={"drain_ms": 60_000}), bus, engines)
    running = asyncio.create_task(made.run())
    async with asyncio.timeout(LONG_S):
        await made.answers.wait()
        yield made
        running.cancel()
        await asyncio.wait({running})


async def connected(host: DemoHost) -> Any:
    socket = await websockets.connect(f"{url(host.config.http).replace('http', 'ws', 1)}/v1/realtime")
    assert json.loads(await socket.recv())["type"] == "session.created"
    return socket


def epoch(message: BusMessage) -> int:
    """Of the run that reports. No other message comes, such as a goodbye."""
    assert message.subject == subjects.of_pop(subjects.REPORTS, "fra1")
    return int(json.loads(message.data)["epoch"])


@pytest.mark.e2e
async def test_a_pop_that_is_stopped_cuts_its_calls_and_says_no_goodbye(public: str) -> None:
    bus = MemoryBus()
    async with host(public, bus) as fra, bus.listen("vp.pop.>") as messages:
        run = epoch(await anext(messages))
        call = await connected(fra)
        fra.stop()
        with pytest.raises(websockets.ConnectionClosedError) as cut:
            while True:
                await call.recv()
        assert cut.value.rcvd is None, "no close frame"
        await until(lambda: fra.state == "stopped", LONG_S)
        with pytest.raises(OSError):
            await connected(fra)
        fra.start()
        await until(lambda: fra.state == "up", LONG_S)
        await (await connected(fra)).close()
        while epoch(await anext(messages)) == run:
            pass


@pytest.mark.e2e
async def test_a_pop_that_is_drained_lets_its_call_end_and_can_be_started_again(public: str) -> None:
    bus = MemoryBus()
    async with host(public, bus) as fra, bus.listen(subjects.of_pop(subjects.GOODBYES, "fra1")) as goodbyes:
        call = await connected(fra)
        await bus.publish(subjects.of_pop(subjects.COMMANDS, "fra1"), b'{"do": "drain"}')
        await until(lambda: fra.state == "draining", LONG_S)
        with pytest.raises(websockets.InvalidStatus):
            await connected(fra)
        await call.close()
        await anext(goodbyes)
        await until(lambda: fra.state == "stopped", LONG_S)
        fra.start()
        await until(lambda: fra.state == "up", LONG_S)


@pytest.mark.e2e
async def test_a_pop_that_drains_can_be_stopped(public: str) -> None:
    bus = MemoryBus()
    async with host(public, bus) as fra:
        call = await connected(fra)
        await bus.publish(subjects.of_pop(subjects.COMMANDS, "fra1"), b'{"do": "drain"}')
        await until(lambda: fra.state == "draining", LONG_S)
        fra.stop()
        with pytest.raises(websockets.ConnectionClosedError):
            while True:
                await call.recv()
        await until(lambda: fra.state == "stopped", LONG_S)


async def test_what_is_said_by_a_cable_that_is_cut_is_not_heard() -> None:
    bus = MemoryBus()
    cable = Cable(bus)
    async with bus.listen(">") as heard:
        await cable.publish("a.b", b"1")
        assert cable.is_connected()
        cable.cut()
        await cable.publish("a.b", b"2")
        await bus.publish("a.b", b"3")
        assert [(await anext(heard)).data for _ in range(2)] == [b"1", b"3"]
        assert not cable.is_connected()

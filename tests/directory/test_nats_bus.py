"""The bus between hosts, on a real nats-server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.directory.nats_server import PERMISSIONS, NatsServer, nats_server, needs_nats
from tests.waiting import until
from voicepipe.directory.bus import Message
from voicepipe.directory.nats_bus import NatsBus, Servers

pytestmark = needs_nats
LONG_S = 20.0
"""Generous: machines are slow at times."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(tmp_path) as running:
        yield running


@asynccontextmanager
async def buses(*servers: Servers) -> AsyncIterator[list[NatsBus]]:
    """One for each, all of them connected."""
    async with asyncio.timeout(LONG_S):
        contexts = [NatsBus.connected(each) for each in servers]
        made = [await context.__aenter__() for context in contexts]
        try:
            for bus in made:
                await until(bus.is_connected)
            yield made
        finally:
            for context in contexts:
                await context.__aexit__(None, None, None)


async def heard(bus: NatsBus, speaker: NatsBus, messages: AsyncIterator[Message], subject: str) -> bytes:
    """The first message after a pause that may be long, since what is said while nobody listens is lost."""
    coming = asyncio.ensure_future(anext(messages))
    while not coming.done():
        await speaker.publish(subject, b"hello")
        await asyncio.wait({coming}, timeout=0.05)
    return coming.result().data


async def test_what_one_host_says_another_hears(server: NatsServer, caplog: pytest.LogCaptureFixture) -> None:
    async with buses(Servers([server.url]), Servers([server.url])) as (one, other):
        async with other.listen("vp.pop.*.report", "vp.asg.*") as messages:
            await heard(other, one, messages, "vp.pop.fra.report")
            await one.publish("vp.other", b"not this")
            await one.publish("vp.asg.fra", b"this")
            while (message := await anext(messages)).subject != "vp.asg.fra":
                pass
            assert message.data == b"this"
    assert "lost" not in caplog.text, "a bus that is closed is not lost"


async def test_a_bus_without_its_server_drops_what_is_said_and_goes_on_when_it_is_there(server: NatsServer) -> None:
    async with buses(Servers([server.url]), Servers([server.url])) as (one, other):
        async with other.listen("n") as messages:
            assert await heard(other, one, messages, "n") == b"hello"
            await asyncio.to_thread(server.stop)
            await until(lambda: not one.is_connected() and not other.is_connected())
            for _ in range(10):
                await one.publish("n", b"old")
            await asyncio.to_thread(server.start)
            await until(lambda: one.is_connected() and other.is_connected())
            assert await heard(other, one, messages, "n") == b"hello"


async def test_a_bus_is_there_before_its_server(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server:
        await asyncio.to_thread(server.stop)
        async with asyncio.timeout(LONG_S), NatsBus.connected(Servers([server.url])) as bus:
            assert not bus.is_connected()
            await bus.publish("n", b"nobody hears it")
            await asyncio.to_thread(server.start)
            async with bus.listen("n") as messages:
                assert await heard(bus, bus, messages, "n") == b"hello"


async def test_of_several_servers_one_that_lives_is_enough(tmp_path: Path, server: NatsServer) -> None:
    (folder := tmp_path / "other").mkdir()
    with nats_server(folder) as dead:
        dead.stop()
        async with buses(Servers([dead.url, server.url])) as (bus,):
            async with bus.listen("n") as messages:
                assert await heard(bus, bus, messages, "n") == b"hello"


async def test_no_host_speaks_in_anothers_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with nats_server(tmp_path, PERMISSIONS) as server:
        fra = Servers([server.url], user="fra", password="fra-secret")
        directory = Servers([server.url], user="directory", password="directory-secret")
        async with buses(fra, directory) as (pop, listener):
            async with listener.listen("vp.pop.>") as messages:
                assert await heard(listener, pop, messages, "vp.pop.fra.report") == b"hello"
                await pop.publish("vp.pop.iad.report", b"forged")
                await listener.publish("vp.pop.fra.report", b"forged")
                await pop.publish("vp.pop.fra.bye", b"true")
                while (message := await anext(messages)).data == b"hello":
                    pass
                assert message == ("vp.pop.fra.bye", b"true")
        async with asyncio.timeout(LONG_S), NatsBus.connected(Servers([server.url])) as stranger:
            await until(lambda: "uthorization" in caplog.text)
            assert not stranger.is_connected()

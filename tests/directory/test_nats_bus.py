"""The bus between hosts, on a real nats-server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from tests.directory.nats_server import PERMISSIONS, NatsServer, nats_server, needs_nats
from tests.support.waiting import until
from voicepipe.config.fleet_config import BusConfig
from voicepipe.directory.bus import BusMessage
from voicepipe.directory.editions.edition import PACKED_BYTES
from voicepipe.directory.editions.messages import Proposal
from voicepipe.directory.nats_bus import NatsBus

pytestmark = needs_nats
LONG_S = 20.0
"""Generous: machines are slow at times."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(tmp_path) as running:
        yield running


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for user in ("fra", "directory"):
        monkeypatch.setenv(f"NATS_{user}", f"{user}-secret")


def reaching(*urls: str) -> AbstractAsyncContextManager[NatsBus]:
    return NatsBus.connected(BusConfig(servers=urls))


def named(server: NatsServer, user: str) -> AbstractAsyncContextManager[NatsBus]:
    return NatsBus.connected(BusConfig(servers=(server.url,), user=user, password_env=f"NATS_{user}"))


@asynccontextmanager
async def buses(*contexts: AbstractAsyncContextManager[NatsBus]) -> AsyncIterator[list[NatsBus]]:
    """All of them connected."""
    async with asyncio.timeout(LONG_S):
        made = [await context.__aenter__() for context in contexts]
        try:
            for bus in made:
                await until(bus.is_connected)
            yield made
        finally:
            for context in contexts:
                await context.__aexit__(None, None, None)


async def heard(bus: NatsBus, speaker: NatsBus, messages: AsyncIterator[BusMessage], subject: str) -> bytes:
    """The first message after a pause that may be long, since what is said while nobody listens is lost."""
    coming = asyncio.ensure_future(anext(messages))
    while not coming.done():
        await speaker.publish(subject, b"hello")
        await asyncio.wait({coming}, timeout=0.05)
    return coming.result().data


async def test_what_one_host_says_another_hears(server: NatsServer, caplog: pytest.LogCaptureFixture) -> None:
    async with buses(reaching(server.url), reaching(server.url)) as (one, other):
        async with other.listen("vp.pop.*.report", "vp.asg.*") as messages:
            await heard(other, one, messages, "vp.pop.fra.report")
            await one.publish("vp.other", b"not this")
            await one.publish("vp.asg.fra", b"this")
            while (message := await anext(messages)).subject != "vp.asg.fra":
                pass
            assert message.data == b"this"
    assert "lost" not in caplog.text, "a bus that is closed is not lost"


async def test_a_bus_without_its_server_drops_what_is_said_and_goes_on_when_it_is_there(server: NatsServer) -> None:
    async with buses(reaching(server.url), reaching(server.url)) as (one, other):
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
        async with asyncio.timeout(LONG_S), reaching(server.url) as bus:
            assert not bus.is_connected()
            await bus.publish("n", b"nobody hears it")
            await asyncio.to_thread(server.start)
            async with bus.listen("n") as messages:
                assert await heard(bus, bus, messages, "n") == b"hello"


async def test_of_several_servers_one_that_lives_is_enough(tmp_path: Path, server: NatsServer) -> None:
    (folder := tmp_path / "other").mkdir()
    with nats_server(folder) as dead:
        dead.stop()
        async with buses(reaching(dead.url, server.url)) as (bus,):
            async with bus.listen("n") as messages:
                assert await heard(bus, bus, messages, "n") == b"hello"


async def test_no_host_speaks_in_anothers_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with nats_server(tmp_path, PERMISSIONS) as server:
        fra = named(server, "fra")
        directory = named(server, "directory")
        async with buses(fra, directory) as (pop, listener):
            async with listener.listen("vp.pop.>") as messages:
                assert await heard(listener, pop, messages, "vp.pop.fra.report") == b"hello"
                await pop.publish("vp.pop.iad.report", b"forged")
                await listener.publish("vp.pop.fra.report", b"forged")
                await pop.publish("vp.pop.fra.bye", b"true")
                while (message := await anext(messages)).data == b"hello":
                    pass
                assert message == ("vp.pop.fra.bye", b"true")
        async with asyncio.timeout(LONG_S), reaching(server.url) as stranger:
            await until(lambda: "uthorization" in caplog.text)
            assert not stranger.is_connected()


async def test_no_password_is_said_in_clear_where_tls_is_expected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = bytearray()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.10.0","max_payload":1048576,"auth_required":true}\r\n')
        with suppress(ConnectionError):
            said.extend(await reader.read(4096))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as plain:
        port = plain.sockets[0].getsockname()[1]
        config = BusConfig(servers=(f"tls://127.0.0.1:{port}",), user="fra", password_env="NATS_fra")
        async with NatsBus.connected(config) as bus, asyncio.timeout(LONG_S):
            await until(lambda: "asks for no TLS" in caplog.text)
            assert not said and not bus.is_connected()


async def test_a_password_that_was_replaced_is_read_at_the_next_try(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (file := tmp_path / "password").write_text("an old one")
    with nats_server(tmp_path, PERMISSIONS) as server:
        config = BusConfig(servers=(server.url,), user="fra", password_file=str(file))
        async with asyncio.timeout(LONG_S), NatsBus.connected(config) as bus:
            await until(lambda: "uthorization" in caplog.text)
            file.write_text("fra-secret\n")
            await until(bus.is_connected)


# --- a server that sends its clients away


class Rude:
    """Takes every client, the first one at once, and tells it, once it listens, that it has no right to be there."""

    def __init__(self) -> None:
        self.clients = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.clients += 1
        first = self.clients == 1
        if not first:
            await asyncio.sleep(0.5)
        writer.write(b'INFO {"server_id":"x","version":"2.9.10","max_payload":1048576,"proto":1,"headers":true}\r\n')
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
            elif line.startswith(b"SUB") and first:
                writer.write(b"-ERR 'User Authentication Expired'\r\n")
            elif line.startswith(b"SUB"):
                writer.write(b"MSG vp.pop.fra.report %s 5\r\nhello\r\n" % line.split()[-1])
        writer.close()


async def test_who_is_sent_away_comes_again_and_hears_what_it_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """An expired user's client was closed for good: its PoP was gone until it was restarted."""
    monkeypatch.setattr("voicepipe.directory.nats_bus.LATER_S", 0.05)
    rude = Rude()
    async with asyncio.timeout(LONG_S), await asyncio.start_server(rude.serve, "127.0.0.1", 0) as server:
        url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with reaching(url) as bus, bus.listen("vp.pop.*.report") as messages:
            await until(lambda: rude.clients == 2)
            async with bus.listen("vp.pop.*.report") as later:  # Who comes while it connects is not forgotten.
                assert (await anext(later)).data == b"hello"
            assert (await anext(messages)).data == b"hello"
            assert bus.is_connected()
    assert rude.clients == 2


@pytest.mark.parametrize("said", ["", "-----BEGIN NATS USER JWT-----"])
async def test_credentials_that_are_none_are_told_and_stop_nothing(
    said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As where the file is just being written. nats-py looked for its first line for ever, and nothing else went on."""
    (file := tmp_path / "pop.creds").write_text(said)
    async with asyncio.timeout(LONG_S):
        async with NatsBus.connected(BusConfig(servers=("nats://127.0.0.1:1",), credentials=str(file))) as bus:
            await until(lambda: "is no credentials file" in caplog.text)
            assert not bus.is_connected()


async def test_the_largest_push_fits_into_a_message(server: NatsServer) -> None:
    largest = msgspec.msgpack.encode(Proposal("0" * 16, bytes(PACKED_BYTES)))
    async with buses(reaching(server.url)) as [bus], bus.listen("vp.fleet.>") as messages:
        await bus.publish("vp.fleet.proposal", largest)
        said = await asyncio.wait_for(anext(messages), LONG_S)
    assert said.data == largest


async def test_it_ends_while_it_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    """nats-py swallows a cancellation while it connects, and connects all the same."""
    connecting = asyncio.Event()

    async def connect(*options: object) -> None:
        connecting.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

    monkeypatch.setattr(NatsBus, "_connect", connect)
    async with asyncio.timeout(LONG_S):
        async with reaching("nats://127.0.0.1:1"):
            await connecting.wait()

"""A relayed call ends soon when its PoP's host has vanished, and only then."""

import asyncio

import pytest
import websockets

from tests.directory.server.test_relay import called
from tests.directory.stub_pops import directory_of, greets, opens, text, vanishes
from voicepipe.directory.server import relay

pytestmark = pytest.mark.e2e

LOOK_S = 0.05


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "LOOK_S", LOOK_S)


async def test_a_pop_that_answers_no_ping_is_gone() -> None:
    async with asyncio.timeout(30), directory_of(opens(vanishes)) as (at, _), await called(at) as socket:
        assert await socket.recv() == "hello"
        with pytest.raises(websockets.ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 1012 and socket.close_reason


async def test_so_it_is_while_the_caller_speaks() -> None:
    async with asyncio.timeout(30), directory_of(opens(vanishes)) as (at, _), await called(at) as socket:
        with pytest.raises(websockets.ConnectionClosed):
            while True:
                await socket.send(bytes(100_000))
                await asyncio.sleep(0.01)
        assert socket.close_code == 1012


async def test_a_pop_that_answers_pings_may_say_nothing() -> None:
    async def answers(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            frame, length = await reader.readexactly(2)
            mask = await reader.readexactly(4)
            payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(await reader.readexactly(length & 0x7F)))
            if frame == 0x89:
                pings.append(payload)
                writer.write(bytes([0x8A, len(payload)]) + payload)
            else:
                return writer.write(text(b"hello"))

    pings: list[bytes] = []
    async with asyncio.timeout(30), directory_of(opens(answers)) as (at, _), await called(at) as socket:
        await asyncio.sleep(3 * relay.SILENT_LOOKS * LOOK_S)
        await socket.send("x")
        assert await socket.recv() == "hello"
    assert 3 <= len(pings) <= 7, "one for each time that it was quiet"


async def test_a_pop_may_be_busy_for_a_moment() -> None:
    async def stalls(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.7 * relay.SILENT_LOOKS * LOOK_S)
        await greets(head, reader, writer)

    async with asyncio.timeout(30), directory_of(opens(stalls)) as (at, _), await called(at) as socket:
        assert await socket.recv() == "hello"


async def test_a_pop_is_not_gone_where_its_caller_does_not_read() -> None:
    """Then the directory does not read either what the PoP answers."""
    messages = 400

    async def floods(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(messages):
            writer.write(text(bytes([65]) * 60_000))
            await writer.drain()

    async with asyncio.timeout(60), directory_of(opens(floods)) as (at, _), await called(at) as socket:
        await asyncio.sleep(3 * relay.SILENT_LOOKS * LOOK_S)
        for _ in range(messages):
            assert len(await socket.recv()) == 60_000


async def test_a_pop_is_not_gone_that_takes_long_to_read_much() -> None:
    async def reads_slowly(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read = 0
        while read < 12_000_000:
            read += len(await reader.read(200_000))
            await asyncio.sleep(LOOK_S / 2)
        await greets(head, reader, writer)

    async with asyncio.timeout(60), directory_of(opens(reads_slowly)) as (at, _), await called(at) as socket:
        for _ in range(4):
            await socket.send(bytes(3_000_000))
        assert await socket.recv() == "hello"

"""WebSockets: masses of frames get small steps of the loop, and slow clients are not taken for dead."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from websockets.asyncio.client import connect
from websockets.frames import Close, Frame, Opcode

from tests.attacks import ping_flood
from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.test_connection import Streams, ended, eventually, raw, target
from tests.support.waiting import until
from voicepipe.ingress import frames, server
from voicepipe.ingress.chunked_parser import LEAST_CHUNK
from voicepipe.ingress.frames import WebSocketConnection


async def test_a_flood_of_pings_gets_small_pieces_of_the_loop_and_keeps_no_pongs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    kept: list[int] = []
    ours: set[WebSocketConnection] = set()
    feed = WebSocketConnection._feed

    def fed(self: WebSocketConnection) -> None:
        feed(self)
        ours.add(self)
        sizes.append(self._frames)

    monkeypatch.setattr(WebSocketConnection, "_feed", fed)
    pop = FakePop()
    async with serving(pop) as address:
        attack = asyncio.ensure_future(ping_flood.ATTACK.run(target(address), 3))
        while not attack.done():
            kept += [protocol.transport.get_write_buffer_size() + len(protocol._unread) for protocol in ours]
            await asyncio.sleep(0.01)
        await attack
    assert max(sizes) <= 2 * LEAST_CHUNK / len(ping_flood.PING) + 1, "in one step of the loop"
    assert len(ours) > 3 and sum(sizes) <= len(ours) * 2 * frames.SPARE.burst, "hung up soon"
    assert max(kept) < 1_000_000


async def test_a_server_that_stops_while_a_client_says_goodbye_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    ours: list[WebSocketConnection] = []
    made = WebSocketConnection.connection_made

    def noted(self: WebSocketConnection, transport: asyncio.Transport) -> None:
        made(self, transport)
        ours.append(self)

    monkeypatch.setattr(WebSocketConnection, "connection_made", noted)
    async with serving(FakePop()) as address, connect(f"ws://{address}/v1/realtime", proxy=None) as socket:
        await socket.recv()
        ours[0].conn.receive_data(Frame(Opcode.CLOSE, Close(1000, "").serialize()).serialize(mask=True))
        ours[0].shutdown()  # By TLS the connection is closed a round trip after that.


async def test_who_floods_us_with_pings_is_told_why() -> None:
    pop = FakePop()
    async with (
        serving(pop) as address,
        connect(f"ws://{address}/v1/realtime", proxy=None, ping_interval=None) as socket,
    ):
        await socket.recv()
        socket.transport.write(ping_flood.PING * 3000)
        async with asyncio.timeout(20):
            await socket.wait_closed()
        assert (socket.close_code, socket.close_reason) == (1008, frames.TOO_MANY_FRAMES)


async def test_texts_that_are_no_utf_8_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Half of a character; and one whose halves come in two fragments."""
    mask = bytes(4)
    wrong = b"\x81\x81" + mask + b"\xc3", b"\x01\x81" + mask + b"\xc3" + b"\x80\x81" + mask + b"("
    async with serving(FakePop()) as address:
        for number in range(60):
            async with connect(f"ws://{address}/v1/realtime", proxy=None) as socket:
                socket.transport.write(wrong[number % 2])
                async with asyncio.timeout(20):
                    await socket.wait_closed()
                assert socket.close_code == 1007
    assert len(caplog.records) <= 25 and not [record for record in caplog.records if record.exc_info]
    assert set(caplog.messages[:20]) == {f"a WebSocket from 127.0.0.1 is closed: {frames.NO_UTF_8}"}


async def test_honest_pings_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(FakePop()) as address, connect(f"ws://{address}/v1/realtime", proxy=None) as socket:
        async with asyncio.timeout(20):
            for _ in range(200):
                await (await socket.ping())


async def test_large_messages_arrive_whole_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(FakePop()) as address, connect(f"ws://{address}/v1/realtime", proxy=None) as socket:
        for number in range(30):
            text = "x" * (7 ** (number % 6))
            item = {
                "id": f"item_{number}",
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": text}],
            }
            await socket.send(msgspec.json.encode({"type": "conversation.item.create", "item": item}).decode())
        seen: list[tuple[str, int]] = []
        async with asyncio.timeout(20):
            while len(seen) < 30:
                event = msgspec.json.decode(await socket.recv())
                if event["type"] == "conversation.item.added":
                    seen.append((event["item"]["id"], len(event["item"]["content"][0]["text"])))
        assert seen == [(f"item_{number}", 7 ** (number % 6)) for number in range(30)]


async def test_a_pong_that_we_have_not_read_yet_is_not_missed() -> None:
    """While the call is busy with what a client sent, nothing more is read, its pongs neither."""
    pop = FakePop()
    async with serving(pop) as address, connect(f"ws://{address}/v1/realtime", proxy=None) as socket:
        await socket.recv()
        [ours] = _websockets()
        ours._waiting = frames.READ_AHEAD + 1
        ours._decide_reading()
        ours.keepalive_timeout()
        assert not ours.transport.is_closing()
        ours._waiting = 0
        ours._decide_reading()
        await (await socket.ping())


@pytest.fixture
def often_pinged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PING_S", 0.2)


@asynccontextmanager
async def says_nothing_by_itself() -> AsyncIterator[Streams]:
    """A WebSocket that answers no pings."""
    shake = ping_flood.SHAKE.format(host="localhost", port=1, key="").encode()
    async with serving(FakePop()) as address, raw(address, shake) as (reader, writer):
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b"session.created")
        yield reader, writer


async def test_a_pong_that_waits_behind_a_slow_upload_is_not_missed(often_pinged: None) -> None:
    """A client can say nothing else in the middle of a frame."""
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x" * 20_000}]}
    message = msgspec.json.encode({"type": "conversation.item.create", "item": item})
    async with says_nothing_by_itself() as (reader, writer):
        writer.write(b"\x81\xff" + len(message).to_bytes(8) + bytes(4))
        for start in range(0, len(message), 400):
            writer.write(message[start : start + 400])
            await asyncio.sleep(0.03)
        async with asyncio.timeout(20):
            await reader.readuntil(b"conversation.item.added")
            await reader.readuntil(b"\x03\xf3keepalive ping timeout")


@pytest.mark.parametrize("how", ["no pong", "too long", "no UTF-8"])
async def test_a_call_whose_connection_we_close_is_not_said_to_be_ended_by_its_caller(
    how: str, often_pinged: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sent = {
        "no pong": b"",
        "too long": b"\x81\xff" + (1 << 40).to_bytes(8) + bytes(4),
        "no UTF-8": b"\x81\x81" + bytes(4) + b"\xff",
    }
    async with says_nothing_by_itself() as (reader, writer):
        writer.write(sent[how])
        async with asyncio.timeout(20):
            await ended((reader, writer))
    await until(lambda: " (closed)" in caplog.text)
    assert "the server has closed its WebSocket: " in caplog.text and "(caller)" not in caplog.text


async def test_letters_that_keep_coming_do_not_replace_a_pong(often_pinged: None) -> None:
    async with says_nothing_by_itself() as (reader, writer):
        writer.write(b"\x81\xff" + (1000).to_bytes(8) + bytes(4))
        end = asyncio.create_task(ended((reader, writer)))
        async with asyncio.timeout(20):
            while not end.done():
                writer.write(b"x")
                await asyncio.sleep(0.02)
        assert b"\x03\xf3keepalive ping timeout" in end.result()


async def test_nothing_of_its_messages_stays_with_a_connection_that_is_lost() -> None:
    """Nor do they wait for the collector. One had come, another was on its way."""
    size = 1_000_000
    header = b"\x81\xff" + size.to_bytes(8) + bytes(4)
    async with serving(FakePop()) as address, connect(f"ws://{address}/v1/realtime", proxy=None) as socket:
        await socket.recv()
        [ours] = _websockets()
        gc.disable()
        try:
            socket.transport.write(header + b" " * size + header + b" " * (size - 1))
            await eventually(lambda: _held(ours) == (size, size - 1))
            socket.transport.abort()
            await eventually(lambda: ours.disconnected)
            assert _held(ours) == (0, 0)
        finally:
            gc.enable()


def _held(ours: WebSocketConnection) -> tuple[int, int]:
    """Bytes of large messages that a parser has brought, and of what the one of this connection has not."""
    large = [found for found in gc.get_objects() if type(found) is Frame and len(found.data) > 1000]
    return sum(len(frame.data) for frame in large), len(ours.conn.reader.buffer)


def _websockets() -> list[WebSocketConnection]:
    return [found for found in gc.get_objects() if type(found) is WebSocketConnection and not found.disconnected]

"""What ends a call: either side, clocks, sizes, clients that stop reading or half close, calls that fail."""

import asyncio
import gc
import json
import re
import socket as sockets
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.ingress.fake_pop import FakeCall, FakePop, limited, serving, settled
from voicepipe.ingress import frames, socket_sender
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.realtime import websocket
from voicepipe.ingress.realtime.clients import RealtimeClients


@asynccontextmanager
async def dialled(pop: FakePop) -> AsyncIterator[ClientConnection]:
    async with serving(pop) as address, connect(f"ws://{address}/v1/realtime", proxy=None, max_size=None) as socket:
        assert json.loads(await socket.recv())["type"] == "session.created"
        yield socket


async def ends(socket: ClientConnection) -> tuple[int | None, list[dict[str, Any]]]:
    """The close code, and the events before it."""
    events = []
    async with asyncio.timeout(60):
        try:
            while True:
                events.append(json.loads(await socket.recv()))
        except ConnectionClosed:
            return socket.close_code, events


async def test_the_client_hangs_up() -> None:
    pop = FakePop()
    async with dialled(pop) as socket:
        await socket.close()
        await settled(pop)


async def test_the_log_tells_of_a_call_when_it_begins_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "voicepipe")
    pop = FakePop()
    async with dialled(pop) as socket:
        await socket.close()
        await settled(pop)
    begun, ended = caplog.messages[0], caplog.messages[-1]
    assert re.fullmatch(r"rtc_\w+: websocket call, answered by front-desk", begun)
    assert re.fullmatch(r"rtc_\w+: ended after \d+\.\d s \(caller\)", ended) and ended[:9] == begun[:9]


async def test_an_ended_connection_is_freed_without_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    pop = FakePop()
    monkeypatch.setattr(frames, "LINGER", 0)
    kinds = HostedCall, RealtimeClients, websocket._Client, frames.WebSocketConnection
    others = [found for found in gc.get_objects() if type(found) in kinds]  # those of tests before linger
    async with dialled(pop) as socket:
        gc.collect()
        gc.disable()
        try:
            found = [found for found in gc.get_objects() if type(found) in kinds and found not in others]
            assert len(found) == 4
            left = [weakref.ref(ours) for ours in found]
            del found
            await socket.close()
            await settled(pop)
            pop.calls.clear()
            async with asyncio.timeout(60):
                while any(ref() for ref in left):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            gc.enable()


async def test_the_agent_hangs_up() -> None:
    pop = FakePop()
    async with dialled(pop) as socket:
        await pop.calls[0].line.hang_up()
        await pop.calls[0].line.hang_up()
        assert await ends(socket) == (1000, [])


async def test_a_half_closed_socket() -> None:
    pop = FakePop()
    async with dialled(pop) as socket:
        socket.transport.write_eof()
        await settled(pop)


async def test_a_vanished_client() -> None:
    pop = FakePop()
    async with dialled(pop) as socket:
        await socket.send('{"type":"response.create"}')
        socket.transport.abort()
        await settled(pop)


async def test_idle() -> None:
    pop = FakePop(limited(idle_ms=1000))
    async with dialled(pop) as socket:
        code, events = await ends(socket)
        assert code == 1001 and events[-1]["error"]["code"] == "session_idle"


async def test_the_longest_call() -> None:
    pop = FakePop(limited(call_ms=1000))
    async with dialled(pop) as socket:
        code, events = await ends(socket)
        assert code == 1001 and events[-1]["error"]["code"] == "session_expired"


async def test_a_message_over_the_limit() -> None:
    pop = FakePop(limited(message_bytes=2048))
    async with dialled(pop) as socket:
        await socket.send("x" * 3000)
        assert (await ends(socket))[0] == 1009


async def test_a_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_sender, "LINGER", 0.2)
    pop = FakePop(limited(unread_bytes=1_000_000))
    pop.packets, pop.pace = 50_000, 0.0
    async with serving(pop) as address:
        host, port = address.split(":")
        raw = sockets.create_connection((host, int(port)))
        raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
        client = await connect(f"ws://{address}/v1/realtime", sock=raw, proxy=None, max_queue=1)
        await client.send('{"type":"response.create"}')
        client.transport.pause_reading()
        await settled(pop)
        client.transport.abort()


async def test_a_call_that_fails() -> None:
    class Failing(FakeCall):
        async def run(self) -> None:
            raise RuntimeError("boom")

    pop = FakePop()
    pop.wrap = lambda call: Failing(call.line, call.settings, call.emit, 1, 0)
    async with dialled(pop) as socket:
        code, events = await ends(socket)
        assert code == 1011 and events[-1]["error"]["code"] == "server_error"


async def test_a_call_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_sender, "LINGER", 0.2)

    class Stuck(FakeCall):
        async def run(self) -> None:
            await asyncio.sleep(60)

    pop = FakePop()
    pop.wrap = lambda call: Stuck(call.line, call.settings, call.emit, 1, 0)
    async with dialled(pop) as socket:
        await socket.close()
        await settled(pop)


async def test_a_request_that_fails_is_an_error_event() -> None:
    class Failing(FakeCall):
        def cancel_reply(self, response_id: str | None) -> None:
            raise RuntimeError("boom")

    pop = FakePop()
    pop.wrap = lambda call: Failing(call.line, call.settings, call.emit, 1, 0)
    async with dialled(pop) as socket:
        await socket.send('{"type":"response.cancel","event_id":"e9"}')
        error = json.loads(await socket.recv())["error"]
        assert (error["type"], error["event_id"]) == ("server_error", "e9")

"""Connections that keep us waiting, or send more than can be read: they end, or wait, and nobody else does."""

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.attacks import garbage_http, half_handshakes, idle_connections, slow_bodies, slow_headers
from tests.attacks.target import Attack, Target
from tests.ingress.fake_pop import FakePop, serving
from voicepipe.call_api import Tenant
from voicepipe.config import HttpConfig
from voicepipe.ingress import accept, connection
from voicepipe.ingress.connection import HttpConnection
from voicepipe.ingress.visits import STRANGERS, ConnectionLimits, Visits
from voicepipe.serving.lan import certificate

pytestmark = pytest.mark.slow

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
OTHERS = "127.0.0.9"
"""An address that is no proxy's."""


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes seconds takes a fraction."""
    for name, seconds in (("CHECK_S", 0.02), ("REQUEST_S", 0.3), ("BODY_S", 0.3), ("TAKEN_S", 0.3)):
        monkeypatch.setattr(connection, name, seconds)


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for 40 connections, 20 strangers, 10 from one address."""
    monkeypatch.setattr(ConnectionLimits, "within", lambda all: ConnectionLimits(40, 20, 10))


@asynccontextmanager
async def raw(address: str, said: bytes = b"", source: str = OTHERS) -> AsyncIterator[Streams]:
    host, port = address.split(":")
    streams = await asyncio.open_connection(host, int(port), local_addr=(source, 0))
    streams[1].write(said)
    try:
        yield streams
    finally:
        streams[1].transport.abort()


async def ended(streams: Streams) -> bytes:
    """All that the server says before it ends the connection."""
    async with asyncio.timeout(20):
        try:
            return await streams[0].read()
        except ConnectionError:
            return b""


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def target(address: str, key: str = "") -> Target:
    host, port = address.split(":")
    return Target(host, int(port), key)


# --- those who keep us waiting


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX:",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nX:",
        b"POST /v1/realtime/calls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sdp\r\n"
        b"Content-Length: 1000\r\n\r\nv=0",
        half_handshakes.UPGRADE,
    ],
)
async def test_who_does_not_finish_what_they_say_is_told_so_and_hung_up(said: bytes, hasty: None) -> None:
    pop = FakePop()
    async with serving(pop) as address, raw(address, said) as streams:
        assert (await ended(streams)).count(b"HTTP/1.1 408 Request Timeout") == 1


async def test_letters_that_keep_coming_do_not_lengthen_it(hasty: None) -> None:
    async with serving(FakePop()) as address, raw(address, b"GET /healthz HTTP/1.1\r\nX: ") as (reader, writer):
        end = asyncio.create_task(ended((reader, writer)))
        while not end.done():
            writer.write(b"a")
            await asyncio.sleep(0.02)
        assert b" 408 " in end.result()


async def test_who_does_not_take_an_answer_is_hung_up(hasty: None, visits: list[Visits]) -> None:
    said = b"GET /vendor/plotly.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with serving(FakePop()) as address, raw(address, said) as (reader, writer):
        await reader.read(1)
        transport: Any = writer.transport
        transport.pause_reading()
        await eventually(lambda: not visits[0])


async def test_a_call_may_last_and_say_nothing(hasty: None) -> None:
    async with serving(FakePop()) as address, connect(f"ws://{address}/v1/realtime", proxy=None) as socket:
        await asyncio.sleep(1)
        await socket.send('{"type":"response.create"}')
        async with asyncio.timeout(20):
            while "response.done" not in await socket.recv():
                pass


async def test_who_begins_tls_and_stops_is_hung_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(accept, "HANDSHAKE_S", 0.3)
    pem = str(await asyncio.to_thread(certificate, tmp_path / "own.pem", {"127.0.0.1"}))
    pop = FakePop()
    pop.config = msgspec.structs.replace(pop.config, http=HttpConfig(port=0, cert=pem, key=pem))
    trusted = await asyncio.to_thread(ssl.create_default_context, cafile=pem)
    async with serving(pop) as address:
        async with raw(address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") as streams:
            assert await ended(streams) == b""
        async with raw(address, b"GET / HTTP/1.1\r\n\r\n") as streams:
            await ended(streams)
        async with httpx.AsyncClient(verify=trusted, trust_env=False) as client:
            assert (await client.get(f"https://{address}/healthz")).json()["status"] == "ok"


async def test_each_request_is_waited_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are told apart by what Python uses again, a new one may be taken for an old one that never came."""
    monkeypatch.setattr(connection, "id", lambda thing: 1, raising=False)
    waited_for = list[Any]()
    async with serving(FakePop()) as address, raw(address) as (reader, writer):
        for _ in range(3):
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"}")
            all_of_them = [found for found in gc.get_objects() if type(found) is HttpConnection]
            (ours,) = [found for found in all_of_them if found.transport and not found.transport.is_closing()]
            await eventually(partial(getattr, ours.cycle, "response_complete"))
            waited_for.append(ours._waiting_for()[0])
    assert [phase for phase, _ in waited_for] == 3 * ["request"]
    assert len(set(waited_for)) == 3


@pytest.mark.parametrize(
    "said",
    [
        half_handshakes.UPGRADE.replace(b"GET ", b"POST "),
        half_handshakes.UPGRADE + b"X: y\r\n" * 140,
        half_handshakes.UPGRADE + b"X: " + b"y" * 9000 + b"\r\n",
        half_handshakes.UPGRADE.replace(b"/v1/", b"/v1/" + b"y" * 9000),
        half_handshakes.UPGRADE + b"Content-Length: 5\r\n",
    ],
    ids=["POST", "many headers", "a long header", "a long address", "a body"],
)
async def test_a_handshake_that_the_library_refuses_is_answered_and_hung_up(
    said: bytes, caplog: pytest.LogCaptureFixture, visits: list[Visits]
) -> None:
    async with serving(FakePop()) as address, raw(address, said + b"\r\n") as streams:
        answer = await ended(streams)
        await eventually(lambda: not visits[0])
    assert answer.startswith(b"HTTP/1.1 4") and b"Connection: close" in answer and len(answer.split(b"\r\n\r\n")[1])
    assert b" 405 " in answer or "a WebSocket handshake from 127.0.0.9 is refused: " in caplog.text


# --- too many


async def test_idle_connections_lock_nobody_out(visits: list[Visits], crowded: None) -> None:
    async with serving(FakePop()) as address, raw(address) as first:
        others = [raw(address) for _ in range(50)]
        for other in others:
            await other.__aenter__()
        assert await ended(first) == b""
        async with httpx.AsyncClient(
            trust_env=False, transport=httpx.AsyncHTTPTransport(local_address=OTHERS)
        ) as client:
            assert (await client.get(f"http://{address}/healthz")).status_code == 200
        assert len(visits[0]) <= 11
        for other in others:
            await other.__aexit__(None, None, None)
        await eventually(lambda: not visits[0])


async def test_calls_are_not_counted_as_connections(crowded: None) -> None:
    """Thirty callers behind one NAT, of whose addresses ten strangers may be connected at a time."""
    pop = FakePop(keys={"sk": Tenant("a")})
    async with serving(pop) as address:
        calls = [await dial(address, "sk") for _ in range(30)]
        idle = [raw(address) for _ in range(30)]
        for other in idle:
            await other.__aenter__()
        for call in calls:
            await call.send('{"type":"response.create"}')
        for call in calls:
            while "response.done" not in await call.recv():
                pass
            await call.close()
        for other in idle:
            await other.__aexit__(None, None, None)


async def dial(address: str, key: str) -> ClientConnection:
    headers = {"Authorization": f"Bearer {key}"}
    return await connect(f"ws://{address}/v1/realtime", additional_headers=headers, local_addr=(OTHERS, 0), proxy=None)


async def test_what_is_no_http_is_told_by_a_throttled_log(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(FakePop()) as address:
        for _ in range(60):
            async with raw(address, b"\x00\x01\x02\r\n\r\n") as streams:
                assert b" 400 " in await ended(streams)
    assert len(caplog.records) <= 25 and set(caplog.messages[:20]) == {"a request from 127.0.0.9 is no HTTP"}


# --- attacks


@pytest.mark.parametrize(
    "attack",
    [module.ATTACK for module in (idle_connections, slow_headers, slow_bodies, half_handshakes, garbage_http)],
    ids=lambda attack: attack.name,
)
async def test_callers_are_answered_while_strangers_attack(attack: Attack, visits: list[Visits]) -> None:
    pop = FakePop(keys={"sk-honest": Tenant("honest"), "sk-bad": Tenant("bad")})
    async with serving(pop) as address:
        attacking = asyncio.ensure_future(attack.run(target(address, "sk-bad"), 3))
        await asyncio.sleep(0.5)
        headers = {"Authorization": "Bearer sk-honest"}
        answered = 0
        while not attacking.done():
            async with asyncio.timeout(20):
                async with connect(f"ws://{address}/v1/realtime", additional_headers=headers, proxy=None) as socket:
                    await socket.send('{"type":"response.create"}')
                    while "response.done" not in await socket.recv():
                        pass
            answered += 1
            assert len(visits[0]) <= STRANGERS + 1
        await attacking
        assert answered
        await eventually(lambda: not visits[0])

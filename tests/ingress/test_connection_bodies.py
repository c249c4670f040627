"""HTTP that costs more to parse than to send: nobody else notices. Bodies of honest clients arrive, whatever their
way; where one is refused, its client can read why."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from tests.ingress.test_connection import OTHERS, Streams, ended, eventually, raw
from voicepipe.config import HttpConfig, LimitsConfig
from voicepipe.ingress import connection, server
from voicepipe.ingress.chunked_parser import LARGEST_CHUNK, LEAST_CHUNK
from voicepipe.ingress.connection import HttpConnection
from voicepipe.serving.lan import certificate

POST = b"POST %s HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
BODY = bytes(range(256)) * 4096
"""1 MiB."""


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """`/length` answers how long the body is; everything else is refused, and its body not read."""
    request = Request(scope, receive)
    if scope["path"] != "/length":
        return await PlainTextResponse("who are you?", 401)(scope, receive, send)
    await PlainTextResponse(f"{len(await request.body())} bytes")(scope, receive, send)


@asynccontextmanager
async def serving(pem: str = "") -> AsyncIterator[str]:
    http = HttpConfig(port=0, cert=pem, key=pem)
    listener = server.bind(http)
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    ready = asyncio.Event()
    task = asyncio.create_task(server.serve(app, listener, http, 1000, LimitsConfig().message_bytes, ready))
    await ready.wait()
    try:
        yield address
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes that h11 gets, one step of the loop after another."""
    sizes: list[int] = []
    receive_data = h11.Connection.receive_data

    def received(self: h11.Connection, data: bytes) -> None:
        if self.our_role is h11.SERVER:
            sizes.append(len(data))
        receive_data(self, data)

    monkeypatch.setattr(h11.Connection, "receive_data", received)
    return sizes


async def shout(streams: Streams, said: bytes, times: int) -> bytes:
    """Say it again and again, as long as the server takes it; all that it says meanwhile."""
    heard = asyncio.create_task(ended(streams))
    try:
        for _ in range(times):
            streams[1].write(said)
            await streams[1].drain()
    except OSError:
        pass
    return await heard


# --- what costs more to parse than to send


async def test_after_a_refusal_nothing_of_the_body_is_parsed(
    parsed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LINGER", 0.5)
    monkeypatch.setattr(connection, "CHECK_S", 0.02)
    async with serving() as address, raw(address, POST % b"/nowhere" + CHUNKED) as streams:
        head = await streams[0].readuntil(b"\r\n\r\n")
        sofar = sum(parsed)
        said = head + await shout(streams, b"1\r\nx\r\n" * 10_000, 100)
    assert said.startswith(b"HTTP/1.1 401") and b"connection: close" in said.lower() and b"who are you?" in said
    assert sum(parsed) == sofar


@pytest.mark.parametrize("empty", [b"1\r\nx\r\n", b"7f\r\n" + b"x" * 127 + b"\r\n"])
async def test_masses_of_small_chunks_are_refused_after_small_steps(empty: bytes, parsed: list[int]) -> None:
    async with serving() as address, raw(address, POST % b"/length" + CHUNKED) as streams:
        said = await shout(streams, empty * 10_000, 1)
    assert said.startswith(b"HTTP/1.1 400") and b"send larger ones" in said
    most = 2 * connection.CHUNKS.burst * len(empty) + LARGEST_CHUNK
    assert sum(parsed) <= most
    assert max(parsed) <= (LEAST_CHUNK if len(empty) < 10 else LARGEST_CHUNK)


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/1.1\r\nHost: a\r\n", POST % b"/length" + CHUNKED + b"0\r\n"], ids=["headers", "trailers"]
)
@pytest.mark.parametrize("line", [b"a:\r\n", b"a:\n", b" \n"], ids=["short", "shorter", "folded"])
async def test_masses_of_headers_are_refused_before_they_are_parsed(
    head: bytes, line: bytes, parsed: list[int]
) -> None:
    async with serving() as address, raw(address, head + b"a: b\r\n" + line * 16_000 + b"\r\n") as streams:
        said = await ended(streams)
    assert said.startswith(b"HTTP/1.1 431") and b"Too many headers" in said
    assert sum(parsed) < 2048 and max(parsed) <= LEAST_CHUNK


async def test_a_hundred_headers_are_taken() -> None:
    async with serving() as address:
        head = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + b"X-Some-Header: y\r\n" * 98
        async with raw(address, head + b"\r\n") as streams:
            assert b" 401 " in await ended(streams)


async def test_what_waits_of_pipelined_requests_is_parsed_in_small_steps(parsed: list[int]) -> None:
    said = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20
    last = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    async with serving() as address, raw(address, said + last) as streams:
        assert (await ended(streams)).count(b" 401 ") == 21
    assert max(parsed) <= LARGEST_CHUNK


# --- honest bodies


@pytest.fixture(params=["http", "https"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Of a server without and with TLS."""
    pem, trusted = "", True
    if request.param == "https":
        pem = str(await asyncio.to_thread(certificate, tmp_path / "own.pem", {"127.0.0.1"}))
        trusted: Any = await asyncio.to_thread(ssl.create_default_context, cafile=pem)  # type: ignore[no-redef]
    async with serving(pem) as address:
        transport = httpx.AsyncHTTPTransport(verify=trusted, local_address=OTHERS)
        async with httpx.AsyncClient(base_url=f"{request.param}://{address}", transport=transport) as client:
            yield client


async def test_large_bodies_arrive_whole(client: httpx.AsyncClient) -> None:
    async def chunks(body: bytes, size: int) -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    lines = b"\n" * len(BODY)
    for body in (BODY, lines, chunks(BODY, 1000), chunks(BODY, 65_536), chunks(BODY, 300_000), chunks(lines, 10_000)):
        answer = await client.post("/length", content=body)
        assert (answer.status_code, answer.text) == (200, f"{len(BODY)} bytes")


async def test_many_requests_on_one_connection(client: httpx.AsyncClient) -> None:
    for size in range(0, 20_000, 1000):
        answer = await client.post("/length", content=b"x" * size)
        assert answer.text == f"{size} bytes" and "connection" not in answer.headers


async def test_a_refused_upload_can_read_why(client: httpx.AsyncClient) -> None:
    """It reads nothing before it has said everything, which takes several reads; and asks again."""
    for _ in range(3):
        answer = await client.post("/nowhere", content=BODY * 8)
        assert (answer.status_code, answer.text) == (401, "who are you?")


async def test_a_slow_body_arrives() -> None:
    async with serving() as address, raw(address, POST % b"/length" + CHUNKED) as (reader, writer):
        for _ in range(300):
            writer.write(b"1\r\nx\r\n")
            await asyncio.sleep(0.01)
        writer.write(b"0\r\n\r\n")
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(9) == b"300 bytes"


async def test_who_waits_for_100_continue_is_told_to_go_on_or_refused() -> None:
    waits = b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    async with serving() as address:
        async with raw(address, POST % b"/length" + waits) as (reader, writer):
            assert b" 100 " in await reader.readuntil(b"\r\n\r\n")
            writer.write(b"hello")
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(7) == b"5 bytes"
            writer.write(POST % b"/length" + b"Content-Length: 2\r\n\r\nok")
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n"), "on the same connection"
        async with raw(address, POST % b"/nowhere" + waits) as streams:
            said = await ended(streams)
            assert said.startswith(b"HTTP/1.1 401") and said.endswith(b"who are you?"), "and that it is over"


async def test_who_is_refused_and_stays_is_hung_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LINGER", 0.2)
    monkeypatch.setattr(connection, "CHECK_S", 0.02)
    lost: list[HttpConnection] = []
    connection_lost = HttpConnection.connection_lost

    def is_lost(self: HttpConnection, exc: Exception | None) -> None:
        lost.append(self)
        connection_lost(self, exc)

    monkeypatch.setattr(HttpConnection, "connection_lost", is_lost)
    async with serving() as address, raw(address, POST % b"/nowhere" + b"Content-Length: 9\r\n\r\n") as (reader, _):
        assert (await reader.read()).startswith(b"HTTP/1.1 401")
        await eventually(lambda: bool(lost))

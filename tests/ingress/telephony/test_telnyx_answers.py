"""What Telnyx answers to our commands, or somebody in its place: it costs little however long it is. Processor time."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.engines.llm.test_openai_costs import BOMB, GZIP, Wild, chunked
from tests.ingress.telephony.telnyx_provider import APPLICATION, CALL, ENV, PUBLIC, SECRET
from tests.support.stopwatch import spent, watched
from voicepipe.base import web_answer
from voicepipe.config.phone_config import TelnyxConfig
from voicepipe.ingress.telephony import telnyx_api
from voicepipe.ingress.telephony.telnyx_api import ERROR_BYTES, LIST_BYTES, MOST_CALLS, CommandFailed, TelnyxApi

SMALL_S = 0.6
OK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
BAD = OK.replace(b"200 OK", b"500 -")
ENDED = b'{"errors":[{"code":"90018"}]}'


def api(port: int) -> TelnyxApi:
    config = TelnyxConfig(public_key=PUBLIC, api_key_env=ENV, api_url=f"http://127.0.0.1:{port}")
    return TelnyxApi(config, SECRET)


@asynccontextmanager
async def wild() -> AsyncIterator[tuple[Wild, TelnyxApi]]:
    served = Wild()
    async with await asyncio.start_server(served.serve, "127.0.0.1", 0) as server:
        yield served, api(server.sockets[0].getsockname()[1])


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each answer that was read."""
    found, pieces = list[int](), web_answer.pieces

    async def counted(*args: object) -> AsyncIterator[bytes]:
        found.append(0)
        async for piece in pieces(*args):  # type: ignore[arg-type]
            found[-1] += len(piece)
            yield piece

    monkeypatch.setattr(web_answer, "pieces", counted)
    return found


@pytest.mark.parametrize("piece", [chunked(b"x" * 60_000), chunked(b"x" * 100) * 100])
async def test_an_answer_without_end_is_read_to_a_bound(piece: bytes, read: list[int]) -> None:
    async with wild() as (server, telnyx), watched() as longest:
        server.head, server.piece = OK, piece
        await telnyx.command(CALL, "hangup")
        with pytest.raises(CommandFailed, match=f"active_calls: Telnyx's list has more than {LIST_BYTES} bytes"):
            await telnyx.active_calls(APPLICATION)
        server.sent, server.head = 0, BAD
        with pytest.raises(CommandFailed, match="HTTP 500: xxx") as caught:
            await telnyx.command(CALL, "hangup")
    assert len(str(caught.value)) < 400
    assert [most <= length < most + 60_000 for most, length in zip((LIST_BYTES, ERROR_BYTES), read, strict=True)]
    assert longest.step_s < SMALL_S


async def test_no_compressed_answer_is_asked_for_and_of_one_that_comes_little_is_read() -> None:
    async with wild() as (server, telnyx), watched() as longest:
        server.head, server.piece = OK + GZIP, chunked(BOMB)
        await telnyx.command(CALL, "hangup")
        assert b"accept-encoding: identity\r\n" in server.asked.lower()
        with pytest.raises(CommandFailed, match="has more than"):
            await telnyx.active_calls(APPLICATION)
        server.head = BAD + GZIP
        with pytest.raises(CommandFailed, match="HTTP 500"):
            await telnyx.command(CALL, "hangup")
    assert longest.step_s < SMALL_S


@pytest.mark.parametrize(
    ("coding", "body"), [(b"", ENDED), (b"Content-Encoding: gzip\r\n", gzip.compress(ENDED))], ids=["plain", "gzip"]
)
async def test_what_is_compressed_all_the_same_is_understood(coding: bytes, body: bytes) -> None:
    async with wild() as (server, telnyx):
        server.head, server.piece = BAD + coding, chunked(body) + b"0\r\n\r\n"
        await telnyx.command(CALL, "hangup")


async def test_what_cannot_be_read_of_a_refusal_hides_no_status() -> None:
    async with wild() as (server, telnyx):
        server.head, server.piece = BAD + b"Content-Encoding: br\r\n", chunked(b"x" * 100)
        with pytest.raises(CommandFailed, match=r"hangup: Telnyx answers HTTP 500: .*it is compressed \(br\)"):
            await telnyx.command(CALL, "hangup")
        server.head = OK + b"Content-Encoding: br\r\n"
        await telnyx.command(CALL, "hangup")
        with pytest.raises(CommandFailed, match=r"active_calls: Telnyx's list .*it is compressed \(br\)"):
            await telnyx.active_calls(APPLICATION)


async def test_a_refusal_that_breaks_off_hides_no_status() -> None:
    async with wild() as (server, telnyx):
        server.head, server.piece, server.sent = BAD, b"zz\r\n", 50_000_000 - 4
        with pytest.raises(CommandFailed, match="HTTP 500"):
            await telnyx.command(CALL, "hangup")


async def test_an_answer_that_drips_has_so_much_time_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telnyx_api, "COMMAND_S", 0.5)

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(BAD + b"\r\n")
            while True:
                writer.write(chunked(b" "))
                await writer.drain()
                await asyncio.sleep(0.1)
        except ConnectionError:
            writer.close()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        telnyx = api(server.sockets[0].getsockname()[1])
        async with asyncio.timeout(20):
            with pytest.raises(CommandFailed, match=r"does not answer \(within 0.5 s\)"):
                await telnyx.command(CALL, "hangup")


@pytest.mark.parametrize("call", [b"{}", b'{"call_control_id":"a"}'])
async def test_a_list_of_calls_without_end(call: bytes, read: list[int]) -> None:
    """Every page is full, and says that there is another."""
    pages = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal pages
        pages += 1
        await reader.readuntil(b"\r\n\r\n")
        end = b'],"meta":{"cursors":{"after":"%d"}}}' % pages
        body = b'{"data":[' + b",".join([call] * ((LIST_BYTES - 60) // (len(call) + 1))) + end
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        telnyx = api(server.sockets[0].getsockname()[1])
        async with watched() as longest:
            found = await telnyx.active_calls(APPLICATION)
    assert len(found) <= MOST_CALLS + LIST_BYTES // len(call) and pages < 20
    assert longest.step_s < SMALL_S


@pytest.mark.parametrize("problem", [{}, {"title": "x\r\nERROR " * 50}, {"detail": "x " * 10_000}])
def test_what_is_told_of_an_error_is_short_and_one_line(problem: dict[str, str]) -> None:
    body = json.dumps({"errors": [problem] * (ERROR_BYTES // (len(json.dumps(problem)) + 2))}).encode()[:ERROR_BYTES]
    described = telnyx_api.described(telnyx_api.problems(body), body)
    assert described and len(described) <= telnyx_api.SHOWN and "\n" not in described
    assert spent(lambda: telnyx_api.described(telnyx_api.problems(body), body)) < SMALL_S

"""Webhooks that tell of their progress in lines of their answer, and such as are stopped. The answers' servers are
real."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.support.tools import Web, used
from tests.support.waiting import until
from voicepipe.agent import Tool, Webhook
from voicepipe.base.errors import OutcomeUnknown
from voicepipe.tools.progress import ProgressLines
from voicepipe.tools.tool_runner import BODY_BYTES, ToolRunner

LINES = {"content-type": "application/x-ndjson; charset=utf-8"}


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_lines_come_in_pieces_of_any_size(size: int) -> None:
    told: list[str] = []
    lines = ProgressLines("book", told.append)
    body = '{"progress": "I look für you."}\n\n{"other": 1}\n{"progress": "Nearly."}\r\n{"result": "Booked."}'.encode()
    for at in range(0, len(body), size):
        lines.feed(body[at : at + size])
    assert lines.end() == "Booked." and told == ["I look für you.", "Nearly."]


@pytest.mark.parametrize(
    ("result", "read"),
    [('"a"', "a"), ("null", ""), ('{"a":[1, 2]}', '{"a":[1, 2]}'), ("0", "0"), ("false", "false")],
)
def test_results_are_read_as_those_of_functions(result: str, read: str) -> None:
    lines = ProgressLines("book", lambda text: None)
    lines.feed(f'{{"result": {result}}}\n{{"result": "another"}}'.encode())
    assert lines.end() == read


@pytest.mark.parametrize(
    "body", [b"", b'{"progress": "Nearly."}', b"\xff\xfe\n", b'{"progress": 3}', b"[" * 100_000, b"\n" * 10]
)
async def test_an_answer_without_a_result_is_an_unknown_outcome(body: bytes) -> None:
    web = Web(httpx.Response(200, headers=LINES, content=body))
    with pytest.raises(OutcomeUnknown, match="without a result"):
        await web.used()


async def test_no_more_is_read_than_of_other_answers() -> None:
    body = b'{"progress": "' + b"x" * 2 * BODY_BYTES + b'"}\n{"result": "Booked."}'
    with pytest.raises(OutcomeUnknown):
        await Web(httpx.Response(200, headers=LINES, content=iter_of(body))).used()


async def iter_of(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), 60_000):
        yield body[at : at + 60_000]


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(answer: Answer) -> AsyncIterator[Tool]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n")
        await answer(reader, writer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield Tool("book", webhook=Webhook(f"http://127.0.0.1:{port}/"), timeout_ms=20_000)


async def test_progress_is_told_while_the_server_still_works() -> None:
    heard: list[str] = []
    go_on = asyncio.Event()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'{"progress": "I look."}\n')
        await go_on.wait()
        writer.write(b'{"result": "Booked."}\n')
        await asyncio.sleep(30)  # What follows the result is not waited for.

    async with served(answer) as tool, ToolRunner() as runner:
        task = used(runner, tool, tell=heard.append)
        await until(lambda: heard == ["I look."])
        assert not task.done()
        go_on.set()
        assert await asyncio.wait_for(task, 10) == "Booked."


async def test_the_request_of_one_that_is_stopped_is_closed() -> None:
    closed = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            pass
        closed.set()

    async with served(answer) as tool, ToolRunner() as runner:
        task = used(runner, tool)
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait_for(closed.wait(), 10)

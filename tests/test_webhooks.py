"""Webhooks as agent tools: what is sent, what comes back, and that what was sent is not done twice."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.tool_use import ABOUT, call, used
from voicepipe.agent import Tool, Webhook
from voicepipe.call.errands import Errands
from voicepipe.errors import OutcomeUnknown, ToolError
from voicepipe.python_tools import RESULT_CHARS
from voicepipe.tools import MOST, ToolRunner
from voicepipe.turn.history import History, Ids
from voicepipe.turn.prompt import ToolCall


@pytest.fixture
async def tools() -> AsyncIterator[ToolRunner]:
    async with ToolRunner() as runner:
        yield runner


def answering(handler: Callable[[httpx.Request], httpx.Response]) -> ToolRunner:
    return ToolRunner(httpx.MockTransport(handler))


async def test_a_webhook_gets_the_call_and_its_answer_is_the_result() -> None:
    seen: list[Any] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append((json.loads(request.content), request.headers["x-key"]))
        return httpx.Response(201, text="Booked.")

    tool = Tool("book", webhook=Webhook("https://tools.example/book", {"x-key": "secret"}))
    async with answering(handler) as runner:
        assert await used(runner, tool, call("book", '{"people": 2}')) == "Booked."
    assert seen == [({"name": "book", "arguments": {"people": 2}, "call_id": "call_1", "call": ABOUT}, "secret")]


async def test_arguments_that_do_not_fit_are_not_sent() -> None:
    """Long ones are checked in a thread."""

    def handler(request: httpx.Request) -> httpx.Response:
        raise AssertionError("it was sent")

    parameters = {"required": ["people"], "properties": {"people": {"type": "integer"}}}
    tool = Tool("book", parameters=parameters, webhook=Webhook("https://tools.example/book"))
    async with answering(handler) as runner:
        for arguments in ("{}", '{"people": "two"}', '{"people": tw', json.dumps({"note": "x" * 5000})):
            with pytest.raises(ToolError, match="nothing was done"):
                await used(runner, tool, call("book", arguments))


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_a_webhook_that_refuses(status: int) -> None:
    async with answering(
        lambda request: httpx.Response(status, headers={"location": "https://other.example"})
    ) as runner:
        with pytest.raises(ToolError, match=f"HTTP status {status}"):
            await used(runner, Tool("book", webhook=Webhook("https://tools.example")), call("book"))


async def test_a_webhook_that_cannot_be_reached_keeps_its_address_to_itself() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    async with answering(handler) as runner:
        with pytest.raises(ToolError) as caught:
            await used(runner, Tool("book", webhook=Webhook("https://tools.example/?key=secret")), call("book"))
    assert "secret" not in str(caught.value)


class Bookings:
    """A web server that does each key's booking once, and misbehaves as it is told, a request at a time."""

    def __init__(self, *ways: str) -> None:
        self.keys: list[str] = []
        self.booked: dict[str, int] = {}
        self._ways = list(ways)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        [key] = re.findall(r"(?im)^idempotency-key: (.*)\r$", head)
        self.keys.append(key)
        number = self.booked.setdefault(key, len(self.booked) + 1)
        way = self._ways.pop(0) if self._ways else "answers"
        if way == "slow":
            await asyncio.sleep(0.5)
        if way != "breaks":
            body = f"number {number}"
            status = "503 Busy" if way == "busy" else "200 OK"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        writer.close()


@pytest.mark.parametrize("way", ["slow", "breaks", "busy"])
async def test_a_server_that_knows_keys_books_once_whatever_became_of_the_first_request(way: str) -> None:
    """A whole errand, twice, against a real web server."""
    bookings = Bookings(way)
    server = await asyncio.start_server(bookings.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    tool = Tool("book", webhook=Webhook(url), timeout_ms=300)
    async with server, ToolRunner() as runner:
        errands = Errands(History(), Ids("1"), partial(runner.begin, tenant="acme"))
        results = []
        for number in range(3):
            errand = errands.begin(tool, ToolCall(f"c{number}", "book", "{}"), ABOUT, remembered=True)
            await errand.wait()
            errands.told([errand])
            results.append(errand.output or "")
    assert results[0].startswith("Error: ") and results[1:] == ["number 1", "number 2"]
    assert bookings.keys[0] == bookings.keys[1] != bookings.keys[2], "a repeat keeps it; a new wish has its own"
    assert all(re.fullmatch(r'"use_1_\d+"', key) for key in bookings.keys)


async def test_a_server_that_cannot_be_reached_is_tried_once_more_with_the_same_key() -> None:
    keys: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) == 1:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, text="Booked.")

    async with answering(handler) as runner:
        tool = Tool("book", webhook=Webhook("https://tools.example"))
        assert await used(runner, tool, call("book"), "use_1") == "Booked."
    assert keys == ['"use_1"', '"use_1"']


async def test_a_request_that_was_sent_is_not_sent_again() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        raise httpx.ReadError("reset")

    async with answering(handler) as runner:
        with pytest.raises(OutcomeUnknown, match="nobody knows whether it was done"):
            await used(runner, Tool("book", webhook=Webhook("https://tools.example")), call("book"))
    assert len(seen) == 1


async def test_a_tool_s_own_limit_is_the_only_one() -> None:
    seen: list[Any] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"])
        return httpx.Response(200)

    async with answering(handler) as runner:
        await used(runner, Tool("book", webhook=Webhook("https://tools.example"), timeout_ms=60_000), call("book"))
    assert set(seen[0].values()) == {None}


async def test_a_webhook_without_a_valid_address() -> None:
    async with ToolRunner() as runner:
        for url in ("", "not a url", "ftp://x", "http://[::"):
            with pytest.raises(ToolError):
                await used(runner, Tool("book", webhook=Webhook(url)), call("book"))


async def test_the_log_says_where_nobody_answers_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    async with ToolRunner() as runner:
        with pytest.raises(ToolError, match="^book could not be reached$"):
            tool = Tool("book", webhook=Webhook("http://user:pass@127.0.0.1:9/hook/secret?key=secret"))
            await used(runner, tool, call("book"))
    assert "book could not be reached at 127.0.0.1:9 (ConnectError): is its server up?" in caplog.text
    assert "secret" not in caplog.text and "pass" not in caplog.text


async def test_a_webhook_that_takes_too_long() -> None:
    async def handler(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(1)
        return httpx.Response(200)

    async with ToolRunner(httpx.MockTransport(handler)) as runner:
        with pytest.raises(ToolError, match="longer than 30 ms"):
            await used(runner, Tool("book", webhook=Webhook("https://tools.example"), timeout_ms=30), call("book"))


async def test_a_server_that_shakes_no_hands_was_sent_nothing(tools: ToolRunner) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(ToolError, match="^book could not be reached within 200 ms; nothing was sent$") as caught:
            await used(tools, Tool("book", webhook=Webhook(f"https://{address}"), timeout_ms=200), call("book"))
        assert not isinstance(caught.value, OutcomeUnknown)
        with pytest.raises(OutcomeUnknown, match="longer than 200 ms; nobody knows"):
            await used(tools, Tool("book", webhook=Webhook(f"http://{address}"), timeout_ms=200), call("book"))


async def test_a_connection_that_is_used_again_was_sent_something(tools: ToolRunner) -> None:
    connections = 0

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(once, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        tool = Tool("book", webhook=Webhook(url), timeout_ms=200)
        assert await used(tools, tool, call("book")) == "done"
        with pytest.raises(OutcomeUnknown, match="longer than 200 ms; nobody knows"):
            await used(tools, tool, call("book"))
    assert connections == 1


async def test_an_endless_answer_is_not_read_to_its_end() -> None:
    async with answering(lambda request: httpx.Response(200, content=b"y" * 3_000_000)) as runner:
        result = await used(runner, Tool("book", webhook=Webhook("https://tools.example")), call("book"))
        assert len(result) == RESULT_CHARS


async def test_after_closing_nothing_is_called() -> None:
    runner = ToolRunner()
    with pytest.raises(ToolError):
        await used(runner, Tool("book", webhook=Webhook("https://tools.example")), call("book"))


async def test_tools_that_outlive_their_calls_leave_room_for_other_tenants() -> None:
    """A webhook that is slow, and callers of one tenant who have it begun and hang up, again and again."""
    answers = asyncio.Event()

    async def slow(request: httpx.Request) -> httpx.Response:
        await answers.wait()
        return httpx.Response(200, text="done")

    tool = Tool("book", "", {}, webhook=Webhook("http://desk"))
    async with ToolRunner(httpx.MockTransport(slow)) as runner:

        def begin(n: int, tenant: str) -> asyncio.Task[str]:
            return runner.begin(
                tool, ToolCall(f"c{n}", "book", "{}"), {"id": f"rtc_{n // 16}"}, f"k{tenant}{n}", tenant
            )

        greedy = [begin(n, "greedy") for n in range(MOST // 2 + 50)]
        others = [begin(n, f"other{n % 2}") for n in range(20)]
        await asyncio.sleep(0.01)
        refused = [task for task in greedy if task.done()]
        assert len(refused) == 50 and not any(task.done() for task in others)
        with pytest.raises(ToolError, match="nothing was sent"):
            await refused[0]
        answers.set()
        assert await asyncio.gather(*others) == ["done"] * 20
        await asyncio.gather(*greedy, return_exceptions=True)
        assert await begin(999, "greedy") == "done"

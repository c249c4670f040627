"""Webhooks as agent tools: what is sent and what is not, and how many tools run for one tenant."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.support.tools import ABOUT, BOOK, Web, used
from voicepipe.agent import Tool, Webhook
from voicepipe.base.errors import OutcomeUnknown, ToolError
from voicepipe.tools.tool_runner import MOST, ToolRunner


@pytest.fixture
async def tools() -> AsyncIterator[ToolRunner]:
    async with ToolRunner() as runner:
        yield runner


def book(url: str, timeout_ms: int = 3000) -> Tool:
    return Tool("book", webhook=Webhook(url), timeout_ms=timeout_ms)


async def test_a_webhook_gets_the_call_and_its_answer_is_the_result() -> None:
    web = Web(httpx.Response(201, text="Booked."))
    tool = Tool("book", webhook=Webhook("https://tools.example/book", {"x-key": "secret"}))
    assert await web.used('{"people": 2}', tool) == "Booked."
    assert web.bodies == [{"name": "book", "arguments": {"people": 2}, "call_id": "call_1", "call": ABOUT}]
    assert web.asked[0].headers["x-key"] == "secret"


@pytest.mark.parametrize(("own", "type_"), [({}, "application/json"), ({"content-type": "text/x-json"}, "text/x-json")])
async def test_the_request_is_json(own: dict[str, str], type_: str) -> None:
    web = Web()
    await web.used('{"name": "Zoë"}', Tool("book", webhook=Webhook("https://tools.example", own)))
    [asked] = web.asked
    assert asked.headers.get_list("content-type") == [type_]
    assert asked.headers["content-length"] == str(len(asked.content)) and "Zoë" in asked.content.decode()


async def test_arguments_that_do_not_fit_are_not_sent() -> None:
    """Long ones are checked in a thread."""
    web = Web()
    parameters = {"required": ["people"], "properties": {"people": {"type": "integer"}}}
    tool = Tool("book", parameters=parameters, webhook=BOOK.webhook)
    async with web.runner() as runner:
        for arguments in ("{}", '{"people": "two"}', '{"people": tw', json.dumps({"note": "x" * 5000})):
            with pytest.raises(ToolError, match="nothing was done"):
                await used(runner, tool, arguments)
    assert not web.asked


@pytest.mark.parametrize(
    "arguments",
    ['{"a": 1e999}', '{"a": NaN}', '{"a": "\\ud800"}', '{"\\udfff": 1}'],
)
async def test_arguments_that_cannot_be_sent(arguments: str, caplog: pytest.LogCaptureFixture) -> None:
    web = Web()
    with pytest.raises(ToolError, match="nothing was sent") as raised:
        await web.used(arguments)
    assert not isinstance(raised.value, OutcomeUnknown)
    assert not web.asked and "Traceback" not in caplog.text


@pytest.mark.parametrize(("depth", "sent"), [(500, 1), (100_000, 0)])
async def test_arguments_in_arguments(depth: int, sent: int) -> None:
    web = Web()
    try:
        await web.used('{"a": ' + "[" * depth + "]" * depth + "}")
    except ToolError as error:
        assert not isinstance(error, OutcomeUnknown)
    assert len(web.asked) == sent


async def test_a_redirect_is_not_followed() -> None:
    web = Web(httpx.Response(302, headers={"location": "https://other.example"}))
    with pytest.raises(ToolError, match="HTTP status 302"):
        await web.used()
    assert len(web.asked) == 1


async def test_a_server_that_cannot_be_reached_is_tried_once_more_with_the_same_key() -> None:
    web = Web(httpx.ConnectError("refused"))
    async with web.runner() as runner:
        assert await used(runner, BOOK, key="use_1") == "Booked."
    assert web.keys == ['"use_1"', '"use_1"']


async def test_a_request_that_was_sent_is_not_sent_again() -> None:
    web = Web(httpx.ReadError("reset"))
    with pytest.raises(OutcomeUnknown, match="nobody knows whether it was done"):
        await web.used()
    assert len(web.asked) == 1


async def test_a_tool_s_own_limit_is_the_only_one() -> None:
    web = Web()
    await web.used(tool=book("https://tools.example", 60_000))
    timeouts: dict[str, Any] = web.asked[0].extensions["timeout"]
    assert set(timeouts.values()) == {None}


@pytest.mark.parametrize("url", ["", "not a url", "ftp://x", "http://[::"])
async def test_a_webhook_without_a_valid_address(tools: ToolRunner, url: str) -> None:
    with pytest.raises(ToolError):
        await used(tools, book(url))


async def test_the_log_says_where_nobody_answers_and_no_secret(
    tools: ToolRunner, caplog: pytest.LogCaptureFixture
) -> None:
    """The model is not even told where."""
    with pytest.raises(ToolError, match="^book could not be reached$"):
        await used(tools, book("http://user:pass@127.0.0.1:9/hook/secret?key=secret"))
    assert "book could not be reached at 127.0.0.1:9 (ConnectError): is its server up?" in caplog.text
    assert "secret" not in caplog.text and "pass" not in caplog.text


async def test_a_server_that_shakes_no_hands_was_sent_nothing(tools: ToolRunner) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(ToolError, match="^book could not be reached within 200 ms; nothing was sent$") as caught:
            await used(tools, book(f"https://{address}", 200))
        assert not isinstance(caught.value, OutcomeUnknown)
        with pytest.raises(OutcomeUnknown, match="longer than 200 ms; nobody knows"):
            await used(tools, book(f"http://{address}", 200))


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
        tool = book(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", 200)
        assert await used(tools, tool) == "done"
        with pytest.raises(OutcomeUnknown, match="longer than 200 ms; nobody knows"):
            await used(tools, tool)
    assert connections == 1


async def test_after_closing_nothing_is_called() -> None:
    with pytest.raises(ToolError):
        await used(ToolRunner(), BOOK)


async def test_tools_that_outlive_their_calls_leave_room_for_other_tenants() -> None:
    """A webhook that is slow, and callers of one tenant who have it begun and hang up, again and again."""
    answers = asyncio.Event()

    async def slow(request: httpx.Request) -> httpx.Response:
        await answers.wait()
        return httpx.Response(200, text="done")

    async with ToolRunner(httpx.MockTransport(slow)) as runner:
        greedy = [used(runner, BOOK, tenant="greedy", by=f"rtc_{n // 16}") for n in range(MOST // 2 + 50)]
        others = [used(runner, BOOK, tenant=f"other{n % 2}") for n in range(20)]
        await asyncio.sleep(0.01)
        refused = [task for task in greedy if task.done()]
        assert len(refused) == 50 and not any(task.done() for task in others)
        with pytest.raises(ToolError, match="nothing was sent"):
            await refused[0]
        answers.set()
        assert await asyncio.gather(*others) == ["done"] * 20
        await asyncio.gather(*greedy, return_exceptions=True)
        assert await used(runner, BOOK, tenant="greedy") == "done"

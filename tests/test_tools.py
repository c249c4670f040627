"""Agent tools: what comes back, and that every failure is a text for the model."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from voicepipe.agent import Tool, Webhook
from voicepipe.errors import ToolError
from voicepipe.tools import RESULT_CHARS, ToolRunner, parse, text
from voicepipe.turn.prompt import ToolCall

HERE = __name__
ABOUT = {"id": "rtc_1", "caller": "+4930123456", "called": "", "headers": {"X-Account": "42"}}


def add(a: int, b: int = 1) -> int:
    return a + b


async def greet(name: str) -> dict[str, str]:
    return {"hello": name}


def who(name: str, call: dict[str, Any]) -> str:
    return f"{name}: {call['caller']} of account {call['headers']['X-Account']}"


def fail() -> None:
    raise ValueError("no table left")


def refuse() -> None:
    raise ToolError("we are closed")


def sleep_long() -> None:
    time.sleep(0.3)


def talk() -> str:
    return "x" * 50_000


def function(name: str, timeout_ms: int = 3000) -> Tool:
    return Tool(name, function=f"{HERE}:{name}", timeout_ms=timeout_ms)


def call(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall("call_1", name, arguments)


@pytest.fixture
async def tools() -> AsyncIterator[ToolRunner]:
    async with ToolRunner() as runner:
        yield runner


def answering(handler: Callable[[httpx.Request], httpx.Response]) -> ToolRunner:
    return ToolRunner(httpx.MockTransport(handler))


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("add", '{"a": 2, "b": 3}', "5"),
        ("add", '{"a": 2}', "3"),
        ("greet", '{"name": "Ann"}', '{"hello":"Ann"}'),
        ("who", '{"name": "Ann"}', "Ann: +4930123456 of account 42"),
        ("who", '{"name": "Ann", "call": {"caller": "me"}}', "Ann: +4930123456 of account 42"),
        ("fail", "{}", "fail failed: no table left"),
        ("refuse", "", "we are closed"),
        ("add", "{}", "add was called with wrong arguments: missing a required argument: 'a'"),
        ("add", '{"a": 1, "c": 2}', "add was called with wrong arguments: got an unexpected keyword argument 'c'"),
        ("add", "[1]", "the arguments are not a JSON object"),
        ("add", '{"a": ', "the arguments are not valid JSON"),
        ("gone", "{}", f"gone is not there: module '{HERE}' has no attribute 'gone'"),
        ("HERE", "{}", f'HERE has no function: expected "module:function", got "{HERE}:HERE"'),
    ],
)
async def test_functions(tools: ToolRunner, name: str, arguments: str, result: str) -> None:
    try:
        got = await tools.run(function(name), call(name, arguments), ABOUT)
    except ToolError as error:
        got = str(error)
    assert got == result


@pytest.mark.parametrize("path", ["", "nowhere", "no.such.module:f", ":f", "json:"])
async def test_a_function_that_is_not_there(tools: ToolRunner, path: str) -> None:
    with pytest.raises(ToolError):
        await tools.run(Tool("lost", function=path), call("lost"), ABOUT)


async def test_a_parameter_call_may_be_the_models(tools: ToolRunner) -> None:
    theirs = '{"name": "Ann", "call": {"caller": "Bob", "headers": {"X-Account": "7"}}}'
    tool = Tool("who", function=f"{HERE}:who", parameters={"properties": {"name": {}, "call": {}}})
    assert await tools.run(tool, call("who", theirs), ABOUT) == "Ann: Bob of account 7"


async def test_a_slow_function_does_not_hold_the_loop(tools: ToolRunner) -> None:
    begun = time.monotonic()
    with pytest.raises(ToolError, match="longer than 50 ms"):
        await tools.run(function("sleep_long", 50), call("sleep_long"), ABOUT)
    assert time.monotonic() - begun < 0.25


async def test_long_results_are_cut(tools: ToolRunner) -> None:
    assert len(await tools.run(function("talk"), call("talk"), ABOUT)) == RESULT_CHARS


async def test_a_webhook_gets_the_call_and_its_answer_is_the_result() -> None:
    seen: list[Any] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append((json.loads(request.content), request.headers["x-key"]))
        return httpx.Response(201, text="Booked.")

    tool = Tool("book", webhook=Webhook("https://tools.example/book", {"x-key": "secret"}))
    async with answering(handler) as runner:
        assert await runner.run(tool, call("book", '{"people": 2}'), ABOUT) == "Booked."
    assert seen == [({"name": "book", "arguments": {"people": 2}, "call_id": "call_1", "call": ABOUT}, "secret")]


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_a_webhook_that_refuses(status: int) -> None:
    async with answering(
        lambda request: httpx.Response(status, headers={"location": "https://other.example"})
    ) as runner:
        with pytest.raises(ToolError, match=f"HTTP status {status}"):
            await runner.run(Tool("book", webhook=Webhook("https://tools.example")), call("book"), ABOUT)


async def test_a_webhook_that_cannot_be_reached_keeps_its_address_to_itself() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    async with answering(handler) as runner:
        with pytest.raises(ToolError) as caught:
            await runner.run(Tool("book", webhook=Webhook("https://tools.example/?key=secret")), call("book"), ABOUT)
    assert "secret" not in str(caught.value)


async def test_a_webhook_without_a_valid_address() -> None:
    async with ToolRunner() as runner:
        for url in ("", "not a url", "ftp://x", "http://[::"):
            with pytest.raises(ToolError):
                await runner.run(Tool("book", webhook=Webhook(url)), call("book"), ABOUT)


async def test_a_webhook_that_takes_too_long() -> None:
    async def handler(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(1)
        return httpx.Response(200)

    async with ToolRunner(httpx.MockTransport(handler)) as runner:
        with pytest.raises(ToolError, match="longer than 30 ms"):
            await runner.run(Tool("book", webhook=Webhook("https://tools.example"), timeout_ms=30), call("book"), ABOUT)


async def test_an_endless_answer_is_not_read_to_its_end() -> None:
    async with answering(lambda request: httpx.Response(200, content=b"y" * 3_000_000)) as runner:
        result = await runner.run(Tool("book", webhook=Webhook("https://tools.example")), call("book"), ABOUT)
        assert len(result) == RESULT_CHARS


async def test_after_closing_nothing_is_called() -> None:
    runner = ToolRunner()
    with pytest.raises(ToolError):
        await runner.run(Tool("book", webhook=Webhook("https://tools.example")), call("book"), ABOUT)


def test_no_arguments_are_an_empty_object() -> None:
    assert parse("") == {}


@pytest.mark.parametrize(
    ("result", "read"), [("plain", "plain"), (None, ""), ([1, 2], "[1,2]"), (object, "<class 'object'>")]
)
def test_results_as_text(result: Any, read: str) -> None:
    assert text(result) == read


def test_the_demo_tool_gives_equal_bookings_equal_references() -> None:
    from voicepipe.tools_demo import book_table

    assert book_table(2, "Friday", "7 pm") == book_table(2, "friday", "7 pm") != book_table(3, "Friday", "7 pm")

"""Agent tools: what comes back, and that every failure is a text for the model."""

import asyncio
import itertools
import json
import re
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import httpx
import pytest

from tests.waiting import until
from voicepipe.agent import Tool, Webhook
from voicepipe.errands import Errand, Errands
from voicepipe.errors import OutcomeUnknown, ToolError
from voicepipe.python_tools import RESULT_CHARS, SHARE, text
from voicepipe.tools import MOST, ToolRunner, parse
from voicepipe.turn.history import History, Ids
from voicepipe.turn.prompt import ToolCall

HERE = __name__
USES = itertools.count(100)
ABOUT = {"id": "rtc_1", "caller": "+4930123456", "called": "", "headers": {"X-Account": "42"}}


def add(a: int, b: int = 1) -> int:
    return a + b


async def greet(name: str) -> dict[str, str]:
    return {"hello": name}


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """By a decorator that knows nothing of async functions."""
    return lambda name: function(name)


greet_decorated = decorated(greet)


@decorated
async def leave_decorated(name: str) -> None:
    sys.exit(name)


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


def used(
    tools: ToolRunner, tool: Tool, call: ToolCall, key: str = "", tenant: str = "acme", by: str = "rtc_1"
) -> "asyncio.Task[str]":
    """Begun for a use of its own, unless `key` names one. `by`: whose call it is for."""
    return tools.begin(tool, call, ABOUT | {"id": by}, key or f"use_{next(USES)}", tenant)


def answering(handler: Callable[[httpx.Request], httpx.Response]) -> ToolRunner:
    return ToolRunner(httpx.MockTransport(handler))


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("add", '{"a": 2, "b": 3}', "5"),
        ("add", '{"a": 2}', "3"),
        ("greet", '{"name": "Ann"}', '{"hello":"Ann"}'),
        ("greet_decorated", '{"name": "Ann"}', '{"hello":"Ann"}'),
        ("leave_decorated", '{"name": "Ann"}', "leave_decorated failed"),
        ("who", '{"name": "Ann"}', "Ann: +4930123456 of account 42"),
        ("who", '{"name": "Ann", "call": {"caller": "me"}}', "Ann: +4930123456 of account 42"),
        ("fail", "{}", "fail failed"),
        ("refuse", "", "we are closed"),
        ("add", "{}", "add was called with wrong arguments: missing a required argument: 'a'"),
        ("add", '{"a": 1, "c": 2}', "add was called with wrong arguments: got an unexpected keyword argument 'c'"),
        ("add", "[1]", "the arguments are not a JSON object"),
        ("add", '{"a": ', "the arguments are not valid JSON"),
        ("gone", "{}", "gone is not there"),
        ("HERE", "{}", "HERE is not there"),
    ],
)
async def test_functions(tools: ToolRunner, name: str, arguments: str, result: str) -> None:
    try:
        got = await used(tools, function(name), call(name, arguments))
    except ToolError as error:
        got = str(error)
    assert got == result


@pytest.mark.parametrize("path", ["", "nowhere", "no.such.module:f", ":f", "json:"])
async def test_a_function_that_is_not_there(tools: ToolRunner, path: str) -> None:
    with pytest.raises(ToolError):
        await used(tools, Tool("lost", function=path), call("lost"))


async def test_a_parameter_call_may_be_the_models(tools: ToolRunner) -> None:
    theirs = '{"name": "Ann", "call": {"caller": "Bob", "headers": {"X-Account": "7"}}}'
    tool = Tool("who", function=f"{HERE}:who", parameters={"properties": {"name": {}, "call": {}}})
    assert await used(tools, tool, call("who", theirs)) == "Ann: Bob of account 7"


async def test_a_slow_function_does_not_hold_the_loop(tools: ToolRunner, hanging: None) -> None:
    with pytest.raises(ToolError, match="longer than 50 ms"):
        await used(tools, function("hang", 50), call("hang"))
    assert tools.hanging() == 1


HUNG = threading.Event()
"""Lets go of what hangs."""


def hang() -> str:
    HUNG.wait(60)
    return "late"


async def sleep_on_the_loop() -> None:
    await asyncio.sleep(60)


async def hang_on_the_loop() -> None:
    while not HUNG.is_set():
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)


def leave() -> None:
    sys.exit(3)


async def leave_on_the_loop() -> None:
    sys.exit(3)


@pytest.fixture
def hanging() -> Iterator[None]:
    HUNG.clear()
    yield
    HUNG.set()


async def test_functions_that_hang_stop_nobody_but_themselves(tools: ToolRunner, hanging: None) -> None:
    """As many as one function may have threads, and many more: others run, also the same one of another tenant."""
    HUNG.set()
    await used(tools, function("hang"), call("hang"))
    HUNG.clear()
    hung = function("hang", 200)
    begun = (used(tools, hung, call("hang"), by=f"rtc_{n}") for n in range(3 * SHARE))
    failed = await asyncio.gather(*begun, return_exceptions=True)
    assert all(isinstance(error, ToolError) for error in failed)
    assert sum(isinstance(error, OutcomeUnknown) for error in failed) == SHARE == tools.hanging()
    with pytest.raises(ToolError, match="hang does not answer at the moment"):
        await used(tools, hung, call("hang"))
    assert await used(tools, function("add"), call("add", '{"a": 2}')) == "3"
    assert await used(tools, function("greet"), call("greet", '{"name": "Ann"}')) == '{"hello":"Ann"}'
    with pytest.raises(OutcomeUnknown):
        await used(tools, hung, call("hang"), tenant="another")
    HUNG.set()
    await until(lambda: not tools.hanging())
    assert await used(tools, function("hang"), call("hang")) == "late"


async def test_what_comes_of_a_function_that_took_too_long_is_told_and_it_is_not_begun_twice(
    tools: ToolRunner, hanging: None
) -> None:
    """Who asks for the same again waits for the run that there is; another call's is another run."""
    one, other = (Errands(History(), Ids(call), partial(tools.begin, tenant="acme")) for call in "12")

    def ask(errands: Errands, timeout_ms: int) -> Errand:
        number = len(errands.call_ids())
        return errands.begin(function("hang", timeout_ms), ToolCall(f"c{number}", "hang", "{}"), ABOUT, remembered=True)

    for _ in range(2):
        late = ask(one, 50)
        await late.wait()
        assert late.output == "Error: hang took longer than 50 ms; nobody knows whether it was done"
    assert tools.hanging() == 1
    waits, runs = ask(one, 3000), ask(other, 3000)
    await until(lambda: tools.hanging() == 2)
    HUNG.set()
    await asyncio.gather(waits.wait(), runs.wait())
    assert waits.output == runs.output == "late"
    assert [errand.output for errand in one.untold()].count("late") == 1
    await until(lambda: not tools.hanging())


async def test_an_async_function_is_stopped_half_way_or_tells_its_result(tools: ToolRunner, hanging: None) -> None:
    with pytest.raises(OutcomeUnknown) as stopped:
        await used(tools, function("sleep_on_the_loop", 30), call("sleep_on_the_loop"), "use_1")
    with pytest.raises(OutcomeUnknown) as goes_on:
        await used(tools, function("hang_on_the_loop", 30), call("hang_on_the_loop"), "use_2")
    HUNG.set()
    assert goes_on.value.later and stopped.value.later
    assert (await goes_on.value.later)() == ""
    assert stopped.value.later.cancelled()


async def test_an_async_function_that_refuses_to_be_cancelled_is_left_behind(tools: ToolRunner, hanging: None) -> None:
    with pytest.raises(OutcomeUnknown, match="longer than 30 ms; nobody knows whether it was done"):
        await used(tools, function("hang_on_the_loop", 30), call("hang_on_the_loop"))
    assert tools.hanging() == 1
    HUNG.set()
    await until(lambda: not tools.hanging())


@pytest.mark.parametrize("name", ["leave", "leave_on_the_loop"])
async def test_a_function_that_exits_has_failed_and_nothing_else(tools: ToolRunner, name: str) -> None:
    with pytest.raises(ToolError, match=f"^{name} failed$"):
        await used(tools, function(name), call(name))


async def test_what_a_function_raised_is_for_the_log_alone(tools: ToolRunner, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ToolError) as failed:
        await used(tools, function("fail"), call("fail"))
    assert "no table left" not in str(failed.value) and "no table left" in caplog.text


async def test_a_server_that_ends_waits_for_what_was_begun(caplog: pytest.LogCaptureFixture) -> None:
    async with ToolRunner() as runner:
        task = used(runner, function("sleep_long"), call("sleep_long"))
        await asyncio.sleep(0.05)
    assert task.result() == ""
    assert "tools still running: sleep_long of rtc_1" in caplog.text


async def test_a_server_that_ends_says_what_was_left(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, hanging: None
) -> None:
    monkeypatch.setattr("voicepipe.tools.FINISH_S", 0.05)
    async with ToolRunner() as runner:
        used(runner, function("hang"), call("hang"))
        await asyncio.sleep(0.05)
    assert "hang of rtc_1 was not done when the server ended" in caplog.text
    assert "1 functions of tools hang" in caplog.text


async def test_long_results_are_cut(tools: ToolRunner) -> None:
    assert len(await used(tools, function("talk"), call("talk"))) == RESULT_CHARS


async def test_a_webhook_gets_the_call_and_its_answer_is_the_result() -> None:
    seen: list[Any] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append((json.loads(request.content), request.headers["x-key"]))
        return httpx.Response(201, text="Booked.")

    tool = Tool("book", webhook=Webhook("https://tools.example/book", {"x-key": "secret"}))
    async with answering(handler) as runner:
        assert await used(runner, tool, call("book", '{"people": 2}')) == "Booked."
    assert seen == [({"name": "book", "arguments": {"people": 2}, "call_id": "call_1", "call": ABOUT}, "secret")]


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

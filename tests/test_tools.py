"""Python functions as agent tools: what comes back, and that every failure is a text for the model."""

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from tests.support.tool_use import ABOUT, call, used
from tests.support.waiting import until
from voicepipe.agent import Tool
from voicepipe.call.errands import Errand, Errands
from voicepipe.errors import OutcomeUnknown, ToolError
from voicepipe.python_tools import RESULT_CHARS, SHARE, text
from voicepipe.tool_arguments import parse
from voicepipe.tools import ToolRunner
from voicepipe.turn.history import History, Ids
from voicepipe.turn.prompt import ToolCall

HERE = __name__


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


@pytest.fixture
async def tools() -> AsyncIterator[ToolRunner]:
    async with ToolRunner() as runner:
        yield runner


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
        ("add", "[1]", "the arguments are not a JSON object; nothing was done"),
        (
            "add",
            '{"a": ',
            "the arguments are not valid JSON (Expecting value: line 1 column 7 (char 6)); nothing was done",
        ),
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

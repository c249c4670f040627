"""Python functions as agent tools: what comes back, that every failure is a text for the model, and which threads one
call or one tenant may hold, however long it keeps them."""

import asyncio
import random
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from tests.support.tools import ABOUT, used
from tests.support.waiting import until
from voicepipe.agent import Tool
from voicepipe.base.errors import OutcomeUnknown, ToolError
from voicepipe.call.tool_runs import ToolRun, ToolRuns
from voicepipe.conversation.history import History, Ids
from voicepipe.conversation.prompt import ToolCall
from voicepipe.tools.python_tools import RESULT_CHARS, SHARE, THREADS, text
from voicepipe.tools.tool_runner import MOST, ToolRunner

HERE = __name__
LET_GO = threading.Event()
"""Ends what hangs."""
ENDED: list[str] = []
ALL_TOGETHER = threading.Barrier(SHARE)


@pytest.fixture
def hanging() -> Iterator[None]:
    """Functions that hang do so until the test sets LET_GO, or ends."""
    LET_GO.clear()
    ENDED.clear()
    yield
    LET_GO.set()


@pytest.fixture
async def tools(hanging: None) -> AsyncIterator[ToolRunner]:
    async with ToolRunner() as runner:
        yield runner
        LET_GO.set()
        await until(lambda: not runner.hanging())


def function(name: str, timeout_ms: int = 3000) -> Tool:
    return Tool(name, function=f"{HERE}:{name}", timeout_ms=timeout_ms)


# --- functions that return


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


def leave() -> None:
    sys.exit(3)


async def leave_on_the_loop() -> None:
    sys.exit(3)


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


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("add", '{"a": 2, "b": 3}', "5"),
        ("add", '{"a": 2}', "3"),
        ("greet", '{"name": "Ann"}', '{"hello":"Ann"}'),
        ("greet_decorated", '{"name": "Ann"}', '{"hello":"Ann"}'),
        ("leave_decorated", '{"name": "Ann"}', "leave_decorated failed"),
        ("leave", "{}", "leave failed"),
        ("leave_on_the_loop", "{}", "leave_on_the_loop failed"),
        ("who", '{"name": "Ann"}', "Ann: +4930123456 of account 42"),
        ("who", '{"name": "Ann", "call": {"caller": "me"}}', "Ann: +4930123456 of account 42"),
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
        got = await used(tools, function(name), arguments)
    except ToolError as error:
        got = str(error)
    assert got == result


@pytest.mark.parametrize("path", ["", "nowhere", "no.such.module:f", ":f", "json:"])
async def test_a_function_that_is_not_there(tools: ToolRunner, path: str) -> None:
    with pytest.raises(ToolError):
        await used(tools, Tool("lost", function=path))


async def test_a_parameter_call_may_be_the_models(tools: ToolRunner) -> None:
    theirs = '{"name": "Ann", "call": {"caller": "Bob", "headers": {"X-Account": "7"}}}'
    tool = Tool("who", function=f"{HERE}:who", parameters={"properties": {"name": {}, "call": {}}})
    assert await used(tools, tool, theirs) == "Ann: Bob of account 7"


async def test_what_a_function_raised_is_for_the_log_alone(tools: ToolRunner, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ToolError, match="^fail failed$"):
        await used(tools, function("fail"))
    assert "no table left" in caplog.text


async def test_long_results_are_cut(tools: ToolRunner) -> None:
    assert len(await used(tools, function("talk"))) == RESULT_CHARS


@pytest.mark.parametrize(
    ("result", "read"), [("plain", "plain"), (None, ""), ([1, 2], "[1,2]"), (object, "<class 'object'>")]
)
def test_results_as_text(result: Any, read: str) -> None:
    assert text(result) == read


async def test_a_server_that_ends_waits_for_what_was_begun(caplog: pytest.LogCaptureFixture) -> None:
    async with ToolRunner() as runner:
        task = used(runner, function("sleep_long"))
        await asyncio.sleep(0.05)
    assert task.result() == ""
    assert "tools still running: sleep_long of rtc_1" in caplog.text


@pytest.mark.usefixtures("hanging")
async def test_a_server_that_ends_says_what_was_left(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voicepipe.tools.tool_runner.FINISH_S", 0.05)
    async with ToolRunner() as runner:
        used(runner, function("hang"))
        await asyncio.sleep(0.05)
    assert "hang of rtc_1 was not done when the server ended" in caplog.text
    assert "1 functions of tools hang" in caplog.text


# --- functions that take too long


def hang() -> str:
    LET_GO.wait(60)
    return "late"


async def sleep_on_the_loop() -> None:
    await asyncio.sleep(60)


async def hang_on_the_loop() -> None:
    while not LET_GO.is_set():
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)


async def test_functions_that_hang_stop_nobody_but_themselves(tools: ToolRunner) -> None:
    """As many as one function may have threads, and many more: others run, also the same one of another tenant."""
    LET_GO.set()
    await used(tools, function("hang"))
    LET_GO.clear()
    hung = function("hang", 200)
    begun = (used(tools, hung, by=f"rtc_{n}") for n in range(3 * SHARE))
    failed = await asyncio.gather(*begun, return_exceptions=True)
    assert all(isinstance(error, ToolError) for error in failed)
    assert sum(isinstance(error, OutcomeUnknown) for error in failed) == SHARE == tools.hanging()
    with pytest.raises(ToolError, match="hang does not answer at the moment"):
        await used(tools, hung)
    assert await used(tools, function("add"), '{"a": 2}') == "3"
    assert await used(tools, function("greet"), '{"name": "Ann"}') == '{"hello":"Ann"}'
    with pytest.raises(OutcomeUnknown):
        await used(tools, hung, tenant="another")
    LET_GO.set()
    await until(lambda: not tools.hanging())
    assert await used(tools, function("hang")) == "late"


async def test_what_comes_of_a_function_that_took_too_long_is_told_and_it_is_not_begun_twice(tools: ToolRunner) -> None:
    """Who asks for the same again waits for the run that there is; another call's is another run."""
    one, other = (ToolRuns(History(), Ids(call), partial(tools.begin, tenant="acme")) for call in "12")

    def ask(tool_runs: ToolRuns, timeout_ms: int) -> ToolRun:
        number = len(tool_runs.call_ids())
        return tool_runs.begin(
            function("hang", timeout_ms), ToolCall(f"c{number}", "hang", "{}"), ABOUT, remembered=True
        )

    for _ in range(2):
        late = ask(one, 50)
        await late.wait()
        assert late.output == "Error: hang took longer than 50 ms; nobody knows whether it was done"
    assert tools.hanging() == 1
    waits, runs = ask(one, 3000), ask(other, 3000)
    await until(lambda: tools.hanging() == 2)
    LET_GO.set()
    await asyncio.gather(waits.wait(), runs.wait())
    assert waits.output == runs.output == "late"
    assert [tool_run.output for tool_run in one.due()].count("late") == 1
    await until(lambda: not tools.hanging())


async def test_an_async_function_is_stopped_half_way_or_goes_on_and_tells_its_result(tools: ToolRunner) -> None:
    with pytest.raises(OutcomeUnknown) as stopped:
        await used(tools, function("sleep_on_the_loop", 30))
    with pytest.raises(OutcomeUnknown, match="longer than 30 ms; nobody knows whether it was done") as goes_on:
        await used(tools, function("hang_on_the_loop", 30))
    assert tools.hanging() == 1, "the one that refuses to be cancelled"
    LET_GO.set()
    assert goes_on.value.later and stopped.value.later
    assert (await goes_on.value.later)() == ""
    assert stopped.value.later.cancelled()
    await until(lambda: not tools.hanging())


# --- threads


def book(who: str) -> str:
    """Hangs for those who are greedy."""
    if who.startswith("greedy"):
        LET_GO.wait(60)
    return f"booked for {who}"


def __getattr__(name: str) -> Callable[[str], str]:
    """As many functions as a test wants."""
    if name.startswith("book_"):
        return book
    raise AttributeError(name)


def end_when_told(who: str) -> None:
    while who not in ENDED and not LET_GO.is_set():
        time.sleep(0.002)


def doze_or_meet(who: str) -> None:
    """So many ms; or until as many are there as one function has threads."""
    if who == "all":
        ALL_TOGETHER.wait(20)
    else:
        time.sleep(int(who) / 1000)


def use(
    tools: ToolRunner, name: str, who: str, by: str, tenant: str = "acme", timeout_ms: int = 5000
) -> "asyncio.Task[str]":
    return used(tools, function(name, timeout_ms), f'{{"who": "{who}"}}', tenant=tenant, by=by)


async def load(tools: ToolRunner, name: str) -> None:
    """That takes a thread for a moment, too."""
    await use(tools, name, "ann", "rtc_first")


async def test_one_call_that_hangs_leaves_threads_of_the_function_to_other_callers(tools: ToolRunner) -> None:
    await load(tools, "book")
    greedy = [use(tools, "book", "greedy", "rtc_greedy", timeout_ms=300) for _ in range(3 * SHARE)]
    await until(lambda: tools.hanging() >= SHARE // 2)
    others = [use(tools, "book", f"guest {n}", f"rtc_{n}") for n in range(4)]
    assert await asyncio.gather(*others) == [f"booked for guest {n}" for n in range(4)]
    failed = await asyncio.gather(*greedy, return_exceptions=True)
    assert sum(isinstance(error, OutcomeUnknown) for error in failed) == tools.hanging() == SHARE // 2
    with pytest.raises(ToolError, match="book does not answer at the moment"):
        await use(tools, "book", "ann", "rtc_greedy")
    assert await use(tools, "book", "ann", "rtc_other") == "booked for ann"


async def test_a_call_that_waits_for_many_threads_is_not_before_others(tools: ToolRunner) -> None:
    """All threads are taken, and one call waits for many more: who comes later has the first that is free."""
    ENDED.append("ann")
    await load(tools, "end_when_told")
    holds = [use(tools, "end_when_told", f"{n}", f"rtc_{n}") for n in range(SHARE)]
    await until(lambda: tools.hanging() == SHARE)
    greedy = [use(tools, "end_when_told", f"greedy {n}", "rtc_0") for n in range(SHARE)]
    other = use(tools, "end_when_told", "other", "rtc_other")
    await asyncio.sleep(0.01)
    ENDED.extend(["1", "2", "other"])
    await other
    assert not any(task.done() for task in greedy)
    ENDED.extend(f"{n}" for n in range(SHARE))
    ENDED.extend(f"greedy {n}" for n in range(SHARE))
    await asyncio.gather(*holds, *greedy)


async def fill(tools: ToolRunner, tenant: str, calls: Callable[[int], str]) -> None:
    """All threads, and more, if they are had: by more functions than are needed for that."""
    for batch in range(2 * THREADS // MOST // 2 + 1):
        numbers = range(batch * MOST // 2, (batch + 1) * MOST // 2)
        begun = [use(tools, f"book_{n % 40}", "greedy", calls(n), tenant, timeout_ms=150) for n in numbers]
        await asyncio.gather(*begun, return_exceptions=True)


async def test_one_tenant_whose_functions_hang_leaves_threads_to_other_tenants(tools: ToolRunner) -> None:
    """It may have most of them as long as it is alone."""
    await fill(tools, "greedy", "rtc_{}".format)
    assert THREADS // 2 < tools.hanging() < THREADS
    refused = tools.functions.figures().refused
    with pytest.raises(ToolError, match="too much to do"):
        await use(tools, "book_99", "ann", "rtc_ann", "greedy")
    figures = tools.functions.figures()
    assert (figures.running, figures.waiting, figures.refused) == (tools.hanging(), 0, refused + 1)
    guests = [use(tools, "book", f"guest {n}", f"rtc_g{n}", "other") for n in range(8)]
    assert await asyncio.gather(*guests) == [f"booked for guest {n}" for n in range(8)]
    await fill(tools, "greedy too", "rtc_too_{}".format)
    assert await use(tools, "book", "ann", "rtc_ann", "other") == "booked for ann"
    LET_GO.set()
    await until(lambda: not tools.hanging())
    assert await use(tools, "book_99", "ann", "rtc_ann", "greedy") == "booked for ann"


async def test_one_call_whose_functions_hang_leaves_threads_to_its_tenant_s_others(tools: ToolRunner) -> None:
    await fill(tools, "acme", lambda n: "rtc_greedy")
    assert tools.hanging() == THREADS // 2
    with pytest.raises(ToolError, match="too much to do"):
        await use(tools, "book_99", "ann", "rtc_greedy")
    assert await use(tools, "book_99", "ann", "rtc_ann") == "booked for ann"


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_became_of_those_who_waited_no_thread_is_lost(tools: ToolRunner, seed: int) -> None:
    """Calls that take too long, wait too long, or are stopped at any moment."""
    chance = random.Random(seed)
    begun = []
    for _ in range(120):
        call, takes_ms = f"rtc_{chance.randrange(6)}", chance.choice((0, 1, 5, 20))
        begun.append(use(tools, "doze_or_meet", f"{takes_ms}", call, timeout_ms=chance.choice((3, 20, 60, 5000))))
        if chance.random() < 0.3:
            asyncio.get_running_loop().call_later(chance.random() / 20, chance.choice(begun).cancel)
        await asyncio.sleep(chance.choice((0, 0, 0.002)))
    await asyncio.wait(begun, timeout=20)
    await until(lambda: not tools.hanging())
    await asyncio.gather(*(use(tools, "doze_or_meet", "all", f"rtc_{n}", timeout_ms=20_000) for n in range(SHARE)))

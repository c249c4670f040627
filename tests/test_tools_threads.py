"""Threads of Python functions: what one call or one tenant may hold of them, however long it keeps them."""

import asyncio
import itertools
import random
import threading
import time
from collections.abc import AsyncIterator, Callable

import pytest

from tests.support.waiting import until
from voicepipe.agent import Tool
from voicepipe.errors import OutcomeUnknown, ToolError
from voicepipe.python_tools import SHARE, THREADS
from voicepipe.tools import MOST, ToolRunner
from voicepipe.turn.prompt import ToolCall

USES = itertools.count()
LET_GO = threading.Event()
"""Ends what hangs."""
ENDED: list[str] = []
ALL_TOGETHER = threading.Barrier(SHARE)


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


@pytest.fixture
async def tools() -> AsyncIterator[ToolRunner]:
    LET_GO.clear()
    ENDED.clear()
    async with ToolRunner() as runner:
        yield runner
        LET_GO.set()
        await until(lambda: not runner.hanging())


def use(
    tools: ToolRunner, function: str, who: str, call: str, tenant: str = "acme", timeout_ms: int = 5000
) -> "asyncio.Task[str]":
    tool = Tool(function, function=f"{__name__}:{function}", timeout_ms=timeout_ms)
    asked = ToolCall("c1", function, f'{{"who": "{who}"}}')
    return tools.begin(tool, asked, {"id": call}, f"use_{next(USES)}", tenant)


async def load(tools: ToolRunner, function: str) -> None:
    """That takes a thread for a moment, too."""
    await use(tools, function, "ann", "rtc_first")


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
    refused = tools._functions.figures().refused
    with pytest.raises(ToolError, match="too much to do"):
        await use(tools, "book_99", "ann", "rtc_ann", "greedy")
    figures = tools._functions.figures()
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

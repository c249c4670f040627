"""The tools that one call has begun, without the call: how many it remembers, and those whose outcome nobody knows.
Until that is known, who asks again repeats the first request."""

import asyncio
import itertools
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.tools import BOOK, Bookings, Web
from tests.support.waiting import until
from voicepipe.agent import Tool, Webhook
from voicepipe.base.errors import OutcomeUnknown, ToolError
from voicepipe.call.tool_run import ToolRun
from voicepipe.call.tool_runs import REMEMBERED, UNKNOWN, ToolRuns
from voicepipe.conversation.history import History, Ids
from voicepipe.conversation.prompt import ToolCall
from voicepipe.tools.progress import Tell
from voicepipe.tools.tool_runner import ToolRunner

_NUMBERS = itertools.count()
SPELT = '{"at":7,"day":5}', '{"day": 5, "at": 7}'
"""The same request."""


async def ask(tool_runs: ToolRuns, arguments: str = "{}", *, tool: Tool = BOOK, remembered: bool = True) -> ToolRun:
    """As a model does, which numbers its calls; it is over when this returns. `remembered`: in the conversation."""
    number = next(_NUMBERS)
    call = ToolCall(f"c{number}", tool.name, arguments)
    tool_run = tool_runs.begin(tool, call, {"id": f"rtc_{number}"}, remembered=remembered)
    await tool_run.wait()
    return tool_run


async def heard(tool_runs: ToolRuns, arguments: str = "{}", **how: Any) -> str:
    """What the model read; the caller has been told of it."""
    tool_run = await ask(tool_runs, arguments, **how)
    tool_runs.delivered([tool_run])
    return tool_run.output or ""


def by(use: Callable[[ToolCall, str], Awaitable[str]]) -> ToolRuns:
    """Of a call whose tools do this, with the call of the model's and the key."""

    def begin(tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str, tell: Tell) -> "asyncio.Task[str]":
        return asyncio.ensure_future(use(call, key))

    return ToolRuns(History(), Ids("abc"), begin)


def of(runner: ToolRunner) -> ToolRuns:
    return ToolRuns(History(), Ids("1"), partial(runner.begin, tenant="acme"))


# --- how many are remembered


def long_answers() -> ToolRuns:
    async def book(call: ToolCall, key: str) -> str:
        return f"{call.arguments} {'booked ' * 1000}"

    return by(book)


def numbered(number: int) -> str:
    return f'{{"n": {number}}}'


async def test_who_never_lets_a_result_be_told_does_not_fill_the_memory() -> None:
    tool_runs = long_answers()
    for number in range(300):
        tool_run = await ask(tool_runs, numbered(number))
        assert await ask(tool_runs, numbered(number)) is tool_run, "the same request is the same run"
        tool_runs.put_off([tool_run])
        assert len(tool_runs._tool_runs) <= REMEMBERED + 1
    assert await ask(tool_runs, numbered(299)) is tool_run


async def test_of_those_without_a_pending_reply_the_delivered_ones_are_forgotten_first() -> None:
    tool_runs = long_answers()
    first = await ask(tool_runs, numbered(0))
    tool_runs.put_off([first])
    for number in range(1, 100):
        await heard(tool_runs, numbered(number))
    assert await ask(tool_runs, numbered(0)) is first


async def test_one_with_a_pending_reply_is_never_forgotten_and_never_done_twice() -> None:
    tool_runs = long_answers()
    pending_replies = [await ask(tool_runs, numbered(number)) for number in range(REMEMBERED)]
    with pytest.raises(ToolError, match="has not been told yet"):
        await ask(tool_runs, numbered(REMEMBERED))
    for number, tool_run in enumerate(pending_replies):
        assert await ask(tool_runs, numbered(number)) is tool_run
    tool_runs.delivered(pending_replies[:1])
    await ask(tool_runs, numbered(REMEMBERED))


async def test_what_no_reply_has_read_is_kept_and_logged_when_the_call_ends(caplog: pytest.LogCaptureFixture) -> None:
    """The client has cancelled the reply beside the conversation that asked for it."""
    keys: list[str] = []

    async def book(call: ToolCall, key: str) -> str:
        keys.append(key)
        await asyncio.sleep(0.05)
        return "Booked."

    tool_runs = by(book)
    tool_run = tool_runs.begin(BOOK, ToolCall("c1", "book", "{}"), {}, remembered=False)
    reply = asyncio.create_task(tool_run.wait())
    await asyncio.sleep(0.01)
    reply.cancel()
    await tool_run.over.wait()
    assert tool_runs.begin(BOOK, ToolCall("c2", "book", "{}"), {}, remembered=False) is tool_run and len(keys) == 1
    tool_runs.leave()
    tool_runs.leave()
    assert caplog.text.count("no reply has read what came of a tool: book: 'Booked.'") == 1


# --- servers after whose answers nobody knows

BROKE = "Error: the connection to book broke; nobody knows whether it was done"


async def tried(web: Web, times: int) -> list[str]:
    """What the model reads when it asks for the same so often, each time in other words and after it has told."""
    async with web.runner() as runner:
        tool_runs = of(runner)
        return [await heard(tool_runs, SPELT[number % 2]) for number in range(times)]


@pytest.mark.parametrize("status", [302, 303, 404, 408, 409, 422, 425, 429])
async def test_what_is_refused_while_the_first_request_s_outcome_is_unknown_stays_the_same_request(status: int) -> None:
    """A 409 of a server that still works on it, or whose first booking is in the way. The model reads that nobody
    knows; the same request goes out until one succeeds."""
    web = Web(httpx.ReadError("reset"), status, status, 200, 200)
    refused = f"Error: book answered with HTTP status {status}"
    outputs = await tried(web, 5)
    assert outputs[0] == BROKE and outputs[3:] == ["Booked.", "Booked."]
    assert all(output.startswith(refused) for output in outputs[1:3])
    assert status in (302, 303, 408) or outputs[1:3] == [refused + UNKNOWN] * 2
    assert len(set(web.keys[:4])) == 1 and web.keys[4] not in web.keys[:4]
    assert all(body == web.bodies[0] for body in web.bodies[:4]), "a server may compare what comes with a key"
    assert web.bodies[4] != web.bodies[0]


async def test_a_server_that_cannot_be_reached_says_nothing_of_the_request_before() -> None:
    down = httpx.ConnectError("refused")
    web = Web(httpx.ReadError("reset"), down, down, 200)
    outputs = await tried(web, 3)
    assert outputs == [BROKE, f"Error: book could not be reached{UNKNOWN}", "Booked."]
    assert len(set(web.keys)) == 1


@pytest.mark.parametrize("status", [301, 404, 409, 422, 425, 429])
async def test_what_is_refused_at_first_is_known(status: int) -> None:
    """That time is taken, say: the next try is another request."""
    web = Web(status)
    assert await tried(web, 2) == [f"Error: book answered with HTTP status {status}", "Booked."]
    assert len(set(web.keys)) == 2


@pytest.mark.parametrize("status", [302, 303, 408, 500, 503])
async def test_what_a_server_may_have_done_nevertheless_is_not_known(status: int) -> None:
    web = Web(status)
    assert await tried(web, 2) == [f"Error: book answered with HTTP status {status}", "Booked."]
    assert len(set(web.keys)) == 1


async def test_other_requests_have_other_keys_and_only_the_oldest_unknown_ones_are_forgotten() -> None:
    web = Web(*[httpx.ReadError("reset")] * (2 * REMEMBERED))
    async with web.runner() as runner:
        tool_runs = of(runner)
        for number in range(2 * REMEMBERED):
            await heard(tool_runs, numbered(number))
        assert len(set(web.keys)) == 2 * REMEMBERED
        await heard(tool_runs, numbered(2 * REMEMBERED - 1))
        assert web.keys[-1] == web.keys[-2]
        assert len(tool_runs._requests) <= REMEMBERED


def at(port: int) -> Tool:
    return Tool("book", webhook=Webhook(f"http://127.0.0.1:{port}"), timeout_ms=300)


@pytest.mark.parametrize("way", ["busy", "breaks"])
async def test_a_server_that_knows_keys_books_once_whatever_became_of_the_first_request(way: str) -> None:
    bookings = Bookings(way)
    async with await asyncio.start_server(bookings.serve, "127.0.0.1", 0) as server, ToolRunner() as runner:
        tool_runs, tool = of(runner), at(server.sockets[0].getsockname()[1])
        first, *others = [await heard(tool_runs, tool=tool) for _ in range(3)]
    assert first.startswith("Error: ") and others == ["number 1", "number 2"]
    assert bookings.keys[0] == bookings.keys[1] != bookings.keys[2], "a repeat keeps it; a new request has its own"
    assert all(re.fullmatch(r'"use_1_\d+"', key) for key in bookings.keys)


async def test_a_server_that_dies_after_it_has_booked_and_comes_back_books_once() -> None:
    bookings = Bookings("breaks")
    server = await asyncio.start_server(bookings.serve, "127.0.0.1", 0)
    tool = at(port := server.sockets[0].getsockname()[1])
    async with ToolRunner() as runner:
        tool_runs = of(runner)
        assert (await heard(tool_runs, tool=tool)).endswith("nobody knows whether it was done")
        server.close()
        await server.wait_closed()
        assert await heard(tool_runs, tool=tool) == f"Error: book could not be reached{UNKNOWN}"
        async with await asyncio.start_server(bookings.serve, "127.0.0.1", port):
            assert await heard(tool_runs, tool=tool) == "number 1"
            assert await heard(tool_runs, tool=tool) == "number 2", "that is known: this is a new request"


async def test_a_server_that_still_works_on_it_books_once() -> None:
    bookings = Bookings("slow")
    async with await asyncio.start_server(bookings.serve, "127.0.0.1", 0) as server, ToolRunner() as runner:
        tool_runs, tool = of(runner), at(server.sockets[0].getsockname()[1])
        assert "longer than 300 ms" in await heard(tool_runs, tool=tool)
        assert await heard(tool_runs, tool=tool) == f"Error: book answered with HTTP status 409{UNKNOWN}"
        bookings.done.set()
        await until(lambda: not bookings.working)
        assert await heard(tool_runs, tool=tool) == "number 1"


# --- functions that take too long


class Runs:
    """One that does. Each run is known by its key."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.tool_runs = by(self._run)
        self._late: asyncio.Future[Callable[[], str]] | None = asyncio.get_running_loop().create_future()

    async def _run(self, call: ToolCall, key: str) -> str:
        if call.name == "look":
            return "looked"
        self.keys.append(key)
        raise OutcomeUnknown("it took too long", self._late)

    def over(self, outcome: Callable[[], str]) -> None:
        assert self._late
        self._late.set_result(outcome)
        self._late = None


def no_table() -> str:
    raise ToolError("there is no table left")


async def test_what_fails_late_beside_the_conversation_may_be_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    runs = Runs()
    await ask(runs.tool_runs, remembered=False)
    runs.over(no_table)
    await asyncio.sleep(0)
    assert "book: 'Error: there is no table left" in caplog.text and UNKNOWN not in caplog.text
    await ask(runs.tool_runs)
    assert len(runs.keys) == 2


async def test_a_repeat_that_waits_for_the_first_run_reads_what_came_of_that() -> None:
    """A refusal then is known, and the next try another request."""
    runs = Runs()
    await ask(runs.tool_runs)
    repeat = asyncio.create_task(ask(runs.tool_runs))
    await asyncio.sleep(0.01)
    runs.over(no_table)
    assert (await repeat).output == "Error: there is no table left"
    assert len(runs.keys) == 1 and not runs.tool_runs._requests
    assert runs.tool_runs.due() == [*runs.tool_runs._tool_runs[:1], await repeat], (
        "the first, as nobody knew; the repeat"
    )
    await ask(runs.tool_runs)
    assert len(runs.keys) == 2


@pytest.mark.virtual_time
async def test_who_asks_again_in_the_moment_in_which_it_is_over_gets_its_result() -> None:
    """The loop has not told anybody yet that it is."""
    runs = Runs()
    await heard(runs.tool_runs)
    await heard(runs.tool_runs)
    runs.over(lambda: "Booked.")
    assert await heard(runs.tool_runs) == "Booked."
    assert len(runs.keys) == 1, "the second one waits for the first one's run"
    await asyncio.sleep(0)
    await heard(runs.tool_runs)
    assert len(runs.keys) == len(set(runs.keys)) == 2, "it was told: this is a new request"


@pytest.mark.virtual_time
async def test_however_much_is_done_meanwhile_what_runs_is_not_forgotten() -> None:
    runs = Runs()
    for name in ("book", "book", *["look"] * 2 * REMEMBERED):
        await heard(runs.tool_runs, tool=Tool(name))
    runs.over(lambda: "Booked.")
    await asyncio.sleep(0)
    assert [tool_run.output for tool_run in runs.tool_runs.due()] == ["Booked."]

"""Tools of which nobody knows whether they were done: until that is known, who asks again repeats the first request."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpx
import pytest

from voicepipe.agent import Tool, Webhook
from voicepipe.call.errands import REMEMBERED, UNKNOWN, Errand, Errands
from voicepipe.errors import OutcomeUnknown, ToolError
from voicepipe.tools import ToolRunner
from voicepipe.turn.history import History, Ids
from voicepipe.turn.prompt import ToolCall

WEB = Tool("book", webhook=Webhook("https://tools.example"))
BROKE = "Error: the connection to book broke; nobody knows whether it was done"
Answer = int | Exception


class Asked:
    """A web server's requests: keys and bodies. It answers as it is told, then with "Booked."."""

    def __init__(self, *answers: Answer) -> None:
        self.keys: list[str] = []
        self.bodies: list[Any] = []
        self._answers = list(answers)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers["idempotency-key"])
        self.bodies.append(json.loads(request.content))
        answer = self._answers.pop(0) if self._answers else 200
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer, text="Booked.")


async def tried(asked: Asked, times: int) -> list[str]:
    """What the model reads when it asks for the same so often, each time in other words and after it has told."""
    async with ToolRunner(httpx.MockTransport(asked)) as runner:
        errands = Errands(History(), Ids("1"), partial(runner.begin, tenant="acme"))
        return [await used(errands, number) for number in range(times)]


async def used(errands: Errands, number: int, *, arguments: str = "", remembered: bool = True) -> str:
    spelt = '{"day": 5, "at": 7}' if number % 2 else '{"at":7,"day":5}'
    errand = errands.begin(
        WEB, ToolCall(f"c{number}", "book", arguments or spelt), {"id": f"rtc_{number}"}, remembered=remembered
    )
    await errand.wait()
    errands.told([errand])
    return errand.output or ""


@pytest.mark.parametrize("status", [302, 303, 404, 408, 409, 422, 425, 429])
async def test_what_is_refused_while_the_first_request_s_outcome_is_unknown_stays_the_same_request(status: int) -> None:
    """A 409 of a server that still works on it, or whose first booking is in the way. The model reads that nobody
    knows; the same request goes out until one succeeds."""
    asked = Asked(httpx.ReadError("reset"), status, status, 200, 200)
    refused = f"Error: book answered with HTTP status {status}"
    outputs = await tried(asked, 5)
    assert outputs[0] == BROKE and outputs[3:] == ["Booked.", "Booked."]
    assert all(output.startswith(refused) for output in outputs[1:3])
    assert status in (302, 303, 408) or outputs[1:3] == [refused + UNKNOWN] * 2
    assert len(set(asked.keys[:4])) == 1 and asked.keys[4] not in asked.keys[:4]
    assert all(body == asked.bodies[0] for body in asked.bodies[:4]), "a server may compare what comes with a key"
    assert asked.bodies[4] != asked.bodies[0]


async def test_a_server_that_cannot_be_reached_says_nothing_of_the_request_before() -> None:
    down = httpx.ConnectError("refused")
    asked = Asked(httpx.ReadError("reset"), down, down, 200)
    outputs = await tried(asked, 3)
    assert outputs == [BROKE, f"Error: book could not be reached{UNKNOWN}", "Booked."]
    assert len(set(asked.keys)) == 1


@pytest.mark.parametrize("status", [301, 404, 409, 422, 425, 429])
async def test_what_is_refused_at_first_is_known(status: int) -> None:
    """That time is taken, say: the next try is another request."""
    asked = Asked(status)
    assert await tried(asked, 2) == [f"Error: book answered with HTTP status {status}", "Booked."]
    assert len(set(asked.keys)) == 2


@pytest.mark.parametrize("status", [302, 303, 408, 500, 503])
async def test_what_a_server_may_have_done_nevertheless_is_not_known(status: int) -> None:
    asked = Asked(status)
    assert await tried(asked, 2) == [f"Error: book answered with HTTP status {status}", "Booked."]
    assert len(set(asked.keys)) == 1


async def test_other_wishes_have_other_keys_and_only_the_oldest_unknown_ones_are_forgotten() -> None:
    asked = Asked(*[httpx.ReadError("reset")] * (2 * REMEMBERED))
    async with ToolRunner(httpx.MockTransport(asked)) as runner:
        errands = Errands(History(), Ids("1"), partial(runner.begin, tenant="acme"))
        for number in range(2 * REMEMBERED):
            await used(errands, number, arguments=f'{{"day": {number}}}')
        assert len(set(asked.keys)) == 2 * REMEMBERED
        await used(errands, 0, arguments=f'{{"day": {2 * REMEMBERED - 1}}}')
        assert asked.keys[-1] == asked.keys[-2]
        assert len(errands._wishes) <= REMEMBERED


class Bookings:
    """A web server that does each key's booking once. As long as it works on one it answers 409 to its key; one that
    dies has done the booking and says nothing."""

    def __init__(self) -> None:
        self.booked: dict[str, int] = {}
        self.works_s = 0.0
        self.dies = False
        self._working: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        [key] = re.findall(r"(?im)^idempotency-key: (.*)\r$", head)
        status = "409 Conflict" if key in self._working else "200 OK"
        if key not in self.booked:
            self.booked[key] = len(self.booked) + 1
            self._working.add(key)
            await asyncio.sleep(self.works_s)
            self._working.discard(key)
        if not self.dies:
            body = f"number {self.booked[key]}"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        writer.close()


async def test_a_server_that_dies_after_it_has_booked_and_comes_back_books_once() -> None:
    bookings = Bookings()
    bookings.dies = True
    server = await asyncio.start_server(bookings.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    ask = Asking(port)
    async with ask.runner:
        assert (await ask()).endswith("nobody knows whether it was done")
        server.close()
        await server.wait_closed()
        assert await ask() == f"Error: book could not be reached{UNKNOWN}"
        bookings.dies = False
        async with await asyncio.start_server(bookings.serve, "127.0.0.1", port):
            assert await ask() == "number 1"
            assert await ask() == "number 2", "that is known: this is a new wish"


async def test_a_server_that_still_works_on_it_books_once() -> None:
    bookings = Bookings()
    bookings.works_s = 0.6
    async with await asyncio.start_server(bookings.serve, "127.0.0.1", 0) as server:
        ask = Asking(server.sockets[0].getsockname()[1])
        async with ask.runner:
            assert "longer than 300 ms" in await ask()
            assert await ask() == f"Error: book answered with HTTP status 409{UNKNOWN}"
            await asyncio.sleep(0.5)
            assert await ask() == "number 1"


class Asking:
    """One call's tool, at a port of this machine."""

    def __init__(self, port: int) -> None:
        self.runner = ToolRunner()
        self._tool = Tool("book", webhook=Webhook(f"http://127.0.0.1:{port}"), timeout_ms=300)
        self._errands = Errands(History(), Ids("1"), partial(self.runner.begin, tenant="acme"))
        self._number = 0

    async def __call__(self) -> str:
        self._number += 1
        errand = self._errands.begin(self._tool, ToolCall(f"c{self._number}", "book", "{}"), {"id": "rtc_1"},
                                     remembered=True)  # fmt: skip
        await errand.wait()
        self._errands.told([errand])
        return errand.output or ""


class Runs:
    """A function that takes too long. Each run is known by its key."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.history = History()
        self.late: asyncio.Future[Callable[[], str]] | None = asyncio.get_running_loop().create_future()
        self.errands = Errands(self.history, Ids("1"), self._begin)

    def _begin(self, tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str) -> "asyncio.Task[str]":
        return asyncio.create_task(self._run(key))

    async def _run(self, key: str) -> str:
        self.keys.append(key)
        raise OutcomeUnknown("it took too long", self.late)

    def over(self, outcome: Callable[[], str]) -> None:
        assert self.late
        self.late.set_result(outcome)
        self.late = None

    async def ask(self, *, remembered: bool) -> Errand:
        number = len(self.errands.call_ids())
        errand = self.errands.begin(WEB, ToolCall(f"c{number}", "book", "{}"), {}, remembered=remembered)
        await errand.wait()
        return errand


def no_table() -> str:
    raise ToolError("there is no table left")


async def test_what_a_reply_beside_the_conversation_began_is_logged_when_it_is_over_late_and_read_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs = Runs()
    assert (await runs.ask(remembered=False)).failed
    runs.over(lambda: "Booked.")
    await asyncio.sleep(0)
    assert "a tool is over that no reply waits for: book: 'Booked.'" in caplog.text
    assert (await runs.ask(remembered=False)).output == "Booked."
    assert len(runs.keys) == 1 and not runs.history.items
    await runs.ask(remembered=False)
    assert len(runs.keys) == 2, "it was read: this is a new wish"


async def test_what_is_over_late_beside_the_conversation_is_told_in_it_if_it_is_asked_for_there() -> None:
    runs = Runs()
    await runs.ask(remembered=False)
    runs.over(lambda: "Booked.")
    await asyncio.sleep(0)
    assert not runs.errands.owed(), "nobody has asked for it in the conversation"
    errand = await runs.ask(remembered=True)
    assert len(runs.keys) == 1
    assert [item.output or item.name for item in runs.history.items] == ["book", "Booked."]
    assert runs.errands.untold() == runs.errands.owed() == [errand]


async def test_what_fails_late_beside_the_conversation_may_be_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    runs = Runs()
    await runs.ask(remembered=False)
    runs.over(no_table)
    await asyncio.sleep(0)
    assert "book: 'Error: there is no table left" in caplog.text and UNKNOWN not in caplog.text
    await runs.ask(remembered=True)
    assert len(runs.keys) == 2


async def test_a_repeat_that_waits_for_the_first_run_reads_what_came_of_that() -> None:
    """A refusal then is known, and the next try another request."""
    runs = Runs()
    await runs.ask(remembered=True)
    repeat = asyncio.create_task(runs.ask(remembered=True))
    await asyncio.sleep(0.01)
    runs.over(no_table)
    assert (await repeat).output == "Error: there is no table left"
    assert len(runs.keys) == 1 and not runs.errands._wishes
    assert runs.errands.untold() == [*runs.errands._errands[:1], await repeat], "the first, as nobody knew; the repeat"
    await runs.ask(remembered=True)
    assert len(runs.keys) == 2


async def test_what_no_reply_has_read_is_kept_and_logged_when_the_call_ends(caplog: pytest.LogCaptureFixture) -> None:
    """The client has cancelled the reply beside the conversation that asked for it."""
    begun: list[str] = []

    async def book() -> str:
        await asyncio.sleep(0.05)
        return "Booked."

    def begin(tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str) -> "asyncio.Task[str]":
        begun.append(key)
        return asyncio.create_task(book())

    errands = Errands(History(), Ids("1"), begin)
    errand = errands.begin(WEB, ToolCall("c1", "book", "{}"), {}, remembered=False)
    reply = asyncio.create_task(errand.wait())
    await asyncio.sleep(0.01)
    reply.cancel()
    await errand.over.wait()
    assert errands.begin(WEB, ToolCall("c2", "book", "{}"), {}, remembered=False) is errand and len(begun) == 1
    errands.leave()
    errands.leave()
    assert caplog.text.count("no reply has read what came of a tool: book: 'Booked.'") == 1

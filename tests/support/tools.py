"""Agents' tools in tests: one that is used alone, web servers behind it, and callers who have a table booked."""

import asyncio
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.scenario import Recording, Says, Scenario
from voicepipe.agent import Tool, Webhook
from voicepipe.base.errors import OutcomeUnknown
from voicepipe.conversation.prompt import ToolCall
from voicepipe.engines.base import Message
from voicepipe.tools.progress import Tell
from voicepipe.tools.tool_runner import ToolRunner

_NUMBERS = itertools.count(100)
ABOUT = {"id": "rtc_1", "caller": "+4930123456", "called": "", "headers": {"X-Account": "42"}}
"""What a tool is told of its phone call."""


def used(
    tools: ToolRunner, tool: Tool, arguments: str = "{}", *, key: str = "", tenant: str = "acme", by: str = "rtc_1",
    tell: Tell = lambda text: None,
) -> "asyncio.Task[str]":  # fmt: skip
    """Begun for a use of its own, unless `key` names one. `by`: whose call it is for."""
    key = key or f"use_{next(_NUMBERS)}"
    return tools.begin(tool, ToolCall("call_1", tool.name, arguments), ABOUT | {"id": by}, key, tell, tenant)


# --- web servers

BOOK = Tool("book", webhook=Webhook("https://tools.example"))


class Web:
    """One that answers requests as it is told (with a status, or not at all), then always with "Booked."."""

    def __init__(self, *answers: int | httpx.Response | Exception) -> None:
        self.asked: list[httpx.Request] = []
        self._answers = list(answers)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self._answers.pop(0) if self._answers else 200
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer, text="Booked.") if isinstance(answer, int) else answer

    @property
    def keys(self) -> list[str]:
        return [request.headers["idempotency-key"] for request in self.asked]

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.asked]

    def runner(self) -> ToolRunner:
        return ToolRunner(httpx.MockTransport(self))

    async def used(self, arguments: str = "{}", tool: Tool = BOOK) -> str:
        """What came of a use of `tool`."""
        async with self.runner() as runner:
            return await used(runner, tool, arguments)


class Bookings:
    """A real one, which does each key's booking once. It deals with a request in each of these ways in turn: "busy":
    it answers 503; "breaks": it says nothing; "slow": it works until `done`, and answers 409 to the same key meanwhile.
    Then it always "answers"."""

    def __init__(self, *ways: str) -> None:
        self.keys: list[str] = []
        self.done = asyncio.Event()
        self._ways = list(ways)
        self._booked: dict[str, int] = {}
        self.working: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        [key] = re.findall(r"(?im)^idempotency-key: (.*)\r$", head)
        self.keys.append(key)
        status = "409 Conflict" if key in self.working else "200 OK"
        number = self._booked.setdefault(key, len(self._booked) + 1)
        way = self._ways.pop(0) if self._ways else "answers"
        if way == "slow":
            self.working.add(key)
            await self.done.wait()
            self.working.discard(key)
        if way != "breaks":
            body = f"number {number}"
            status = "503 Busy" if way == "busy" else status
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        writer.close()


# --- in scripted calls

ASKED = "book a table for two"
BOOKED = "book did {}"
TOLD = "agent (completed): It is booked."
SPEAKS = Says(500, 1400)
"""The turn is committed within 200 ms of its end, and its tool is begun then."""


class Uses:
    """A tool's uses: when each began and ended, by the name and the arguments."""

    def __init__(self, takes_s: float = 2.0, fails: Callable[[ToolCall], Exception | None] = lambda call: None) -> None:
        self.begun: list[tuple[str, float]] = []
        self.done: list[str] = []
        self._takes_s = takes_s
        self._fails = fails

    async def __call__(self, tool: Tool, call: ToolCall) -> str:
        loop = asyncio.get_running_loop()
        self.begun.append((f"{tool.name} {call.arguments}", loop.time()))
        await asyncio.sleep(self._takes_s)
        self.done.append(f"{tool.name} {call.arguments}")
        if error := self._fails(call):
            raise error
        return f"{tool.name} did {call.arguments}"

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.begun]


class Slow(Uses):
    """Uses of a function that takes `takes_s`, which is more than its time limit of a second."""

    async def __call__(self, tool: Tool, call: ToolCall) -> str:
        running: asyncio.Future[Callable[[], str]] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(super().__call__(tool, call))
        task.add_done_callback(lambda done: running.set_result(done.result))
        await asyncio.wait({running}, timeout=tool.timeout_ms / 1000)
        if not running.done():
            raise OutcomeUnknown(LATE, running)
        return running.result()()


LATE = "book took longer than 1000 ms; nobody knows whether it was done"


def scenario(**changes: Any) -> Scenario:
    tool = {"name": "book", "function": "m:f"}
    base: dict[str, Any] = {
        "about": "A booking.",
        "hears": [ASKED, "please"],
        "says": [SPEAKS],
        "length_ms": 12_000,
        "agent": {"tools": [tool], "acknowledgement": ""},
        "replies": {ASKED: "call:book {}", "please": "call:book {}", BOOKED: "It is booked."},
    }
    return Scenario(**(base | changes))


def late(**changes: Any) -> Scenario:
    """The booking's time limit is a second."""
    tool = {"name": "book", "function": "m:f", "timeout_ms": 1000}
    return scenario(agent={"tools": [tool], "acknowledgement": ""}, **changes)


def tools_of(recording: Recording) -> list[str]:
    """What the conversation holds of tools, in order."""
    kinds = {"function_call": "calls", "function_call_output": "->"}
    items = recording.tool_runs._history.items
    return [f"{kinds[item.kind]} {item.name or item.output}" for item in items if item.kind in kinds]


def last_prompt(recording: Recording) -> list[str]:
    def line(message: Message) -> str:
        return f"calls {message.call.name}" if message.call else f"{message.role}: {message.text}"

    return [line(message) for message in recording.llm.prompts[-1].messages]


LONG = "It is booked for two at seven tonight. Is there anything else that I can do for you today?"
CUT, HEARD = 5200, 8000
"""Into the first sentence of that, and into the second one."""

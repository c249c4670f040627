"""Callers who have a table booked: what scripted calls with a tool are made of, and what became of it."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.support.scenario import Recording, Says, Scenario
from voicepipe.agent import Tool
from voicepipe.engines.base import Message
from voicepipe.turn.prompt import ToolCall

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


def tools_of(recording: Recording) -> list[str]:
    """What the conversation holds of tools, in order."""
    kinds = {"function_call": "calls", "function_call_output": "->"}
    items = recording.errands._history.items
    return [f"{kinds[item.kind]} {item.name or item.output}" for item in items if item.kind in kinds]


def last_prompt(recording: Recording) -> list[str]:
    def line(message: Message) -> str:
        return f"calls {message.call.name}" if message.call else f"{message.role}: {message.text}"

    return [line(message) for message in recording.llm.prompts[-1].messages]


LONG = "It is booked for two at seven tonight. Is there anything else that I can do for you today?"
CUT, HEARD = 5200, 8000
"""Into the first sentence of that, and into the second one."""

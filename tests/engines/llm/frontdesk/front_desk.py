"""The front desk of configs/agents as tests meet it, and a caller who speaks to it in text."""

import json
from datetime import datetime
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from tests.support.paths import ROOT
from voicepipe.agent import Agent, Intent, ToolSpec
from voicepipe.config.agent_store import load_agent
from voicepipe.engines.base import Delta, Message, Prompt, ToolCall
from voicepipe.engines.llm.frontdesk.frontdesk_dialogue import FrontdeskDialogue
from voicepipe.engines.llm.frontdesk.frontdesk_llm import reply_in_steps
from voicepipe.engines.llm.frontdesk.steps import Steps
from voicepipe.tools import restaurant

T = TypeVar("T")
FILE = ROOT / "configs" / "agents" / "front-desk.toml"
FRONT_DESK = load_agent(FILE)
TODAY = datetime(2026, 11, 25, 11)
"""A Wednesday, before lunch."""


def at_once(work: Steps[T]) -> T:
    """What `work` comes to, without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result


def reply(dialogue: FrontdeskDialogue, prompt: Prompt) -> list[Delta]:
    """The whole reply to a prompt."""
    return at_once(reply_in_steps(dialogue, prompt))


def _at_once(agent: Agent) -> Agent:
    """It asks for three details of a booking, checks nothing and books at once."""

    def plain(intent: Intent) -> Intent:
        if intent.name != "booking":
            return intent
        three = {slot: intent.slots[slot] for slot in ("people", "day", "time")}
        return replace(
            intent, slots=three, check="", confirm="", reply="A table for {people}, {day} at {time}. {result}"
        )

    return replace(agent, intents=tuple(plain(intent) for intent in agent.intents))


AT_ONCE = _at_once(FRONT_DESK)


@pytest.fixture
def a_wednesday(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tools take for now; nothing is booked yet."""
    monkeypatch.setattr(restaurant, "clock", lambda: TODAY)
    restaurant._booked.clear()


class Caller:
    """One conversation, its tools run as the server would run them."""

    def __init__(self, desk: FrontdeskDialogue, tools: tuple[ToolSpec, ...] | None = None) -> None:
        self.desk = desk
        agent = desk.agent
        self.tools = tuple(tool.spec for tool in agent.tools) if tools is None else tools
        self.messages = [Message("system", agent.instructions), Message("assistant", agent.greeting)]
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def say(self, text: str, result: str = "") -> str:
        """The whole reply. `result`: what tools answer, in place of their own answers."""
        self.messages.append(Message("user", text))
        return self._answer(result)

    def says(self, *texts: str) -> str:
        """One after the other; the reply to the last."""
        return [self.say(text) for text in texts][-1]

    def called(self, name: str) -> list[dict[str, Any]]:
        """The arguments of each call of the tool."""
        return [arguments for tool, arguments in self.calls if tool == name]

    def _answer(self, result: str) -> str:
        said = ""
        for delta in reply(self.desk, Prompt(tuple(self.messages), self.tools, agent=self.desk.agent)):
            if isinstance(delta, str):
                said += delta
                self.messages.append(Message("assistant", delta))
                continue
            assert isinstance(delta, ToolCall)
            if (answered := self._run(delta, result)) is not None:
                self.messages.append(Message("assistant", call=delta))
                self.messages.append(Message("tool", answered, call_id=delta.call_id))
                return said + self._answer(result)
        return said

    def _run(self, call: ToolCall, result: str) -> str | None:
        arguments = json.loads(call.arguments)
        self.calls.append((call.name, arguments))
        function = getattr(restaurant, call.name, None)
        return (result or function(**arguments)) if function else None

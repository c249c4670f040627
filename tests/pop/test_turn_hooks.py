"""A receiver of turns is told of each in order, and never keeps a call waiting."""

import asyncio

import msgspec
import pytest

from tests.support.hook_server import SLOW, HookServer, hook_server
from tests.support.waiting import until
from voicepipe.agent import Agent, AgentHooks
from voicepipe.call_settings import CallSettings, Origin
from voicepipe.conversation.events import ToolUse
from voicepipe.conversation.timing import TurnSummary
from voicepipe.observe.call_followers import CallFacts
from voicepipe.observe.last_turns import FullTurn, ListedTurn
from voicepipe.pop.hooks import HookCaller
from voicepipe.pop.turn_hooks import MOST_WAITING, TurnHooks
from voicepipe.tools.tool_runner import ToolRunner

CALL = CallFacts(id="rtc_1", tenant="acme", agent="clinic", line="sip", since=1000.0)


def turn(number: int) -> FullTurn:
    listed = ListedTurn(f"turn_{number}", 1000.0 + number, "rtc_1", "acme", "clinic", 180.0, False, False, False, False,
                        "", 0)  # fmt: skip
    used = (ToolUse("book", 40.0, result="done"),)
    return FullTurn(listed, "two please", "It is booked.", TurnSummary(), used, number=number)


def told(server: HookServer) -> list[int]:
    return [body["turn"]["number"] for body in server.asked]


async def follow(server: HookServer, tools: ToolRunner, *numbers: int) -> TurnHooks:
    hooks = TurnHooks(HookCaller(tools), "fra1")
    agent = Agent("clinic", hooks=AgentHooks(on_turn=server.url))
    hooks.follow("rtc_1", CallSettings.of(agent, Origin("+49301", "100", {"X-Account": "42"})), "acme")
    for number in numbers:
        hooks.turn(CALL, turn(number))
    return hooks


async def test_a_receiver_gets_each_turn_in_order() -> None:
    async with hook_server(204) as server, ToolRunner() as tools:
        hooks = await follow(server, tools, 0, 1, 2)
        hooks.left(CALL)
        await until(lambda: len(server.asked) == 3)
        assert told(server) == [0, 1, 2]
        first = server.asked[0]
        call = {"id": "rtc_1", "caller": "+49301", "called": "100", "headers": {"X-Account": "42"}}
        assert first.pop("turn") == {
            "id": "turn_0", "number": 0, "at": 1000.0, "heard": "two please", "said": "It is booked.",
            "status": "completed", "latency_ms": 180.0, "late": False, "missed": False,
            "tools": [{"name": "book", "took": 40.0, "result": "done"}],
        }  # fmt: skip
        assert first == {"event": "turn", "call": call, "agent": "clinic", "pop": "fra1", "tenant": "acme"}


async def test_after_a_hand_over_the_hook_of_the_agent_that_answered_is_told_who_speaks() -> None:
    """Hooks of a call are those of the agent that answered it."""
    async with hook_server(204) as server, ToolRunner() as tools:
        hooks = await follow(server, tools, 0)
        hooks.handed_over(CALL, "billing")
        said = turn(1)
        hooks.turn(CALL, msgspec.structs.replace(said, turn=msgspec.structs.replace(said.turn, agent="billing")))
        await until(lambda: len(server.asked) == 2)
        assert [asked["agent"] for asked in server.asked] == ["clinic", "billing"]


async def test_what_a_receiver_is_too_slow_for_is_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("voicepipe.pop.turn_hooks.TURN_MS", 100)
    async with hook_server(SLOW, 204) as server, ToolRunner() as tools:
        hooks = await follow(server, tools)
        hooks.turn(CALL, turn(0))
        await until(lambda: server.asked)  # and it is not answered
        for number in range(1, MOST_WAITING + 4):
            hooks.turn(CALL, turn(number))
        hooks.left(CALL)
        await until(lambda: len(caplog.messages) == 2)
    assert told(server) == list(range(MOST_WAITING + 1))
    assert caplog.messages == [
        "rtc_1: hooks.on_turn has not taken a turn: 8 turns wait already: answer faster",
        "rtc_1: hooks.on_turn has not taken 4 of 12 turns",
    ]


async def test_a_receiver_that_is_down_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    async with hook_server(503) as server, ToolRunner() as tools:
        hooks = await follow(server, tools, 0)
        await until(lambda: caplog.messages)
        hooks.left(CALL)
    [line] = caplog.messages
    assert line == "rtc_1: hooks.on_turn has not taken a turn: 127.0.0.1 answers with HTTP status 503: see its log"


async def test_an_agent_without_such_a_hook_costs_nothing() -> None:
    hooks = TurnHooks(HookCaller(ToolRunner()), "fra1")
    hooks.follow("rtc_1", CallSettings.of(Agent("clinic")), "acme")
    before = asyncio.all_tasks()
    hooks.turn(CALL, turn(0))
    hooks.left(CALL)
    assert asyncio.all_tasks() == before

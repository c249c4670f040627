"""Whole calls on a PoP whose turns fail, in virtual time: how soon it asks directories for no more calls."""

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace

import pytest

import voicepipe.pop.pop
from tests.support.faulty import now
from tests.support.scenario import Says, Scenario, ScenarioLine
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from tests.system.test_failing_engines import AGENT, clock
from voicepipe.base.errors import EngineStalled
from voicepipe.call_settings import CallSettings
from voicepipe.config import Config, PopConfig
from voicepipe.config.agent_store import AgentStore
from voicepipe.engines.base import Delta, Engines, Prompt
from voicepipe.observe.failing_turns import FIRST
from voicepipe.pop.pop import Pop
from voicepipe.tools.tool_runner import ToolRunner

pytestmark = pytest.mark.virtual_time
EVERY_MS = 6000
"""A caller asks so often,"""
ASKS = 22
"""and so many times."""


class Failing(ScriptedLlm):
    """While `fails`, it answers no question, or only one in `of` of a call's is not answered."""

    def __init__(self) -> None:
        super().__init__(first_token_ms=5)
        self.fails, self.of = False, 1

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        question = sum(message.role == "user" for message in prompt.messages)
        if self.fails and question % self.of == 0:
            raise EngineStalled("the model sends nothing more")
        async for delta in super().generate(prompt):
            yield delta


async def call(pop: Pop, begins_ms: int) -> None:
    says = [Says(begins_ms + EVERY_MS * number, 1500) for number in range(ASKS)]
    line = ScenarioLine(Scenario("", [], says, begins_ms + EVERY_MS * ASKS))
    agent = pop.agent(None)
    with pop.admit(pop.tenant(None), agent) as slot:
        await slot.open(line, CallSettings.of(agent), lambda event: None).run()


@pytest.fixture(name="pop")
def _pop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pop:
    monkeypatch.setattr(voicepipe.pop.pop, "time", SimpleNamespace(time=time.time, monotonic=clock))
    (tmp_path / "front-desk.toml").write_text(AGENT)
    engines = Engines(ScriptedVad(), ScriptedAsr(["when are you open"] * ASKS), Failing(), ScriptedTts())
    made = Pop(Config(pop=PopConfig(slots=60)), AgentStore(tmp_path), engines, ToolRunner())
    made.serving.set()
    return made


@pytest.mark.parametrize("of", [1, 2])
@pytest.mark.parametrize("calls", [3, pytest.param(12, marks=pytest.mark.slow)])
async def test_it_loses_new_calls_within_ten_seconds_and_gets_them_back_by_degrees(
    pop: Pop, calls: int, of: int
) -> None:
    model, began = pop.engines.llm, now()
    assert isinstance(model, Failing)
    talking = [asyncio.ensure_future(call(pop, 1000 + EVERY_MS * number // calls)) for number in range(calls)]
    told: list[tuple[float, float, str]] = []
    while now() < began + 125:
        model.fails, model.of = began + 20 <= now() < began + 40, of
        its = pop.condition()
        if 0 < its.share < 1 and len(talking) == calls:
            talking.append(asyncio.ensure_future(call(pop, 1000)))  # Whom a directory sends
        told.append((round(now() - began), its.share, its.status))
        await asyncio.sleep(1)
    for task in talking:
        task.cancel()
    assert all(share == 1 and status == "ok" for at, share, status in told if at < 20)
    assert 20 < next(at for at, share, _ in told if share == 0) <= 30
    back = [share for at, share, _ in told if at > 40]
    assert back == sorted(back) and {0, FIRST, 2 * FIRST} <= set(back)

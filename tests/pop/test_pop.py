"""Admission, tenants and draining of one PoP."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.scenario import ScenarioLine, load
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voicepipe.agent import Agent
from voicepipe.base.errors import (
    ConfigError,
    Draining,
    EngineDown,
    EngineError,
    OverQueued,
    PopFull,
    RequestRefused,
    TenantFull,
    Unauthorized,
)
from voicepipe.call_api import HookAnswer, Refusal
from voicepipe.call_settings import CallSettings, Origin
from voicepipe.config import Config
from voicepipe.config.agent_store import AgentStore
from voicepipe.config.engine_config import DelaysConfig
from voicepipe.config.pop_config import with_slots
from voicepipe.conversation.events import CallEnded, CallEvent, Item, ItemAdded, ReplyDone, ReplyStarted, ReplyStatus
from voicepipe.conversation.prompt import Prompt, without_origin
from voicepipe.conversation.timing import TurnSummary
from voicepipe.engines.base import Delta, Engines
from voicepipe.engines.delayed import delayed
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import PcmFormat
from voicepipe.pop.pop import FEWEST_LATE, LOADS_S, Pop
from voicepipe.tools.tool_runner import ToolRunner


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    for name in ("front-desk", "night"):
        (tmp_path / f"{name}.toml").write_text(f'name = "{name}"\n')
    agents = AgentStore(tmp_path)
    monkeypatch.setenv("KEY_A", "secret-a")

    def pop(**tables: object) -> Pop:
        config = msgspec.convert(tables, Config)
        engines = Engines(ScriptedVad(), ScriptedAsr(), ScriptedLlm(), ScriptedTts())
        return Pop(with_slots(config), agents, engines, ToolRunner())

    return pop


async def test_slots_are_taken_and_given_back(make) -> None:  # type: ignore[no-untyped-def]
    pop = make(pop={"slots": 2})
    local, agent = pop.tenant(None), pop.agent(None)
    with pop.admit(local, agent), pop.admit(local, agent):
        assert pop.calls == 2
        with pytest.raises(PopFull, match="All 2 slots"), pop.admit(local, agent):
            pass
    pop.serving.set()
    with pop.admit(local, agent):
        assert pop.health().calls == 1 and pop.health().status == "ok"
        with pop.admit(local, agent):
            assert pop.health().status == "full"


async def test_directories_are_told_of_the_last_turns(make) -> None:  # type: ignore[no-untyped-def]
    pop = make()
    with pop.dashboard.watched("local", "front-desk") as call:
        call.answered("call_1", WebSocketLine(PcmFormat(), PcmFormat()), 1.0)
        call.note(ItemAdded(Item("item_1", text="hello"), None, spoken=True), 2.0)
        call.note(ReplyStarted("resp_1", "turn_1"), 2.0)
        call.note(ReplyDone("resp_1", "completed", record=TurnSummary(turn_latency=180.0)), 3.0)
    recent = pop.condition().recent
    assert (recent.turns, recent.judged, recent.p50_ms, recent.late) == (1, 1, 180.0, 0)


async def test_no_more_calls_are_taken_while_calls_make_the_event_loop_late(make, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    pop = make(pop={"slots": 100})
    pop.serving.set()
    local, agent = pop.tenant(None), pop.agent(None)
    with ExitStack() as calls:
        for _ in range(FEWEST_LATE - 1):
            calls.enter_context(pop.admit(local, agent))
        monkeypatch.setattr(pop.watch, "_lags", deque([0.001] * 400 + [0.05] * 20))
        calls.enter_context(pop.admit(local, agent))
        with pytest.raises(PopFull, match=r"is 50 ms late with 8 calls; 10 ms are allowed now \(pop.loop_lag_ms\)"):
            calls.enter_context(pop.admit(local, agent))
        assert pop.health().status == "late"
        pop.watch._lags.extend([0.001] * 500)
        calls.enter_context(pop.admit(local, agent))
        assert pop.health().status == "ok"
        pop.watch._lags.extend([0.015] * 500)
        with pytest.raises(PopFull, match="15 ms late"):  # What the call before costs is not seen yet.
            calls.enter_context(pop.admit(local, agent))
        pop._admitted_at -= LOADS_S
        calls.enter_context(pop.admit(local, agent))


async def test_a_call_that_would_be_answered_late_is_refused(make) -> None:  # type: ignore[no-untyped-def]
    pop = make(pop={"budget_ms": 300})
    local, agent = pop.tenant(None), pop.agent(None)
    for number in range(20):
        pop.note(
            "local",
            f"rtc_{number}",
            ReplyDone(f"resp_{number}", "completed", record=TurnSummary(at_words=90.0, compute=400.0)),
        )
    with pytest.raises(PopFull, match="after 48[0-9] ms, over this PoP's budget of 300 ms"), pop.admit(local, agent):
        pass
    assert pop.calls == 0
    assert pop.health().predicted_ms == 480
    pop.serving.set()
    assert pop.health().status == "late"


@pytest.mark.virtual_time
async def test_what_a_call_s_turns_were_like_is_held_against_what_was_predicted_for_it(make, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    pop, told = make(), list[float]()
    monkeypatch.setattr(pop.metrics, "prediction_check", told.append)
    agent = pop.agent(None)
    with pop.admit(pop.tenant(None), agent) as slot:
        line = ScenarioLine(load("one_turn"))
        await slot.open(line, CallSettings.of(agent), lambda event: None).run()
    assert told == [1.0], "quick engines, none of which was heard of before"


@pytest.mark.virtual_time
async def test_a_call_has_its_values_in_what_is_said_in_what_the_model_reads_and_in_its_facts(make) -> None:  # type: ignore[no-untyped-def]
    agent = Agent("front-desk", instructions="Be kind to {{guest}}.", greeting="You call from {{caller}}, {{guest}}.",
                  variables={"guest": "dear guest"})  # fmt: skip
    pop = make()
    with pop.admit(pop.tenant(None), agent) as slot:
        given = HookAnswer(variables={"guest": "Ann"})
        settings = pop.settings(agent, Origin("+4930123456"), given)
        await slot.open(ScenarioLine(load("one_turn")), settings, lambda event: None).run()
        assert slot.watched.facts.variables == {"guest": "Ann"}
    assert [text for text in pop.engines.tts.spoken if "Ann" in text] == [
        "You call from plus four nine three, zero one two, three four five six, Ann."
    ]
    instructions = pop.engines.llm.prompts[-1].messages[0].text
    assert without_origin(instructions) == "Be kind to Ann."
    assert re.search(r"\n\nThis call began on \w+day, \d+ \w+ 20\d\d, at [\d:]+ \(.+\)\.", instructions)


@pytest.mark.virtual_time
async def test_only_the_engines_part_of_a_call_s_first_turns_is_held_against_the_prediction(make, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def answered(status: ReplyStatus = "completed", **record: Any) -> ReplyDone:
        return ReplyDone("resp_1", status, record=TurnSummary(**{"at_words": 90.0, **record}))

    pop, told = make(pop={"budget_ms": 300}), list[float]()
    monkeypatch.setattr(pop.metrics, "prediction_check", told.append)
    agent = pop.agent(None)
    settings, line = CallSettings.of(agent), ScenarioLine(load("one_turn"))
    quick = answered(compute=40.0, turn_latency=850.0)  # they were quick; the caller hesitated
    of_others = (answered(compute=900.0, tool=True), answered(refused=True), CallEnded("caller"),
                 ReplyDone("greeting", "completed"))  # fmt: skip
    with pop.admit(pop.tenant(None), agent) as slot:
        call = slot.open(line, settings, lambda event: None)
        for event in (quick, answered(compute=200.0), answered("failed"), *of_others):
            call._emit(event)
        call.close()
    failed_ms = 80 + pop.config.ladder.fallback_ms
    assert told == [160 / 160, (80 + 200) / 160, failed_ms / 160]
    monkeypatch.setattr("voicepipe.pop.pop.COMPARED_S", 0.0)
    with pop.admit(pop.tenant(None), agent) as slot:
        call = slot.open(line, settings, lambda event: None)
        call._emit(quick)
        call.close()
    assert len(told) == 3, "by then it is another prediction's"


class PickyLlm(ScriptedLlm):
    refusal: EngineError

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        raise self.refusal
        yield ""


@pytest.mark.virtual_time
@pytest.mark.parametrize("refusal", [RequestRefused("the prompt is too long"), OverQueued("One call has 64 waiting")])
async def test_a_request_that_an_engine_does_not_take_says_nothing_of_the_engine(make, refusal) -> None:  # type: ignore[no-untyped-def]
    pop = make()
    picky = PickyLlm()
    picky.refusal = refusal
    pop.engines = Engines(ScriptedVad(), ScriptedAsr(), picky, ScriptedTts())
    events: list[CallEvent] = []
    agent = pop.agent(None)
    with pop.admit(pop.tenant(None), agent) as slot:
        line = ScenarioLine(load("one_turn"))
        await slot.open(line, CallSettings.of(agent), events.append).run()
    replies = [event for event in events if isinstance(event, ReplyDone)]
    assert [reply.record.refused for reply in replies if reply.record.at_words is not None] == [True]
    assert not pop._admission._turns


async def test_failures_of_one_tenant_close_the_pop_to_no_other(make, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("KEY_B", "secret-b")
    pop = make(tenants=[{"name": "a", "key_env": "KEY_A"}, {"name": "b", "key_env": "KEY_B"}])
    pop.serving.set()
    failed = ReplyDone("resp", "failed", record=TurnSummary(at_words=90.0))
    for number in range(100):
        pop.note("a", f"rtc_{number}", failed)
    with pytest.raises(PopFull, match="over this PoP's budget"), pop.admit(pop.tenant("secret-a"), pop.agent(None)):
        pass
    with pop.admit(pop.tenant("secret-b"), pop.agent(None)):
        pass
    for number in range(100):
        pop.note("b", f"rtc_{number}", failed)
    assert pop.health().status == "late"


def test_a_tenant_has_a_key_and_its_own_limit(make) -> None:  # type: ignore[no-untyped-def]
    pop = make(tenants=[{"name": "a", "key_env": "KEY_A", "slots": 1}])
    tenant = pop.tenant("secret-a")
    assert tenant.name == "a"
    for wrong, said in ((None, "Bearer"), ("", "Bearer"), ("secret-b", "not known here"), ("sécret", "not known here")):
        with pytest.raises(Unauthorized, match=said):
            pop.tenant(wrong)
    with pop.admit(tenant, pop.agent(None)), pytest.raises(PopFull, match="tenant a"):
        with pop.admit(tenant, pop.agent(None)):
            pass


def test_who_leaves_for_another_does_not_count(make, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("KEY_B", "secret-b")
    limits = [{"name": "a", "key_env": "KEY_A", "slots": 1}, {"name": "b", "key_env": "KEY_B"}]
    pop = make(tenants=limits, pop={"slots": 2})
    agent, a, b = pop.agent(None), pop.tenant("secret-a"), pop.tenant("secret-b")
    with pop.admit(a, agent) as of_a, pop.admit(b, agent) as of_b:
        for tenant, replaced in ((a, of_a), (b, of_b), (b, of_a)):
            with pop.admit(tenant, agent, replaced):
                assert pop.calls == 3
        with pytest.raises(TenantFull), pop.admit(a, agent, of_b):
            pass
        assert pop.calls == 2


def test_tenants_see_their_own_calls_and_the_operator_everyones(make, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("KEY_O", "secret-o")
    tenants = [{"name": "a", "key_env": "KEY_A"}]
    pop = make(tenants=tenants, http={"operator_key_env": "KEY_O"})
    assert pop.viewer("secret-a") == "a" and pop.viewer("secret-o") is None
    for wrong in (None, "", "secret-b"):
        with pytest.raises(Unauthorized):
            pop.viewer(wrong)
    with pytest.raises(Unauthorized):
        pop.tenant("secret-o")  # it shows, and does not call
    with pytest.raises(Unauthorized):
        make(tenants=tenants).viewer("")
    assert make().viewer(None) is None


async def test_the_dashboard_knows_of_calls_and_of_those_that_were_refused(make) -> None:  # type: ignore[no-untyped-def]
    pop = make(pop={"slots": 1})
    local, agent = pop.tenant(None), pop.agent(None)
    with pop.admit(local, agent) as slot:
        call = slot.open(ScenarioLine(load("one_turn")), CallSettings.of(agent), lambda event: None)
        (row,) = pop.dashboard.view(None, 5).calls
        assert (row.id, row.agent, row.line, row.tenant) == (call.id, "front-desk", "scenario", "local")
        with pytest.raises(PopFull), pop.admit(local, agent):
            pass
        pop.refused(Refusal("full", "websocket", local.name, agent.name, 503))
        pop.refused(Refusal("forbidden", "sip", status=403))
        view = pop.dashboard.view(None, 5)
        assert (view.refused, view.refusals) == (1, {"full": 1, "forbidden": 1}), "only one had asked for a place"
    assert not pop.dashboard.view(None, 5).calls


def test_an_unknown_agent_is_named_beside_those_there_are(make) -> None:  # type: ignore[no-untyped-def]
    pop = make()
    assert pop.agent("night").name == "night"
    with pytest.raises(ConfigError, match="front-desk, night"):
        pop.agent("day")


async def test_calls_are_answered_while_the_agents_folder_is_gone(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pop = make()
    pop.serving.set()
    for path in tmp_path.iterdir():  # noqa: ASYNC240
        path.unlink()
    assert not await asyncio.to_thread(pop._agents.refresh)
    with pop.admit(pop.tenant(None), pop.agent(None)):
        health = pop.health()
    assert health.status == "ok" and "the agents stay as they were" in health.warning


class MortalLlm(ScriptedLlm):
    alive = True
    restarts = 0


async def test_while_an_engine_is_started_again_no_call_is_taken(make) -> None:  # type: ignore[no-untyped-def]
    pop = make()
    llm = MortalLlm()
    pop.engines = delayed(Engines(ScriptedVad(), ScriptedAsr(), llm, ScriptedTts()), DelaysConfig(token_ms=1))
    pop.serving.set()
    assert pop.health().status == "ok"
    llm.alive = False
    assert pop.health().status == "engine_down"
    with pytest.raises(EngineDown, match="does not work at present"), pop.admit(pop.tenant(None), pop.agent(None)):
        pass
    llm.alive, llm.restarts = True, 1
    assert pop.health().restarts == {"llm": 1}
    with pop.admit(pop.tenant(None), pop.agent(None)):
        pass


async def test_draining_refuses_and_waits_for_the_last_call(make) -> None:  # type: ignore[no-untyped-def]
    pop = make()
    with pop.admit(pop.tenant(None), pop.agent(None)):
        drained = asyncio.create_task(pop.drain())
        await asyncio.sleep(0.05)
        assert not drained.done()
        with pytest.raises(Draining), pop.admit(pop.tenant(None), pop.agent(None)):
            pass
        assert pop.health().status == "draining"
    await drained

"""The agents of a PoP: what their prompts begin with, what they lack, and edits that are read ahead."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voicepipe.agent import Agent, Tool
from voicepipe.base.errors import EngineError
from voicepipe.call.tts_cache import TtsCache
from voicepipe.config import parse
from voicepipe.config.agent_store import AgentStore
from voicepipe.conversation.own_tools import END_CALL_TOOL
from voicepipe.conversation.prompt import Message, Prompt
from voicepipe.engines.base import Answering, Engines
from voicepipe.pop import prepared_agents
from voicepipe.pop.prepared_agents import PreparedAgents, beginning


class ChoosyLlm(ScriptedLlm):
    """Which agents' prompts it was given to read, and what it cannot do."""

    def __init__(self) -> None:
        super().__init__()
        self.read: asyncio.Queue[str] = asyncio.Queue()

    def answering(self, agent: Agent) -> Answering:
        return Answering("a small model", "" if agent.intents else f"Agent {agent.name} has no model.")

    async def warm(self, prompt: Prompt) -> None:
        assert prompt.agent
        if prompt.agent.instructions == "too long":
            raise EngineError("too many tokens")
        self.read.put_nowait(prompt.agent.instructions)


def prepared(folder: Path, llm: ScriptedLlm, *, records: bool = True, **tables: Any) -> PreparedAgents:
    config = parse({"engines": {"llm": "vllm"}, "pop": {"default_agent": "desk"}, **tables})
    engines = Engines(ScriptedVad(), ScriptedAsr(), llm, ScriptedTts())
    return PreparedAgents(AgentStore(folder), engines, TtsCache(engines.tts), lambda: config, records=records)


def write(folder: Path, text: str, name: str = "desk.toml") -> None:
    (folder / name).write_text(text)


def test_a_prompt_begins_with_instructions_and_tools() -> None:
    assert beginning(bare := Agent("desk")) == Prompt((), (), agent=bare)
    hours = Tool("hours", "When we are open.", function="m:f")
    agent = Agent("desk", instructions="Be kind.", tools=(hours,), end_call=True)
    assert beginning(agent) == Prompt((Message("system", "Be kind."),), (hours.spec, END_CALL_TOOL), agent=agent)


def test_of_a_prompt_with_variables_what_all_calls_share_is_read_ahead() -> None:
    hours, plans = Tool("hours", "When we are open.", function="m:f"), Tool("plans", "Of {{plan}}.", function="m:f")
    agent = Agent("desk", instructions="Be kind.\nThe plan is {{plan}}. Be brief.", tools=(hours, plans), end_call=True)
    assert beginning(agent) == Prompt((Message("system", "Be kind.\nThe plan is"),), (hours.spec,), agent=agent)
    assert beginning(agent := Agent("desk", instructions="{{date}}")) == Prompt((), (), agent=agent)


def test_who_answers_is_what_the_engine_says_or_else_its_name(tmp_path: Path) -> None:
    write(tmp_path, "name = 'desk'")
    agent = Agent("desk")
    assert prepared(tmp_path, ChoosyLlm()).answering(agent).by == "a small model"
    assert prepared(tmp_path, ScriptedLlm()).answering(agent) == Answering("vllm")


def test_what_agents_lack_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CRM_KEY", raising=False)
    write(
        tmp_path, "name = 'desk'\nvoice = 'nobody'\n[hooks]\nafter_call = 'https://c.example'\nsecret_env = 'CRM_KEY'"
    )
    prepared(tmp_path, ChoosyLlm()).log_what_is_missing()
    assert [text.partition(",")[0] for text in caplog.messages] == [
        "Agent desk has no model.",
        "Agent desk speaks with the default voice",
        "Agent desk: hooks.secret_env: the environment variable CRM_KEY is not set here",
    ]
    caplog.clear()
    prepared(tmp_path, ScriptedLlm(), records=False).log_what_is_missing()
    assert caplog.messages[-1] == "Agent desk names a hooks.after_call, and nothing is sent: set records.folder."


def test_what_callers_do_not_get_in_their_language_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "name = 'desk'\nlanguage = 'hi'")
    prepared(tmp_path, ScriptedLlm(), engines={"asr": "nemotron"}).log_what_is_missing()
    said = " ".join(caplog.messages)
    assert "'hi' (language); nemotron.model" in said and "interrupt, acknowledgement, fallback, no_input" in said


def test_an_agent_is_incomplete_where_another_one_cannot_answer_that_its_hook_may_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hook = "[hooks]\nbefore_call = 'https://c.example'\nagents"
    write(tmp_path, f"name = 'desk'\n{hook} = ['clinic']")
    write(tmp_path, f"name = 'night'\n{hook} = ['desk']", "night.toml")
    agents = prepared(tmp_path, ScriptedLlm())
    assert agents.incomplete() == ("desk", "")
    agents.log_what_is_missing()
    assert caplog.messages == ["Agent desk: its hook cannot have another agent answer: there is no agent clinic"]
    write(tmp_path, "name = 'clinic'", "clinic.toml")
    assert prepared(tmp_path, ScriptedLlm()).incomplete() == ()
    assert prepared(tmp_path, ChoosyLlm()).incomplete() == ("desk", "night", "")
    tenants = [{"name": "acme", "key_env": "ACME", "agents": ["night"]}, {"name": "all", "key_env": "ALL"}]
    assert prepared(tmp_path, ScriptedLlm(), tenants=tenants).incomplete() == ("night",)


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[PreparedAgents, ChoosyLlm]:
    monkeypatch.setattr(prepared_agents, "EVERY_S", 0.01)
    write(tmp_path, "name = 'desk'\ninstructions = 'one'")
    llm = ChoosyLlm()
    return prepared(tmp_path, llm), llm


async def test_an_edited_agent_s_prompt_is_read_ahead(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, edited: tuple[PreparedAgents, ChoosyLlm]
) -> None:
    agents, llm = edited
    rereading = asyncio.create_task(agents.reread())
    try:
        async with asyncio.timeout(30):
            for number, text in enumerate(("two", "too long", "three")):
                write(tmp_path, f"name = 'desk'\ninstructions = '{text}'")
                os.utime(tmp_path / "desk.toml", (number, number))
                if text != "too long":
                    assert await llm.read.get() == text
                while text == "too long" and "agent desk is not warmed up: too many tokens" not in caplog.text:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
    finally:
        rereading.cancel()

"""What is read ahead when vLLM starts, and starts again. vLLM is a stand-in."""

import logging
from collections.abc import AsyncGenerator

import pytest

from voicepipe.agent import Agent
from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines.base import Message, Prompt
from voicepipe.engines.llm.vllm.vllm_llm import KINDS, VllmLlm

LONG = "too long for the model"


class FakeCore:
    errored = hung = False

    def __init__(self, error: EngineError) -> None:
        self.error = error
        self.read: list[Prompt] = []

    async def reply(self, prompt: Prompt, priority: int) -> AsyncGenerator[str, None]:
        if prompt.messages[0].text == LONG:
            raise self.error
        self.read.append(prompt)
        yield "Hello."

    async def close(self) -> None: ...


async def ready(llm: VllmLlm, core: FakeCore) -> None:
    await llm._ready(core)  # type: ignore[arg-type]


async def warmed(core: FakeCore, monkeypatch: pytest.MonkeyPatch) -> VllmLlm:
    """One that has learnt two agents, the first of them too long."""
    llm = VllmLlm(VllmConfig())
    monkeypatch.setattr(VllmLlm, "core", core)
    with pytest.raises(EngineError):
        await llm.warm(Prompt((Message("system", LONG),), agent=Agent("wordy")))
    await llm.warm(Prompt((Message("system", "Be brief."),), agent=Agent("desk")))
    return llm


async def test_an_agent_that_is_too_long_keeps_no_other_from_the_model(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    llm = await warmed(FakeCore(EngineError("9000 tokens are too many")), monkeypatch)
    again = FakeCore(EngineError("9000 tokens are too many"))
    with caplog.at_level(logging.ERROR):
        await ready(llm, again)
    assert len(again.read) == len(KINDS) + 1
    assert "agent wordy is not warmed up: 9000 tokens are too many" in caplog.text


async def test_an_end_while_agents_are_read_is_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = await warmed(FakeCore(EngineError("9000 tokens are too many")), monkeypatch)
    with pytest.raises(EngineDead):
        await ready(llm, FakeCore(EngineDead("It ended.")))

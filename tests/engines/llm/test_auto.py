"""The language engine `auto`: who answers which agent, with and without a server, and as servers come and go."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.engines.contract import texts
from tests.engines.openai_server import Server, said, serving
from tests.support.waiting import until
from voicepipe.agent import Agent, Intent
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Message, Prompt
from voicepipe.engines.llm import auto
from voicepipe.engines.llm.auto import AutoLlm
from voicepipe.engines.llm.local_servers import look
from voicepipe.languages.en.language import TEXTS

CLINIC = Agent("clinic", instructions="You answer the telephone of a practice.")
DESK = Agent("desk", intents=(Intent("hours", ("when are you open",), reply="From noon to ten."),))


def asks(agent: Agent, words: str = "when are you open") -> Prompt:
    return Prompt((Message("user", words),), agent=agent)


async def answer(llm: AutoLlm, agent: Agent) -> str:
    return "".join(await texts(llm, asks(agent)))


def model() -> Server:
    return Server(lambda body: said("By ", "the model."))


@asynccontextmanager
async def started(ports: dict[str, int], **config: str) -> AsyncIterator[AutoLlm]:
    llm = AutoLlm(OpenAiConfig(**config), look=lambda: look(ports))  # type: ignore[arg-type]
    await llm.start()
    try:
        yield llm
    finally:
        await llm.close()


def port(url: str) -> int:
    return int(url.split(":")[2].split("/")[0])


async def test_agents_with_intents_are_answered_here_and_others_by_the_model() -> None:
    async with serving(model()) as url, started({"Ollama": port(url)}) as llm:
        for agent in (DESK, CLINIC):
            await llm.warm(Prompt(agent=agent))
        assert await answer(llm, DESK) == "From noon to ten."
        assert await answer(llm, CLINIC) == "By the model."
        assert llm.answering(DESK).by == "the embedded engine"
        assert llm.answering(CLINIC).by == f"nano at {url}"
        assert not llm.answering(CLINIC).lacks


async def test_without_a_server_it_says_so_and_never_echoes() -> None:
    async with started({}) as llm:
        await llm.warm(Prompt(agent=CLINIC))
        assert await answer(llm, CLINIC) == TEXTS.no_model
        assert await answer(llm, DESK) == "From noon to ten."
        lacks = llm.answering(CLINIC).lacks
        assert "clinic has no [[intents]]" in lacks and "ollama run" in lacks and "voicepipe demo --llm URL" in lacks


async def test_servers_are_asked_for_only_where_an_agent_needs_one() -> None:
    async def never() -> None:
        raise AssertionError("nobody needs it")

    llm = AutoLlm(OpenAiConfig(), look=never)
    await llm.start()
    await llm.warm(Prompt(agent=DESK))
    assert await answer(llm, DESK) == "From noon to ten."
    await llm.close()


async def test_a_server_that_comes_later_goes_and_comes_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(auto, "LOOK_S", 0.05)
    monkeypatch.setattr("voicepipe.engines.llm.openai.PROBE_S", 0.05)
    caplog.set_level(logging.INFO)
    ports: dict[str, int] = {}
    async with started(ports) as llm:
        await llm.warm(Prompt(agent=CLINIC))
        assert await answer(llm, CLINIC) == TEXTS.no_model
        async with serving(model()) as url:
            ports["Ollama"] = port(url)
            await until(lambda: not llm.answering(CLINIC).lacks)
            assert await answer(llm, CLINIC) == "By the model."
        await until(lambda: bool(llm.answering(CLINIC).lacks))
        assert await answer(llm, CLINIC) == TEXTS.no_model
        async with serving(model(), ports["Ollama"]):
            await until(lambda: not llm.answering(CLINIC).lacks)
            assert await answer(llm, CLINIC) == "By the model."
    said_so = [record.message for record in caplog.records if "[[intents]]" in record.message]
    assert [line.split(" by ")[0] for line in said_so if "answered by" in line] == 2 * [
        "agents without [[intents]] are answered"
    ]
    assert any("is gone" in line for line in said_so)


async def test_a_server_that_is_of_no_use_is_told_of() -> None:
    async with serving(model()) as url, started({"Ollama": port(url)}, model="mini") as llm:
        await llm.warm(Prompt(agent=CLINIC))
        assert "has no model 'mini'; set openai.model to one of: nano" in llm.answering(CLINIC).lacks
        assert await answer(llm, CLINIC) == TEXTS.no_model


async def test_a_server_that_is_named_is_the_only_one() -> None:
    async with (
        serving(model()) as found,
        serving(model()) as named,
        started({"vLLM": port(found)}, base_url=named) as llm,
    ):
        await llm.warm(Prompt(agent=CLINIC))
        assert llm.answering(CLINIC).by == f"nano at {named}"

"""Agents with a model of their own, at a server that has several."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.engines.contract import texts
from tests.engines.openai_server import Json, Server, refusal, said, serving
from voicepipe.agent import Agent
from voicepipe.base.errors import EngineError
from voicepipe.call_settings import CallSettings
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Message, Prompt
from voicepipe.engines.llm.agent_models import AgentModels
from voicepipe.engines.llm.openai import OpenAiLlm

CLINIC = Agent("clinic", model="large", temperature=0.7)
HELLO = (Message("user", "Hello."),)
EVERY = Prompt(HELLO)


def asks(agent: Agent) -> Prompt:
    return Prompt(HELLO, max_tokens=CallSettings.of(agent).most_tokens, agent=agent)


@asynccontextmanager
async def opened(*models: str, **config: Any) -> AsyncIterator[tuple[OpenAiLlm, Server]]:
    server = Server(lambda body: said("Hello."))
    server.models = ["small", *models]
    async with serving(server) as url:
        llm = OpenAiLlm(OpenAiConfig(base_url=url, model="small", **config))
        await llm.start()
        server.asked.clear()
        try:
            yield llm, server
        finally:
            await llm.close()


async def fields(llm: OpenAiLlm, server: Server, prompt: Prompt) -> Json:
    """The request of one reply, without its messages."""
    server.asked.clear()
    await texts(llm, prompt)
    [asked] = server.asked
    return {name: value for name, value in asked.items() if name not in ("messages", "stream")}


async def test_an_agent_has_its_model_and_how_it_writes_and_others_have_the_pops() -> None:
    async with opened("large", body={"temperature": 0.2, "top_p": 0.9}) as (llm, server):
        whole = Agent("clinic", model="large", temperature=0.7, max_tokens=60)
        own = {"model": "large", "temperature": 0.7, "max_tokens": 60, "top_p": 0.9}
        assert await fields(llm, server, asks(whole)) == own
        theirs = {"model": "small", "temperature": 0.2, "max_tokens": 512, "top_p": 0.9}
        assert await fields(llm, server, asks(Agent("desk"))) == theirs
        assert (await fields(llm, server, asks(Agent("cool", temperature=0.0))))["temperature"] == 0
        assert llm.answering(whole).by.startswith("large at http")
        assert not llm.answering(whole).lacks


@pytest.mark.parametrize(("client", "agents", "most"), [(20, 60, 20), (90, 60, 60), (None, 60, 60), (90, None, 90)])
def test_the_smaller_limit_of_a_reply_counts(client: int | None, agents: int | None, most: int) -> None:
    assert CallSettings(Agent("desk", max_tokens=agents), max_tokens=client).most_tokens == most


async def test_what_one_model_refuses_is_sent_to_the_other() -> None:
    def answers(body: Json) -> Any:
        refuses = body["model"] == "large" and "temperature" in body
        return refusal(400, "temperature is not supported by this model") if refuses else said("Hello.")

    async with opened("large") as (llm, server):
        server.answer = answers
        assert await texts(llm, asks(CLINIC)) == ["Hello."]
        assert "temperature" not in await fields(llm, server, asks(CLINIC))
        assert "temperature" in await fields(llm, server, asks(Agent("desk")))


@pytest.mark.parametrize("status", [404, 400])
async def test_a_model_that_is_not_there_is_one_agents_trouble(status: int, caplog: pytest.LogCaptureFixture) -> None:
    def answers(body: Json) -> Any:
        return said("Hello.") if body["model"] == "small" else refusal(status, "Invalid model name")

    async with opened(*(["large"] if status == 400 else [])) as (llm, server):
        server.answer = answers
        with caplog.at_level(logging.ERROR):
            await llm.warm(asks(CLINIC))
        assert "agent clinic is not warmed up with its own model, large" in caplog.text
        lacks = llm.answering(CLINIC).lacks
        assert "Agent clinic names a model of its own" in lacks
        assert ("has no model 'large'; set the agent's model to one of: small." in lacks) == (status == 404)
        assert llm.alive
        for _ in range(5):
            with pytest.raises(EngineError):
                await texts(llm, asks(CLINIC))
        assert llm.alive, "other agents' callers are still taken"
        assert await texts(llm, EVERY) == ["Hello."]
        assert not llm.answering(Agent("desk")).lacks
        server.models, server.answer = ["small", "large"], lambda body: said("Hello.")
        assert await texts(llm, asks(CLINIC)) == ["Hello."]
        assert not llm.answering(CLINIC).lacks


def test_a_model_that_the_server_lists_anew_is_not_lacking() -> None:
    models = AgentModels()
    models.lists(["small"])
    models.refused("large", "There is none.")
    models.lists(["small"])
    assert models.lacks(CLINIC)
    models.lists(["small", "large"])
    assert not models.lacks(CLINIC)

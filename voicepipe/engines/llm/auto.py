"""The language engine `auto`: the embedded one answers for agents that have intents, and a language model's server of
this machine for all others, if there is one. It is looked for until it is found, and anew when it is gone."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import msgspec

from voicepipe.agent import Agent
from voicepipe.base.errors import EngineError
from voicepipe.base.tasks import ended, supervised
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Answering, Delta, Llm, Prompt
from voicepipe.engines.llm import local_servers
from voicepipe.engines.llm.frontdesk.frontdesk_llm import FrontdeskLlm
from voicepipe.engines.llm.local_servers import LocalServer
from voicepipe.engines.llm.openai import OpenAiLlm

log = logging.getLogger(__name__)
LOOK_S = 3.0
"""Between two looks for a server, while an agent needs one and none is there."""
WAYS_OUT = "start a model on this machine (ollama run llama3.2), or name its server (voicepipe demo --llm URL)."


def lacking(agent: Agent) -> str:
    """What is said of an agent without intents if there is no model."""
    return f"Agent {agent.name} has no [[intents]], and so needs a language model: {WAYS_OUT}"


class AutoLlm:
    """The language engine `auto`: the embedded one for agents with intents, and a local language model's server for the
    others. Implements `base.Llm` and `base.ChoosesAgents`.

    With `openai.base_url` it looks for that server alone.
    """

    def __init__(
        self,
        config: OpenAiConfig,
        key: str = "",
        look: Callable[[], Awaitable[LocalServer | None]] = local_servers.look,
        ca: str = "",
    ) -> None:
        self._ca = ca
        self._config = config
        self._key = key
        self._look = look
        self._embedded = FrontdeskLlm()
        self._model: OpenAiLlm | None = None
        self._problem = ""
        """Why a server that is there is of no use."""
        self._wanted = False
        """An agent needs a model."""
        self._connecting = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._embedded.start()
        self._watching = self._watching or asyncio.create_task(
            supervised("looking for a language model's server", self._watch)
        )

    async def close(self) -> None:
        watching, self._watching = self._watching, None
        await ended(watching)
        await self._dismiss()
        await self._embedded.close()

    def answering(self, agent: Agent) -> Answering:
        if agent.intents:
            return self._embedded.answering(agent)
        if self._model:
            return self._model.answering(agent)
        return Answering("nobody", " ".join(filter(None, (lacking(agent), self._problem))))

    async def warm(self, prompt: Prompt) -> None:
        """Learn the prompt's agent; one that needs a model has it looked for."""
        agent = prompt.agent
        if agent is None or agent.intents:
            return await self._embedded.warm(prompt)
        self._wanted = True
        if not self._model:
            await self._connect()
        if self._model:
            await self._model.warm(prompt)

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """One reply, by whoever answers this prompt's agent. Without a model it says that it has none."""
        async with aclosing(self._engine(prompt.agent).generate(prompt)) as deltas:
            async for delta in deltas:
                yield delta

    def _engine(self, agent: Agent | None) -> Llm:
        if agent is None or agent.intents:
            return self._embedded
        self._wanted = True
        return self._model or self._embedded

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if self._model and not self._model.alive:
                log.warning("agents without [[intents]] are answered no more: %s is gone", self._model.name)
                await self._dismiss()
            if self._wanted and not self._model:
                await self._connect()

    async def _connect(self) -> None:
        """Find a server and have its model say a word. Whatever is wrong with it is kept as the problem."""
        async with self._connecting:
            if self._model:
                return
            config, self._problem = self._config, ""
            if not config.base_url:
                found = await self._look()
                if found is None:
                    return
                config = msgspec.structs.replace(config, base_url=found.url, model=config.model or found.models[0])
            model = OpenAiLlm(config, self._key, self._ca)
            try:
                await model.start()
            except EngineError as error:
                self._problem = str(error)
                await model.close()
                return
            self._model = model
            log.info("agents without [[intents]] are answered by %s", model.name)

    async def _dismiss(self) -> None:
        model, self._model = self._model, None
        if model:
            await model.close()

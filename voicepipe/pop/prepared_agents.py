"""The agents of one PoP: what answers for each, what is missing for that, prompts that are read ahead, and files that
are read again when somebody edits them."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

from voicepipe.agent import Agent
from voicepipe.base.errors import EngineError
from voicepipe.base.tasks import TaskGroup
from voicepipe.call.tts_cache import TtsCache
from voicepipe.config import Config
from voicepipe.config.agent_store import AgentStore, no_voice
from voicepipe.conversation.own_tools import END_CALL_TOOL
from voicepipe.conversation.prompt import Message, Prompt
from voicepipe.conversation.variables import before_variables, has_variables
from voicepipe.engines.asr.heard_languages import heard_languages, unheard
from voicepipe.engines.base import Answering, ChoosesAgents, Engines
from voicepipe.engines.tts.spoken_languages import foreign_voice
from voicepipe.languages.agent_texts import unspoken_texts
from voicepipe.languages.loading import load_languages
from voicepipe.records import signing

log = logging.getLogger(__name__)
EVERY_S = 1.0
WARM_S = 120.0
"""Seconds in which an edited agent's prompt is read ahead, or not at all: its calls come behind others'."""


def beginning(agent: Agent) -> Prompt:
    """The beginning of every prompt of the agent, as far as it is the same in all calls: up to the first variable."""
    instructions = before_variables(agent.instructions)
    system = (Message("system", instructions),) if instructions else ()
    tools = [*takewhile(lambda spec: not has_variables(spec.description), (tool.spec for tool in agent.tools))]
    if agent.end_call and len(tools) == len(agent.tools):
        tools.append(END_CALL_TOOL)
    return Prompt(system, tuple(tools), agent=agent)


class PreparedAgents:
    """The agents of a PoP with what answers for each. It reads their prompts ahead, takes over edited files, and finds
    what is missing. `config` gives the configuration in use; `records`: calls are recorded."""

    def __init__(
        self, agents: AgentStore, engines: Engines, tts_cache: TtsCache, config: Callable[[], Config], *, records: bool
    ) -> None:
        self._agents = agents
        self._engines = engines
        self._tts_cache = tts_cache
        self._config = config
        self._records = records

    def answering(self, agent: Agent) -> Answering:
        """The language model and voice that answer for this agent."""
        llm = self._engines.llm
        return llm.answering(agent) if isinstance(llm, ChoosesAgents) else Answering(self._config().engines.llm)

    def incomplete(self) -> tuple[str, ...]:
        """As in `Condition`."""
        found = [agent.name for agent in self._agents if any(self._missing_others(agent))]
        return (*found, "") if self._config().pop.default_agent in found else tuple(found)

    def _missing_others(self, agent: Agent) -> Iterator[str]:
        """Why agents that its hook may name cannot answer in its place here."""
        for name in agent.hooks.agents:
            other = self._agents.get(name)
            owners = [tenant.name for tenant in self._config().tenants
                      if agent.name in tenant.agents and name not in tenant.agents]  # fmt: skip
            if other is None:
                yield f"there is no agent {name}"
            elif lacks := self.answering(other).lacks:
                yield lacks
            elif owners:
                yield f"{name} may not answer calls of {', '.join(owners)}"

    def log_what_is_missing(self) -> None:
        """Log what is missing: a language model, a voice, ears or texts for its language, a receiver's key. Blocking
        where keys are in files."""
        voices, config = self._engines.tts.voices(), self._config()
        heard = heard_languages(config)
        for agent in self._agents:
            lacks = (
                self.answering(agent).lacks,
                no_voice(agent, voices),
                foreign_voice(agent, self._engines.tts),
                *unheard(agent, config, heard),
                *unspoken_texts(agent),
                self._lacks_hook(agent),
            )
            for said in filter(None, lacks):
                log.warning("%s", said)
            for said in self._missing_others(agent):
                log.warning("Agent %s: its hook cannot have another agent answer: %s", agent.name, said.rstrip("."))

    async def reread(self) -> None:
        """Take over edited agent files; live calls keep the agent that they began with."""
        async with TaskGroup() as tasks:
            warming: asyncio.Task[None] | None = None
            while True:
                await asyncio.sleep(EVERY_S)
                if await asyncio.to_thread(self._agents.refresh):
                    await asyncio.to_thread(load_languages, [*self._agents])
                    self._tts_cache.learn(self._agents)
                    if warming:
                        warming.cancel()
                    # Beside the rereading: a busy model takes minutes for many agents, and the next edit may mend one.
                    warming = tasks.create_task(self._warm([*self._agents]))

    def _lacks_hook(self, agent: Agent) -> str:
        """Why the receiver that the agent names gets no webhooks about its calls."""
        if agent.hooks.after_call and not self._records:
            return f"Agent {agent.name} names a hooks.after_call, and nothing is sent: set records.folder."
        lacks = signing.lacks(agent.hooks)
        return f"Agent {agent.name}: {lacks}." if lacks else ""

    async def _warm(self, agents: Iterable[Agent]) -> None:
        for agent in agents:
            try:
                async with asyncio.timeout(WARM_S):
                    await self._engines.llm.warm(beginning(agent))
            except TimeoutError:
                log.error("agent %s is not warmed up: its prompt was not read within %g s", agent.name, WARM_S)
            except EngineError as error:
                log.error("agent %s is not warmed up: %s", agent.name, error)
        await asyncio.to_thread(self.log_what_is_missing)

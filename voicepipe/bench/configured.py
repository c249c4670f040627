"""The engines of a configuration: loaded, placed and asked as a PoP does it. So every engine that the loader knows can
be measured, in the process in which it works."""

import random
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from voicepipe.agent import Agent
from voicepipe.audio import RATE
from voicepipe.bench.load import CACHED_TOKENS, TRAFFIC
from voicepipe.bench.play import PlayedEngines
from voicepipe.config import Config
from voicepipe.config.agent_store import open_agents
from voicepipe.conversation.phrases import PhraseLengths
from voicepipe.engines.base import ChoosesAgents, Engines, Llm, Message, Prompt
from voicepipe.engines.loader import loaded
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.pop.prepared_agents import beginning

SAYS = "What are your opening hours, and do you have a table for two tonight?"
QUESTIONS = (
    "what are your opening hours", "where are you located", "do you have parking", "what is on your menu",
    "are you open on sunday", "do you have vegetarian food", "thank you, and what are your opening hours",
)  # fmt: skip
ANSWER = "We are open from Tuesday to Sunday, from noon to ten in the evening, and we would love to see you here."
TOKENS_A_WORD = 1.4
"""Tokens of an English word, by usual tokenizers."""


@asynccontextmanager
async def configured(config: Config, calls: int, agent: Agent | None = None) -> AsyncIterator[PlayedEngines]:
    """The engines, loaded and warmed up as in a PoP. `agent`: None is the default one. Raises ConfigError,
    EngineError."""
    agent = agent or _agent(config)
    async with loaded(config, [beginning(agent)]) as engines:
        yield played(config, engines, agent, calls, CACHED_TOKENS)


def played(config: Config, engines: Engines, agent: Agent, calls: int, history_tokens: int) -> PlayedEngines:
    """The engines, and what calls of the agent ask of them. `history_tokens`: tokens of earlier turns in each call."""
    phrasing = PhraseLengths()
    if config.ladder.first_phrase == "short":
        phrasing = replace(phrasing, first_words=phrasing.hurry_words, first_limit=phrasing.hurry_limit)
    return PlayedEngines(
        CallPrompts(agent, calls, history_tokens).prompt,
        engines.asr,
        engines.llm,
        engines.tts,
        phrasing,
        language=agent.language or "en",
        voice=engines.tts.voice_for(agent.voice, agent.language),
        llm_name=_answering(config, engines.llm, agent),
    )


async def speech() -> Any:
    """The callers' speech: int16 at 16 kHz, by the embedded voice."""
    voice = EspeakTts()
    await voice.start()
    try:
        async with aclosing(voice.speak(SAYS)) as pieces:
            pcm = np.concatenate([piece.pcm async for piece in pieces])
    finally:
        await voice.close()
    at = np.arange(0, pcm.size - 1, voice.rate / RATE)
    return np.interp(at, np.arange(pcm.size), pcm).astype(np.int16)


def _agent(config: Config) -> Agent:
    agents = open_agents(config)
    agent = agents.get(config.pop.default_agent)
    assert agent, "the configuration was checked"
    return agent


def _answering(config: Config, llm: Llm, agent: Agent) -> str:
    """The language engine that answers, and its model."""
    named = config.engines.llm
    if isinstance(llm, ChoosesAgents):
        return f"{named}: {llm.answering(agent).by}"
    model = getattr(getattr(config, named, None), "model", "")
    return f"{named}: {Path(model).name}" if model else named


class CallPrompts:
    """The prompts of all calls. Each call has a history of its own, and a question that is new in each turn: so prompts
    are rendered, and their beginning is in the prefix cache."""

    def __init__(self, agent: Agent, calls: int, history_tokens: int) -> None:
        self._beginning = beginning(agent)
        self._random = random.Random(0)
        self._said = [self._history(history_tokens) for _ in range(calls)]

    def prompt(self, call: int, guess: bool) -> Prompt:
        """As `PlayedEngines.prompt`."""
        before = self._beginning
        asked = Message("user", self._random.choice(QUESTIONS))
        return Prompt(
            (*before.messages, *self._said[call % len(self._said)], asked), before.tools, agent=before.agent,
            max_tokens=TRAFFIC.reply_tokens, speculative=guess,
        )  # fmt: skip

    def _history(self, tokens: int) -> tuple[Message, ...]:
        messages: list[Message] = []
        while sum(len(message.text.split()) for message in messages) * TOKENS_A_WORD < tokens:
            messages += [Message("user", self._random.choice(QUESTIONS)), Message("assistant", ANSWER)]
        return tuple(messages)

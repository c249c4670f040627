"""Notes on agents whose callers are not heard, spoken to, or answered in their language with these engines."""

import asyncio
from collections.abc import Iterable, Iterator

from voicepipe.agent import Agent
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config import Config
from voicepipe.config.agent_store import no_voice
from voicepipe.engines.asr.heard_languages import heard_languages, unheard
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.tts.spoken_languages import foreign_voice, listed, spoken_in_part
from voicepipe.languages.agent_texts import unspoken_texts
from voicepipe.languages.tags import primary

WITH_ESPEAK = ("auto", "espeak")
"""Engines that speak with espeak-ng's voices."""


def of_languages(agents: Iterable[Agent], settings: Config) -> Iterator[str]:
    """A line for each thing that is amiss with a language of an agent."""
    agents = tuple(agents)
    yield from _voices(agents, settings)
    heard = heard_languages(settings)
    for agent in agents:
        yield from unheard(agent, settings, heard)
        yield from unspoken_texts(agent)
        if agent.intents and settings.engines.llm in ("auto", "frontdesk") and (other := _not_english(agent)):
            yield (
                f"Agent {agent.name} is answered by the embedded language engine, which finds its intents in "
                f"{', '.join(other)}, but reads yes, no, numbers, days and times in English alone"
            )


def _not_english(agent: Agent) -> list[str]:
    return [tag for tag in agent.spoken if primary(tag) != "en"]


def _voices(agents: tuple[Agent, ...], settings: Config) -> list[str]:
    """Lines for agents whose voice is missing, or speaks another language, as far as that is known without loading a
    model."""
    if settings.engines.tts == "auto" and (lacks := asyncio.run(_lacks_espeak(settings))):
        return [f"Agent {agent.name} is spoken to in {tag!r} by an English voice: {lacks}"
                for agent in agents for tag in _not_english(agent)]  # fmt: skip
    try:
        return asyncio.run(_said_of_voices(agents, settings))
    except EngineError:  # `default_voice_problem` tells it.
        return []


async def _said_of_voices(agents: tuple[Agent, ...], settings: Config) -> list[str]:
    tts = settings.engines.tts
    async with listed(settings) as voices:
        if voices is None:
            return []
        missing = [f'{said} That is for engines.tts = "{tts}".' for agent in agents
                   if tts in WITH_ESPEAK and (said := no_voice(agent, voices.voices()))]  # fmt: skip
        foreign = filter(None, (foreign_voice(agent, voices) for agent in agents))
        partly = [f"Agent {agent.name} is spoken by {name}: {lacks}; choose another voice"
                  for agent in agents for tag in agent.spoken
                  if (lacks := spoken_in_part(name := voices.voice_for(agent.voice, tag), settings))]  # fmt: skip
        return [*missing, *foreign, *partly]


async def _lacks_espeak(settings: Config) -> str:
    """Why there is no espeak-ng; empty: it is there, or something else is amiss with it."""
    try:
        await _try_espeak(settings)
    except EngineMissing as error:
        return str(error)
    except EngineError:
        pass
    return ""


def default_voice_problem(settings: Config) -> Iterator[str]:
    """Why espeak-ng does not speak as configured."""
    if settings.engines.tts in WITH_ESPEAK:
        try:
            asyncio.run(_try_espeak(settings))
        except EngineError as error:
            if settings.engines.tts == "espeak" or not isinstance(error, EngineMissing):
                yield str(error)


async def _try_espeak(settings: Config) -> None:
    """Raises EngineMissing, EngineError."""
    tts = EspeakTts(settings.espeak.voice, settings.espeak.words_per_minute)
    try:
        await tts.start()
    finally:
        await tts.close()

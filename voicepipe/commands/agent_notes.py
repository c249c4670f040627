"""Keys of agents' files that do nothing with the engines of a configuration: a model, sounds, a vocabulary."""

from collections.abc import Iterable, Iterator

from voicepipe.agent import Agent, Pronunciation
from voicepipe.config import Config

ONE_MODEL = ("frontdesk", "scripted")
"""Language engines that have no models to choose from."""
TAKE_VOCABULARY = ("whisper",)
"""Recognisers that can expect words."""
READ_NO_IPA = ("coqui", "scripted")
"""Voices that read letters alone."""


def without_effect(agents: Iterable[Agent], settings: Config) -> Iterator[str]:
    """A line for each key of each agent that does nothing, and what does."""
    engines = settings.engines
    for agent in agents:
        embedded = engines.llm == "auto" and bool(agent.intents)
        if agent.model and (embedded or engines.llm in ONE_MODEL):
            how = "an agent with [[intents]] is answered by the embedded engine" if embedded else "it has one model"
            yield (
                f'Agent {agent.name}: model = "{agent.model}" has no effect with engines.llm = "{engines.llm}": {how}. '
                "openai and vllm have several"
            )
        if agent.vocabulary and engines.asr not in TAKE_VOCABULARY:
            yield (
                f'Agent {agent.name}: vocabulary has no effect: engines.asr = "{engines.asr}" cannot expect words; '
                f"{' and '.join(TAKE_VOCABULARY)} can"
            )
        for word in _unread(agent, settings):
            yield (
                f"Agent {agent.name}: pronounce.{word} has no effect: its voice, of engines.tts = "
                f'"{engines.tts}", reads no IPA; add a spelling: {{ ipa = "...", spelling = "..." }}'
            )


def _unread(agent: Agent, settings: Config) -> Iterator[str]:
    """The words of which only the sounds are given, if the agent's voice does not read these."""
    if _reads_ipa(agent, settings):
        return
    for word, said in agent.pronounce.items():
        if not Pronunciation.of(said).spelling:
            yield word


def _reads_ipa(agent: Agent, settings: Config) -> bool:
    if settings.engines.tts not in ("auto", "espeak"):
        return settings.engines.tts not in READ_NO_IPA
    from voicepipe.engines.tts.hibari import VOICE  # Slow to import, and seldom needed.

    if settings.engines.tts == "auto" and agent.voice == VOICE:
        return True
    return (agent.voice or agent.language).lower().startswith("en")

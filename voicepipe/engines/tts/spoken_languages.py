"""Which languages the configured voice speaks, told before a model is loaded, and agents whose voice speaks another."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from voicepipe.agent import Agent
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config import Config
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.weights import hub
from voicepipe.languages.tags import primary

KANA_ALONE = 'espeak-ng reads the kana of Japanese, and says "Chinese letter" for each kanji'


class VoiceList(Protocol):
    """What of a voice engine tells of its voices; a loaded `base.Tts` is one."""

    def voices(self) -> Mapping[str, str]: ...

    def voice_for(self, asked: str, language: str = "") -> str: ...


def spoken_by(voices: VoiceList, asked: str, tag: str) -> tuple[str, bool]:
    """The voice that speaks to callers in the language `tag` where an agent names the voice `asked`, and whether it
    speaks that language. Of an engine that lists no voices that is taken for granted."""
    name = voices.voice_for(asked, tag)
    language = voices.voices().get(name.partition("+")[0])  # espeak-ng's may have a variant: "en-us+Annie"
    return name, language is None or primary(language) == primary(tag)


def spoken_in_part(name: str, config: Config) -> str:
    """What the voice of this name does not read of its language; empty: nothing that is known."""
    return KANA_ALONE if name.partition("+")[0] == "ja" and config.engines.tts in ("auto", "espeak") else ""


def foreign_voice(agent: Agent, voices: VoiceList) -> str:
    """The languages of the agent that its voices do not speak, and what helps; empty: they speak them. The voice that
    its file names is for its first language."""
    wrong = [(tag, name) for tag, asked in _wanted(agent)
             for name, speaks in [spoken_by(voices, asked, tag)] if not speaks]  # fmt: skip
    if not wrong:
        return ""
    said = ", ".join(f"in {tag!r} by the voice {name!r}" for tag, name in wrong)
    others = sorted(
        {name for tag, _ in wrong for name, language in voices.voices().items() if primary(language) == primary(tag)}
    )
    helps = f"there is {', '.join(others[:3])} (voice)" if others else "choose another engine (engines.tts)"
    return f"Agent {agent.name} speaks {said}, which speaks another language: {helps}"


def _wanted(agent: Agent) -> list[tuple[str, str]]:
    """The agent's languages, each with the voice that it names for it."""
    own = {agent.language: agent.voice} | agent.voices
    return [(tag, own.get(tag, "")) for tag in agent.spoken]


class _Listed:
    """Voices of which only the names and languages are known; `default` speaks where an agent names none of them."""

    def __init__(self, voices: Mapping[str, str], default: str) -> None:
        self._voices, self._default = voices, default

    def voices(self) -> Mapping[str, str]:
        return self._voices

    def voice_for(self, asked: str, language: str = "") -> str:
        return asked if asked in self._voices else self._default


class _Auto:
    """The voices of `auto_voice.AutoTts`, without hibari's model: it takes seconds to load."""

    def __init__(self, english: _Listed, espeak: EspeakTts) -> None:
        self._english, self._espeak = english, espeak

    def voices(self) -> Mapping[str, str]:
        return {**self._english.voices(), **self._espeak.voices()}

    def voice_for(self, asked: str, language: str = "") -> str:
        if asked in self._english.voices() or self._espeak.voice_for(asked) == asked:
            return asked
        own = primary(language) in ("", "en")
        return self._english.voice_for("") if own else self._espeak.voice_for("", language)


@asynccontextmanager
async def listed(config: Config) -> AsyncIterator[VoiceList | None]:
    """The voices of the configured engine; None: they are not known before it is loaded, or its files are not here.
    Raises EngineError: espeak-ng has no such default voice."""
    match config.engines.tts:
        case "auto" | "espeak":
            async with _with_espeak(config) as voices:
                yield voices
        case "hibari":
            yield _hibari()
        case "kokoro":
            yield await asyncio.to_thread(_kokoro, config)
        case "neutts":
            named = {name: voice.language for name, voice in config.neutts.voices.items()}
            yield _Listed(named, config.neutts.voice or next(iter(named), ""))
        case _:
            yield None


@asynccontextmanager
async def _with_espeak(config: Config) -> AsyncIterator[VoiceList | None]:
    auto = config.engines.tts == "auto"
    espeak = EspeakTts(config.espeak.voice, config.espeak.words_per_minute)
    try:
        await espeak.start()
    except EngineMissing:
        yield _hibari() if auto else None
        return
    try:
        yield _Auto(_hibari(), espeak) if auto else espeak
    finally:
        await espeak.close()


def _hibari() -> _Listed:
    from voicepipe.engines.tts.hibari import LANGUAGE, VOICE  # Slow to import.

    return _Listed({VOICE: LANGUAGE}, VOICE)


def _kokoro(config: Config) -> _Listed | None:
    import numpy as np

    from voicepipe.engines.tts.kokoro import LANGUAGES

    try:
        with np.load(hub.local_file(config.kokoro.voices, ".npz")) as styles:
            names = list(styles.files)
    except (EngineError, OSError, ValueError):
        return None
    return _Listed({name: LANGUAGES.get(name[:1], "en-us") for name in names}, config.kokoro.voice)

"""Which languages the configured recogniser hears, read from its model's files before anything is loaded."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from voicepipe.agent import Agent
from voicepipe.base.errors import EngineError
from voicepipe.config import Config
from voicepipe.config.engine_config import ENGLISH, POLYGLOT, WHISPER_POLYGLOT, WhisperConfig
from voicepipe.engines.asr.nemotron import checkpoint
from voicepipe.engines.weights import hub
from voicepipe.languages.tags import primary

ENGLISH_ALONE = frozenset({"en"})
WHISPER_WORDS_EN = 51_864
"""Words of the vocabulary of a Whisper that knows English alone: CTranslate2's `is_multilingual` goes by it."""
TOKEN = re.compile(r"<\|([a-z]{2,3})\|>")
"""Stands for a language in Whisper's vocabulary."""


def heard_languages(config: Config) -> frozenset[str] | None:
    """Tags without countries. None: they are not known, since the model is not here, or hears what a script says."""
    try:
        if config.engines.asr == "whisper":
            return _of_whisper(config.whisper)
        if config.engines.asr == "nemotron":
            if config.nemotron.model == ENGLISH:
                return ENGLISH_ALONE
            model = checkpoint.read(config.nemotron)
            names = checkpoint.prompts(model) if model.many_languages else ENGLISH_ALONE
            return frozenset(primary(name) for name in names if name != checkpoint.AUTO)
    except (EngineError, ImportError):  # The model or its library is not here, or is broken: that is said elsewhere.
        pass
    return None


def unheard(agent: Agent, config: Config, heard: frozenset[str] | None) -> Iterator[str]:
    """A line for each language of the agent in which its callers are not understood, with what helps. `heard`: as
    `heard_languages` has it."""
    asr = config.engines.asr
    model, other = (config.whisper.model, WHISPER_POLYGLOT) if asr == "whisper" else (config.nemotron.model, POLYGLOT)
    for tag in agent.spoken:
        if heard is None or primary(tag) in heard:
            continue
        key = "language" if tag == agent.language else "languages"
        said = f"Agent {agent.name} is spoken to in {tag!r} ({key}); {asr}.model {model}"
        if heard == ENGLISH_ALONE:
            yield f"{said} hears English alone: set it to {other}"
        else:
            yield f"{said} does not know that language: set another model"


def _of_whisper(config: WhisperConfig) -> frozenset[str]:
    try:
        words = _vocabulary(hub.local(config.model))
    except EngineError:
        if config.model.endswith(".en"):
            return ENGLISH_ALONE
        raise
    if len(words) == WHISPER_WORDS_EN:
        return ENGLISH_ALONE
    return frozenset(primary(found[1]) for word in words if (found := TOKEN.fullmatch(word)))


def _vocabulary(model: Path) -> list[str]:
    """Raises EngineError: CTranslate2's file with the model's words is not there, or is broken."""
    try:
        if (text := model / "vocabulary.txt").is_file():
            return text.read_text("utf-8").split("\n")[:-1]
        return list(json.loads((model / "vocabulary.json").read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise EngineError(f"{model} has no vocabulary that can be read: {error}") from None

"""Which languages a recogniser hears, by its model's files alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from voicepipe import config
from voicepipe.agent import Agent
from voicepipe.engines.asr.heard_languages import ENGLISH_ALONE, heard_languages, unheard


def whisper(model: object) -> config.Config:
    return config.parse({"whisper": {"model": str(model)}})


def nemotron(**keys: Any) -> config.Config:
    return config.parse({"engines": {"asr": "nemotron"}, "nemotron": keys})


@pytest.mark.parametrize(
    ("words", "heard"), [(51_864, frozenset({"en"})), (51_865, frozenset({"de", "en", "no", "zh"}))]
)
def test_of_whisper_the_vocabulary_tells(tmp_path: Path, words: int, heard: frozenset[str]) -> None:
    tokens = ["<|en|>", "<|de|>", "<|no|>", "<|zh|>", "<|notimestamps|>"]
    text = [f"word{number}" for number in range(words - len(tokens))] + tokens
    (tmp_path / "model.bin").touch()
    (tmp_path / "vocabulary.txt").write_text("\n".join(text) + "\n")
    assert heard_languages(whisper(tmp_path)) == heard
    (tmp_path / "vocabulary.txt").unlink()
    (tmp_path / "vocabulary.json").write_text(json.dumps(text))
    assert heard_languages(whisper(tmp_path)) == heard


def test_a_model_that_is_not_here_is_known_by_its_name_or_not_at_all(tmp_path: Path) -> None:
    assert heard_languages(whisper("Systran/faster-whisper-nowhere.en")) == ENGLISH_ALONE
    assert heard_languages(whisper("Systran/faster-whisper-nowhere")) is None
    assert heard_languages(whisper(tmp_path)) is None
    assert heard_languages(nemotron()) == ENGLISH_ALONE
    assert heard_languages(nemotron(model=str(tmp_path))) is None
    assert heard_languages(config.parse({"engines": {"asr": "scripted"}})) is None


def test_who_is_not_heard_is_told_what_helps() -> None:
    desk = Agent("desk", language="de-AT")
    (said,) = unheard(desk, nemotron(), ENGLISH_ALONE)
    assert (
        said.startswith("Agent desk is spoken to in 'de-AT' (language); nemotron.model nvidia/") and "3.5-asr" in said
    )
    (said,) = unheard(Agent("desk", language="tlh"), whisper("a"), frozenset({"en", "de"}))
    assert said.endswith("whisper.model a does not know that language: set another model")
    for tag, heard in (("en-GB", ENGLISH_ALONE), ("de", None), ("nb", frozenset({"no"})), ("cmn", frozenset({"zh"}))):
        assert not [*unheard(Agent("desk", language=tag), whisper("a"), heard)]

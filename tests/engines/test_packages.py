"""What engines lack beside their models, and what to do about it."""

import sys
from pathlib import Path

import pytest

from voicepipe import config
from voicepipe.engines import packages
from voicepipe.engines.packages import lacks, problems


def said(engine: str, **tables: dict[str, object]) -> list[str]:
    return list(lacks(engine, config.parse(tables)))


def test_a_package_that_is_not_installed_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    assert said("whisper") == [
        "whisper: its package faster_whisper is not installed; pip install faster-whisper",
    ]
    assert said("kokoro")[0].endswith("pip install 'voicepipe-pop[kokoro]'")


def test_an_engine_that_ships_lacks_nothing() -> None:
    assert said("scripted") == said("frontdesk") == said("espeak") == said("hibari") == []


def test_coqui_needs_an_interpreter_that_is_there(tmp_path: Path) -> None:
    assert "coqui-tts needs an environment of its own" in said("coqui")[0]
    nowhere = str(tmp_path / "python")
    assert f"there is no interpreter '{nowhere}'" in said("coqui", coqui={"python": nowhere})[0]
    assert said("coqui", coqui={"python": sys.executable}) == []


def test_a_server_needs_an_address() -> None:
    assert said("openai")[0].startswith("openai: openai.base_url is empty")
    assert said("openai", openai={"base_url": "http://127.0.0.1:8000/v1"}) == []


def test_only_chosen_engines_are_asked_about_in_the_order_of_a_turn() -> None:
    chosen = config.parse({"engines": {"asr": "scripted", "llm": "openai", "tts": "coqui"}})
    assert [line.partition(":")[0] for line in problems(chosen)] == ["openai", "coqui"]
    assert problems(config.parse({"engines": {"asr": "scripted", "llm": "frontdesk", "tts": "espeak"}})) == []

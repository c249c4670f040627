"""`voicepipe languages`: what callers in each language get, and what is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from voicepipe.commands import cli
from voicepipe.languages.known import LANGUAGES


def rows(capsys: pytest.CaptureFixture[str], *argv: str, status: int = 0) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    assert cli.main(["languages", "--json", *argv]) == status
    return {row["tag"]: row for row in json.loads(capsys.readouterr().out)}


def test_english_lacks_nothing_and_others_say_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my.toml").write_text('[engines]\nasr = "nemotron"\n')
    found = rows(capsys, "--config", str(tmp_path / "my.toml"))
    assert {*LANGUAGES, "pt", "nl", "ru", "hi", "ja", "zh", "ar", "ko"} == {*found}
    english = found["en"]
    assert (english["heard"], english["voice"], english["missing"]) == ("yes", "heart", [])
    assert (english["turns"], english["forms"], english["texts"], english["cards"]) == (
        "words", "rules", "English", "words",
    )  # fmt: skip
    german, japanese = found["de"], found["ja"]
    assert (german["heard"], german["voice"], german["turns"], german["texts"]) == ("-", "de", "words", "German")
    assert any("nemotron-3.5-asr-streaming-0.6b" in said for said in german["missing"])
    assert (japanese["turns"], japanese["texts"], japanese["cards"]) == ("voice", "English", "digits")
    assert any("Chinese letter" in said for said in japanese["missing"])
    assert any(said.startswith("an agent's file has to give interrupt, ") for said in japanese["missing"])


def test_languages_that_are_asked_for_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.toml"
    file.write_text('[engines]\ntts = "hibari"\n[whisper]\nmodel = "Systran/faster-whisper-tiny.en"\n')
    assert rows(capsys, "en", "--config", str(file))["en"]["missing"] == []
    french = rows(capsys, "fr-CA", "--config", str(file), status=1)["fr-CA"]
    assert (french["heard"], french["voice"]) == ("-", "-")
    assert 'no voice of engines.tts = "hibari" speaks it' in french["missing"]
    file.write_text('[engines]\nasr = "scripted"\ntts = "scripted"\n')
    french = rows(capsys, "fr", "--config", str(file))["fr"]
    assert (french["heard"], french["voice"]) == ("?", "?") and len(french["missing"]) == 2


def test_the_table_names_what_is_missing_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["languages"]) == 0
    out = capsys.readouterr().out
    assert "German" in out and out.count("hears English alone") == 1


@pytest.mark.parametrize("tag", ["x!", "english", "d"])
def test_what_is_no_language_is_refused(tag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["languages", tag]) == 2
    assert f"{tag!r} is no language; give tags such as de" in capsys.readouterr().err

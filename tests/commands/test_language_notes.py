"""What `voicepipe check` says of an agent whose language is not heard, not spoken, or not that of its texts."""

import pytest

from tests.support.paths import ROOT
from voicepipe import config
from voicepipe.agent import Agent, Intent
from voicepipe.commands import cli
from voicepipe.commands.language_notes import of_languages
from voicepipe.config.agent_store import open_agents
from voicepipe.languages.agent_texts import in_language, texts_in

HALL = in_language(Agent("hall"), "de")


def notes(agent: Agent, **tables: object) -> list[str]:
    return list(of_languages([agent], config.parse({"engines": {"asr": "scripted"}, **tables})))


def test_an_agent_that_is_heard_and_spoken_to_in_its_language_has_no_notes() -> None:
    assert notes(HALL) == notes(Agent("desk")) == []


def test_every_ear_that_hears_english_alone_is_named() -> None:
    (line,) = notes(HALL, engines={"asr": "whisper"})
    assert line.startswith("Agent hall is spoken to in 'de' (language); whisper.model Systran/faster-whisper-tiny.en")
    (line,) = notes(HALL, engines={"asr": "nemotron"})
    assert "nemotron-speech-streaming-en-0.6b hears English alone: set it to nvidia/nemotron-3.5" in line
    assert notes(Agent("desk"), engines={"asr": "nemotron"}) == []


@pytest.mark.parametrize(("tts", "voice"), [("hibari", ""), ("auto", "heart")])
def test_a_voice_of_another_language_is_named(tts: str, voice: str) -> None:
    agent = in_language(Agent("hall", voice=voice), "de")
    (line,) = notes(agent, engines={"asr": "scripted", "tts": tts})
    assert line.startswith("Agent hall speaks in 'de' by the voice 'heart', which speaks another language")


def test_a_voice_that_reads_a_script_in_part_is_named() -> None:
    texts, japanese = notes(Agent("hall", language="ja"))[::-1]
    assert "Chinese letter" in japanese and "in English" in texts
    assert len(notes(Agent("hall", language="ja"), engines={"asr": "scripted", "tts": "scripted"})) == 1


def test_texts_that_stay_english_are_named() -> None:
    (line,) = notes(Agent("hall", language="ru"))
    assert "interrupt, acknowledgement, fallback, no_input, not_understood in English" in line


def test_what_the_embedded_engine_reads_in_english_alone_is_said() -> None:
    agent = in_language(Agent("hall", intents=(Intent("hours", ("wann haben Sie offen",)),)), "de")
    (line,) = notes(agent)
    assert "reads yes, no, numbers, days and times in English alone" in line
    assert notes(agent, engines={"asr": "scripted", "llm": "openai"}, openai={"base_url": "http://127.0.0.1:9"}) == []


def test_the_shipped_agents_in_german_and_french_lack_nothing_but_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    file = ROOT / "configs" / "cpu-multilingual.toml"
    assert cli.main(["check", "--config", str(file)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if ": note: " in line]
    assert len(lines) == 2 and all("needs a language model" in line for line in lines)
    settings = config.load(file)
    assert {agent.language: agent.no_input[0] for agent in open_agents(settings)} == {
        "de": texts_in("de").no_input[0], "fr": texts_in("fr").no_input[0],
    }  # fmt: skip

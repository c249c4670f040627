"""An agent's texts follow its language, but for those that its file gives."""

from pathlib import Path

import pytest

from voicepipe.agent import Agent, HandOver, Intent
from voicepipe.config.agent_store import load_agent
from voicepipe.languages.agent_texts import KEYS, in_language, left_in_english, texts_in, unspoken_texts
from voicepipe.languages.known import LANGUAGES
from voicepipe.languages.language import AgentTexts

GERMAN = texts_in("de")


def test_defaults_become_those_of_the_new_language_and_own_texts_stay() -> None:
    own = Agent("desk", acknowledgement="A second.", goodbye="Bye.")
    desk = in_language(own, "de-AT")
    assert desk.language == "de-AT" and desk.acknowledgement == "A second." and desk.goodbye == "Bye."
    assert (desk.no_input, desk.fallback, desk.interrupt) == (GERMAN.no_input, GERMAN.fallback, GERMAN.interrupt)
    assert in_language(desk, "en") == own


def test_a_language_without_texts_has_the_english_ones() -> None:
    hindi = in_language(in_language(Agent("desk"), "de"), "hi")
    assert hindi == Agent("desk", language="hi")
    assert in_language(hindi, "de") == in_language(Agent("desk"), "de")


def test_what_intents_say_after_a_no_follows_and_their_examples_stay_as_they_are() -> None:
    table = Intent("table", ("einen Tisch",), confirm="Stimmt das?")
    bill = Intent("bill", ("die Rechnung",), denied="Gut.")
    desk = in_language(Agent("desk", intents=(table, bill)), "de")
    assert [intent.denied for intent in desk.intents] == [GERMAN.denied, "Gut."]
    assert desk.intents[0].examples is table.examples


def load(folder: Path, text: str) -> Agent:
    path = folder / "desk.toml"
    path.write_text(f'name = "desk"\n{text}')
    return load_agent(path)


@pytest.mark.parametrize("tag", ["de", "de-CH"])
def test_an_agents_file_gets_the_texts_of_its_language(tmp_path: Path, tag: str) -> None:
    desk = load(tmp_path, f'language = "{tag}"\nacknowledgement = ""\nfallback = "{Agent("").fallback}"\n')
    assert (desk.no_input, desk.not_understood) == (GERMAN.no_input, GERMAN.not_understood)
    assert desk.transfer_failed == GERMAN.transfer_failed
    assert (desk.acknowledgement, desk.fallback) == ("", Agent("").fallback), "its own, be it English or empty"


def test_the_same_for_intents_in_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "intents").mkdir()
    (tmp_path / "intents" / "desk.toml").write_text('[[intents]]\nname = "a"\nexamples = ["b"]\n')
    desk = load(tmp_path, 'language = "de"\nintents_file = "intents/desk.toml"\n')
    assert desk.intents[0].denied == GERMAN.denied


def test_an_english_agent_is_as_it_was(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Agent("desk")


@pytest.mark.parametrize("tag", LANGUAGES)
def test_no_text_of_a_language_is_empty_or_that_of_english(tag: str) -> None:
    for key in AgentTexts.__struct_fields__:
        text, english = getattr(texts_in(tag), key), getattr(texts_in("en"), key)
        said = [text] if isinstance(text, str) else text
        assert said and all(each.strip() for each in said), key
        assert tag == "en" or text != english, key


def test_the_texts_that_stay_english_are_named() -> None:
    assert left_in_english(Agent("desk", language="en-GB")) == left_in_english(in_language(Agent("desk"), "de")) == []
    nobody = Agent("desk", language="hi")
    assert left_in_english(nobody) == [key for key in KEYS if key not in ("transfer_failed", "cannot_transfer")]
    table = Intent("table", ("x",), confirm="?")
    passing = Agent("desk", language="hi", hand_over={"a": HandOver("b")}, intents=(table,), no_input=("?",))
    assert {"transfer_failed", "intents[0].denied"} < {*left_in_english(passing)} and "no_input" not in left_in_english(
        passing
    )
    (line,) = unspoken_texts(Agent("desk", language="hi", **{key: getattr(GERMAN, key) for key in KEYS[1:]}))
    assert line == (
        "Agent desk says interrupt in English, since voicepipe has no texts in 'hi' (language): give these keys in its "
        "file"
    )

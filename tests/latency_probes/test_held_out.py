"""What the probes say is worded apart from everything that the server was made with."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from latency_probes.clips import FOLDER
from latency_probes.generate import read_sentences
from latency_probes.guest_file import guests
from voicepipe.config.agent_store import AgentStore
from voicepipe.languages.en.callers import drawn, ordinary
from voicepipe.languages.language_file import lines_of
from voicepipe.languages.learned_ends import examples

ROOT = Path(__file__).parents[2]
SAID_BY_ALL = {"no", "excuse me"}
"""Interruptions: there are few words for them."""


def plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", text.lower()))


def made_with() -> Iterator[str]:
    """The agents' examples, the sentences that the endpointing was set on, and those in which ends are counted."""
    for agent in AgentStore(ROOT / "configs" / "agents"):
        for intent in agent.intents:
            yield from intent.examples
    parts = json.loads((ROOT / "tests" / "turn" / "endpoint_sentences.json").read_text())
    yield from (text for sentences in parts.values() for text, _ in sentences)
    yield from ordinary()
    yield from drawn()


def test_no_text_is_one_that_the_server_was_made_with() -> None:
    known = {plain(text) for text in made_with()}
    said = read_sentences(FOLDER / "sentences.toml")
    assert {plain(sentence.text) for sentence in said} & known <= SAID_BY_ALL
    # After these words a caller pauses and goes on. Those that could stand alone are ordinary sentences by nature.
    assert not {plain(sentence.before) for sentence in said if sentence.kind == "pause_inside"} & known


def test_what_guests_say_of_their_own_accord_is_worded_apart() -> None:
    """What they answer ("four", "on friday") can be worded in few ways, and is ordinary by nature."""
    known = {plain(text) for text in made_with()}
    for act in (act for guest in guests() for act in guest.acts):
        asides = (aside.text for aside in act.aside.values())
        said = {plain(text) for text in (act.opens, act.goes_on, *asides, act.over, *act.corrects.values())}
        assert not said & known


def test_no_german_text_is_one_that_the_german_rules_were_made_with() -> None:
    known = {plain(text) for text, _ in examples(lines_of("de"))}
    said = read_sentences(FOLDER / "sentences_de.toml")
    assert not {plain(text) for sentence in said for text in (sentence.text, sentence.before) if text} & known

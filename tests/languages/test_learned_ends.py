"""What callers' sentences teach about where turns end."""

import json
import random
import re
import time
from pathlib import Path

import pytest

from voicepipe.languages.known import LANGUAGES, language_of
from voicepipe.languages.language_file import lines_of
from voicepipe.languages.learned_ends import LearnedEnds, examples

FOLDER = Path(__file__).parent
BY_FILE = sorted({*LANGUAGES} - {"en"})
WRITTEN = re.compile(r"[a-zà-ÿœß' |-]+")
REPEATED = {"de": ("am haben den", "ein haben da")}
"""Words on which rules once took seconds."""


def test_a_bar_stands_where_more_is_to_come() -> None:
    lines = ["# a comment", "a table for | two at | seven", "is there a |", "yes", "", " | "]
    assert [*examples(lines)] == [
        ("a table for", False), ("a table for two at", False), ("a table for two at seven", True),
        ("is there a", False), ("yes", True),
    ]  # fmt: skip


def test_what_ends_and_what_goes_on_is_learned_from_few_sentences() -> None:
    ends = LearnedEnds(["a table for | two", "a table for | four please", "do you have a | table", "it is for | me"])
    assert ends.log_odds("a room for".split()) < 0 < ends.log_odds("a room please".split())
    assert ends.log_odds([]) == 0


@pytest.mark.parametrize("lines", [[], ["yes", "no"], ["a |"]], ids=["none", "all whole", "all begun"])
def test_without_both_kinds_nothing_is_known(lines: list[str]) -> None:
    assert LearnedEnds(lines).log_odds(["yes"]) == 0


def test_both_kinds_count_alike_however_many_there_are() -> None:
    begun, whole = [f"it is number{at} |" for at in range(20)], [f"it is number{at} please" for at in range(400)]
    assert abs(LearnedEnds([*begun, *whole]).log_odds(["it"])) < 1, "and not the log-odds of 400 to 20"


@pytest.mark.parametrize("tag", BY_FILE)
def test_sentences_are_as_callers_say_them_and_each_stands_once(tag: str) -> None:
    lines = [line for line in lines_of(tag) if not line.startswith("#")]
    assert lines == sorted({*lines}), "in order, each once"
    assert not [line for line in lines if not WRITTEN.fullmatch(line)], "small letters, numbers in words, no marks"
    said = [*examples(lines)]
    assert len(said) > 1500 and not {text for text, whole in said if whole} & {
        text for text, whole in said if not whole
    }


@pytest.mark.parametrize("tag", BY_FILE)
def test_no_sentence_is_one_with_which_the_rules_are_examined(tag: str) -> None:
    parts: dict[str, list[tuple[str, bool]]] = json.loads((FOLDER / tag / "sentences.json").read_text())
    held_out = {text for part, known in parts.items() if part.endswith("held_out") for text, _ in known}
    assert held_out and not held_out & {text for text, _ in examples(lines_of(tag))}


@pytest.mark.parametrize("tag", BY_FILE)
def test_no_words_take_long_however_they_are_repeated(tag: str) -> None:
    turn, rng = language_of(tag).turn, random.Random(1)
    turn.warm()
    words = [word for text, _ in examples(lines_of(tag)) for word in text.split()]
    drawn = [" ".join(rng.choices(words, k=rng.randint(1, 3))) for _ in range(150)]
    for said in (*REPEATED.get(tag, ()), *drawn):
        began = time.process_time()
        turn.ends(" ".join((said.split() * 60)[:60]))
        assert time.process_time() - began < 1, said

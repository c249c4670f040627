"""What callers say, drawn from a grammar."""

import re

from voicepipe.languages.en.caller_sentences import RULE, SYMBOL, sentences
from voicepipe.languages.en.callers import FILLERS, GRAMMAR, drawn, ordinary


def test_they_are_always_the_same() -> None:
    once = sentences(GRAMMAR, FILLERS, 300)
    assert sentences(GRAMMAR, FILLERS, 300) == once
    assert len(set(once)) > 250


def test_they_are_words_as_a_recogniser_writes_them() -> None:
    for sentence in (*ordinary(), *drawn()):
        assert re.fullmatch(r"[a-z']+( [a-z']+)*", sentence), sentence


def test_each_rule_of_the_grammar_is_defined_once_and_used() -> None:
    defined = [name for name, _ in RULE.findall(GRAMMAR)]
    assert len(defined) == len(set(defined))
    used = {name for _, body in RULE.findall(GRAMMAR) for name in SYMBOL.findall(body)} - {"NULL"}
    assert used | {"call"} == set(defined)


def test_some_hesitate() -> None:
    hesitant = [sentence for sentence in drawn() if set(FILLERS) & set(sentence.split())]
    assert 0.1 < len(hesitant) / len(drawn()) < 0.5

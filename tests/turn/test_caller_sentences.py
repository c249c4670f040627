"""What callers say, drawn from a grammar."""

import re

from voicepipe.turn.caller_sentences import GRAMMAR, RULE, SYMBOL, ordinary, sentences


def test_they_are_always_the_same() -> None:
    sentences.cache_clear()
    once = sentences(300)
    sentences.cache_clear()
    assert sentences(300) == once
    assert len(set(once)) > 250


def test_they_are_words_as_a_recogniser_writes_them() -> None:
    for sentence in (*ordinary(), *sentences()):
        assert re.fullmatch(r"[a-z']+( [a-z']+)*", sentence), sentence


def test_each_rule_of_the_grammar_is_defined_once_and_used() -> None:
    defined = [name for name, _ in RULE.findall(GRAMMAR)]
    assert len(defined) == len(set(defined))
    used = {name for _, body in RULE.findall(GRAMMAR) for name in SYMBOL.findall(body)} - {"NULL"}
    assert used | {"call"} == set(defined)


def test_some_hesitate() -> None:
    hesitant = [sentence for sentence in sentences() if {"um", "uh"} & set(sentence.split())]
    assert 0.1 < len(hesitant) / len(sentences()) < 0.5

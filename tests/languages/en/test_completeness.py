"""Rules of grammar by which a sentence has not ended."""

from collections.abc import Callable

import pytest

from voicepipe.languages.en.completeness import (
    RULES,
    inside_a_number,
    lacks_a_noun,
    lacks_a_verb,
    lacks_an_object,
    leads_on,
)


def test_every_rule_says_why_in_words() -> None:
    assert all(" " in rule.name and rule.log_odds < 0 for rule in RULES)


def holds(rule: Callable[[list[str]], bool], text: str) -> bool:
    return rule(text.split())


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("my number is five five five", True),
        ("my number is five five five one two three four", False),
        ("call me on oh seven", True),
        ("for five", False),
        ("five five five", True),
        ("at half", True),
        ("a half", True),
        ("a quarter", False),
        ("on the third of june", False),
        ("the first june", False),
        ("june", True),
        ("may", False),
    ],
)
def test_a_number_is_begun(text: str, inside: bool) -> None:
    assert holds(inside_a_number, text) is inside


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        ("a table for", True),
        ("it is my wife's", True),
        ("we are", True),
        ("um", True),
        ("how many", True),
        ("in the middle of may", False),
        ("yes we are", False),
        ("who am i speaking to", False),
        ("what is the way to", False),
        ("i want that", False),
        ("i was hoping that", True),
        ("a table", False),
    ],
)
def test_a_last_word_wants_another(text: str, leads: bool) -> None:
    assert holds(leads_on, text) is leads


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("what time does the kitchen", True),
        ("what time does the kitchen close", False),
        ("are dogs", True),
        ("are dogs allowed", False),
        ("can i", True),
        ("where is it", False),
        ("i would like a table", False),
    ],
)
def test_a_question_lacks_its_verb(text: str, lacks: bool) -> None:
    assert holds(lacks_a_verb, text) is lacks


@pytest.mark.parametrize(
    ("text", "lacks"),
    [("i'd like to book", True), ("do you accept", True), ("what do you serve", False), ("for my booking", False)],
)
def test_a_verb_lacks_its_object(text: str, lacks: bool) -> None:
    assert holds(lacks_an_object, text) is lacks


@pytest.mark.parametrize(
    ("text", "lacks"),
    [("do you have a quiet", True), ("is it quiet", False), ("quiet", False), ("what is the special", False)],
)
def test_an_adjective_lacks_its_noun(text: str, lacks: bool) -> None:
    assert holds(lacks_a_noun, text) is lacks

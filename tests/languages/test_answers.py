"""Whether a few words answer what the agent asked, in each language of which a file is written; the answers are in the
languages' folders. English has rules of its own (`en/test_answers.py`)."""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from voicepipe.languages.known import LANGUAGES, language_of
from voicepipe.turn.endpoint import EndpointConfig, Endpointer, Evidence

FOLDER = Path(__file__).parent
BY_FILE = sorted(set(LANGUAGES) - {"en"})


class Exchange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the agent asked, and what callers say to it, each with ", " behind it."""

    asked: str
    said: str


class KnownAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a language's file has."""

    wants_digits: list[str]
    """Questions for a telephone number or the like; `wants_none`: other questions."""
    wants_none: list[str]
    lone: str
    """A yes or a no behind which more may follow; `not_lone`: others."""
    not_lone: str
    waits: str
    """Who asks to wait; `not_waits`: who does not."""
    not_waits: str
    stray: list[Exchange]
    """One word that is no answer to a question for a yes or a no; `not_stray`: others."""
    not_stray: list[Exchange]
    whole: list[Exchange]
    """Whole answers; `begun`: beginnings, and answers to nothing."""
    begun: list[Exchange]
    may_end: list[str] = []
    """Sentences that may end there; `goes_on`: others."""
    goes_on: list[str] = []


def known(tag: str) -> KnownAnswers:
    return msgspec.toml.decode((FOLDER / tag / "answers.toml").read_bytes(), type=KnownAnswers)


def listed(said: str) -> list[str]:
    return " ".join(said.split()).split(", ")


def in_each(exchanges: Callable[[KnownAnswers], list[Exchange]]) -> "pytest.MarkDecorator":
    rows = [(tag, each.asked, listed(each.said)) for tag in BY_FILE for each in exchanges(known(tag))]
    return pytest.mark.parametrize(("tag", "asked", "said"), rows)


in_each_language = pytest.mark.parametrize("tag", BY_FILE)


@in_each_language
def test_who_is_asked_for_digits(tag: str) -> None:
    turn = language_of(tag).turn
    assert [asked for asked in known(tag).wants_digits if not turn.wants_digits(asked)] == []
    assert [asked for asked in known(tag).wants_none if turn.wants_digits(asked)] == []


@in_each(lambda answers: answers.whole)
def test_whole_answers_are_answered_soon(tag: str, asked: str, said: list[str]) -> None:
    turn, config = language_of(tag).turn, EndpointConfig()
    endpointer = Endpointer(config, turn=turn)
    for text in said:
        assert turn.answers(text, asked), text
        assert turn.answers(f"{text.capitalize()}.", asked), "as recognisers write it"
        least_ms = config.yes_ms if turn.is_lone(text) else config.answer_ms
        assert endpointer.judge(Evidence(text, asked=asked)).required_ms == least_ms, text


@in_each(lambda answers: answers.begun)
def test_beginnings_and_answers_to_nothing(tag: str, asked: str, said: list[str]) -> None:
    assert [text for text in said if language_of(tag).turn.answers(text, asked)] == []


@in_each_language
def test_a_lone_yes_or_no_behind_which_more_may_follow(tag: str) -> None:
    turn = language_of(tag).turn
    assert [text for text in listed(known(tag).lone) if not turn.is_lone(text)] == []
    assert [text for text in ("", *listed(known(tag).not_lone)) if turn.is_lone(text)] == []


@in_each(lambda answers: answers.stray)
def test_one_word_that_is_no_answer_to_a_yes_or_no_question(tag: str, asked: str, said: list[str]) -> None:
    turn, config = language_of(tag).turn, EndpointConfig()
    for text in said:
        assert turn.is_stray(text, asked), text
        assert Endpointer(config, turn=turn).judge(Evidence(text, asked=asked)).required_ms >= config.yes_ms, text


@in_each(lambda answers: answers.not_stray)
def test_words_that_are_an_answer_or_more_than_one(tag: str, asked: str, said: list[str]) -> None:
    assert [text for text in said if language_of(tag).turn.is_stray(text, asked)] == []


@in_each_language
def test_who_asks_to_wait(tag: str) -> None:
    turn = language_of(tag).turn
    for text in listed(known(tag).waits):
        assert turn.asks_to_wait(text), text
        assert not any(turn.answers(text, each.asked) for each in known(tag).whole), text
    assert [text for text in ("", *listed(known(tag).not_waits)) if turn.asks_to_wait(text)] == []


@in_each_language
def test_whole_sentences_and_begun_ones(tag: str) -> None:
    turn = language_of(tag).turn

    def ends(text: str) -> float:
        return turn.ends(turn.as_said(text, False))

    assert [text for text in known(tag).may_end if ends(text) <= 0.5] == []
    assert [text for text in known(tag).goes_on if ends(text) > 0.5] == []


@in_each_language
def test_the_longest_texts_take_no_time(tag: str) -> None:
    turn, answers = language_of(tag).turn, known(tag)
    asked = answers.whole[0].asked
    words = [listed(answers.lone)[0], listed(answers.waits)[0], *(listed(each.said)[0] for each in answers.whole)]
    for word in words:
        for long in (f"{word} " * (1900 // len(word)), f"{word} " * 20_000):
            began = time.process_time()
            assert not turn.answers(long, asked) and not turn.asks_to_wait(long)
            turn.ends(turn.as_said(long, False))
            assert time.process_time() - began < 1, word

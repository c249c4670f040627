"""Which language the caller speaks."""

import pytest

from voicepipe.languages.written_language import LikelyLanguage
from voicepipe.turn.spoken_language import SpokenLanguage, ToldUtterance

BEGINS = SpokenLanguage(("en", "fr", "es"), "en")
TABLE = "je voudrais une table pour ce soir"


def after(*heard: ToldUtterance, known: SpokenLanguage = BEGINS) -> SpokenLanguage:
    for each in heard:
        known = known.after(each)
    return known


def said(text: str, tag: str, odds: float = 0.97, ms: float = 2000, asked: str = "") -> ToldUtterance:
    return ToldUtterance(text, ms, LikelyLanguage(tag, odds), asked)


def test_one_sure_utterance_changes_it_and_one_in_another_language_changes_it_again() -> None:
    french = after(said(TABLE, "fr"))
    assert french.now == "fr"
    assert after(said("what time do you open tomorrow", "en"), known=french).now == "en"


@pytest.mark.parametrize("unsure", [said(TABLE, "fr", 0.7), said("je voudrais une table", "fr", ms=800)])
def test_unsure_ones_change_it_when_two_come_in_a_row(unsure: ToldUtterance) -> None:
    assert after(unsure).now == "en"
    assert after(unsure, unsure).now == "fr"
    assert after(unsure, said("what time do you open tomorrow", "en"), unsure).now == "en"
    assert after(unsure, said("quiero una mesa para hoy", "es", 0.7)).now == "en", "they are in two languages"


def test_what_tells_nothing_between_them_does_not_count() -> None:
    unsure = said(TABLE, "fr", 0.7)
    assert after(unsure, said("okay", "es"), unsure).now == "fr"


@pytest.mark.parametrize(
    "text",
    ["okay", "Okay.", "hallo", "Carlo Maria Rossi", "Rossi", "0 3 0 1 2 3", "0301234567", "zero one two three four"],
)  # fmt: skip
def test_words_of_all_languages_names_and_numbers_change_nothing(text: str) -> None:
    assert after(*[said(text, "fr", 0.99)] * 3) == BEGINS


def test_an_answer_in_the_present_language_is_none_in_another() -> None:
    asked = "What is your name?"
    assert after(*[said("jean pierre", "fr", asked=asked)] * 3) == BEGINS


def test_words_in_another_language_than_the_recogniser_tells_make_it_unsure() -> None:
    assert after(said("I would like to have a table please", "fr", 0.95)).now == "en"


def test_a_recogniser_that_tells_no_language_changes_none() -> None:
    assert after(ToldUtterance(TABLE, 2000)) == BEGINS


def test_what_is_typed_tells_its_language_itself() -> None:
    assert after(ToldUtterance(TABLE)).now == "fr"
    assert after(ToldUtterance("quiero una mesa para dos personas")).now == "es"
    assert after(ToldUtterance("ok")) == BEGINS


def test_an_agent_of_one_language_speaks_it_whatever_is_heard() -> None:
    only = SpokenLanguage(("en",), "en")
    assert after(said(TABLE, "fr"), ToldUtterance(TABLE), known=only) == only

"""The language of a text."""

import pytest

from voicepipe.languages.written_language import LikelyLanguage, likeliest, written_language

AMONG = ("en", "fr-CA", "es", "it", "de")


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("I would like a table for two please", "en"), ("à quelle heure ouvrez-vous", "fr-CA"),
        ("quiero una mesa para dos", "es"), ("vorrei un tavolo per due", "it"), ("ich möchte einen Tisch", "de"),
    ],
)  # fmt: skip
def test_a_sentence_is_in_one_of_the_languages(text: str, tag: str) -> None:
    found = written_language(text, AMONG)
    assert found.tag == tag and found.probability > 0.8


def test_nothing_is_told_where_there_is_no_choice() -> None:
    assert written_language("bonjour", ("fr",)) == LikelyLanguage()
    assert written_language("bonjour", ("xx", "fr")) == LikelyLanguage()


def test_a_language_that_does_not_stand_out_is_the_one_before() -> None:
    assert likeliest({"en": 0.04, "fr": 0.05}, "en").tag == "en"
    assert likeliest({"en": 0.25, "fr": 0.75}, "en") == LikelyLanguage("fr", 0.75)
    assert likeliest({"en": 0.0}, "en") == LikelyLanguage()

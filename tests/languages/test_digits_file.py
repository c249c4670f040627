"""Each language's number words: whole, and of one meaning."""

import pytest

from voicepipe.languages.digits_file import by_value, digits_files
from voicepipe.languages.en.words import NUMBERED_PLACES, NUMBERED_RECORDS, TENS, UNITS
from voicepipe.redaction.number_words import ABROAD, NUMERIC, WORDS

FILES = digits_files()


def test_english_comes_first_among_those_that_have_a_file() -> None:
    assert list(FILES) == ["en", "de", "es", "fr", "it", "nl", "pt"]


@pytest.mark.parametrize("tag", FILES)
def test_digits_and_numbers_are_whole(tag: str) -> None:
    file = FILES[tag]
    assert [len(by_value(words)) for words in (file.units, file.teens, file.tens)] == [10, 10, 8]
    assert len(by_value(file.hundreds)) in (0, 9) and len(by_value(file.plurals)) in (0, 10)
    assert file.fillers and file.named and file.measured and file.card


def test_no_word_that_is_a_number_in_english_is_another_one_elsewhere() -> None:
    english = {word for word, (kind, _) in WORDS.items() if kind in NUMERIC and word in FILES["en"].units.split()}
    english |= FILES["en"].perhaps.keys()
    assert not english & ABROAD.keys()


def test_the_words_of_english_are_those_of_its_file() -> None:
    assert (UNITS[0], UNITS[19], TENS["ninety"]) == ("zero", "nineteen", 90)
    assert {*NUMBERED_PLACES, *NUMBERED_RECORDS} <= set(FILES["en"].named.split())

"""The digits of number words that stand in a row."""

import pytest

from voicepipe.redaction.cardinals import NumberPart, spelled
from voicepipe.redaction.number_words import WORDS, Kind, large


def _parts(text: str) -> list[NumberPart]:
    """A part for each word; "and" and the like have no kind."""
    parts = []
    for word in text.split():
        value, _ = large(word)
        kind, digits = (Kind.LARGE, str(value)) if value else WORDS.get(word, (None, ""))
        is_number = kind is not None and kind < Kind.FILLER
        parts.append(NumberPart(kind if is_number else None, digits, word, 0, 0))
    return parts


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("four thousand five hundred thirty nine", "4539"),
        ("two hundred and three hundred", "200300"),
        ("double five four ones", "551111"),
        ("viertausend fünfhundert neununddreißig", "4539"),
        ("viertausend fünftausend", "40005000"),
        ("quinientos treinta y nueve ciento catorce", "539114"),
        ("mille quatre", "1004"),
        ("neunzehnhunderttausend acht", "1900008"),
        ("hundred hundred thousand thousand", "1001000001000"),
        ("", ""),
    ],
)
def test_digits_of_words(text: str, digits: str) -> None:
    assert spelled(_parts(text)) == digits

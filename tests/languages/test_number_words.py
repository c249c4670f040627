"""Numbers and months in words: what the libraries say, and what of it is mended."""

import pytest

from voicepipe.languages import number_words


@pytest.mark.parametrize(
    ("number", "tag", "said"),
    [
        (101642, "de", "einhunderteintausendsechshundertzweiundvierzig"),
        (1998, "fr", "mille neuf cent quatre-vingt-dix-huit"),
        (1026, "es", "mil veintiséis"),
        (118, "it", "centodiciotto"),
        (123, "it", "centoventitré"),
        (3, "it", "tre"),
        (1_000_001, "it", "un milione uno"),
    ],
)
def test_numbers(number: int, tag: str, said: str) -> None:
    assert number_words.cardinal(number, tag) == said


@pytest.mark.parametrize(
    ("number", "tag", "said"),
    [(21, "de", "einundzwanzigste"), (80, "fr", "quatre-vingtième"), (200, "fr", "deux centième")],
)
def test_ordinals(number: int, tag: str, said: str) -> None:
    assert number_words.ordinal(number, tag) == said


def test_years_and_digits() -> None:
    assert number_words.year(1998, "de") == "neunzehnhundertachtundneunzig"
    assert number_words.digits("0171", "de") == "null eins sieben eins"


@pytest.mark.parametrize(("text", "number"), [("XXI", 21), ("XIV", 14), ("IIII", 0), ("CIVIL", 0)])
def test_roman_numbers(text: str, number: int) -> None:
    assert number_words.roman(text) == number


def test_months() -> None:
    assert number_words.months("it")[2] == "marzo"
    named = number_words.months_by_name("de")
    assert named["januar"] == named["jan"] == 1 and named["dezember"] == named["dez"] == 12

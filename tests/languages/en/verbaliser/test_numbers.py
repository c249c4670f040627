"""Numbers as English words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.languages.en.verbaliser.numbers import (
    amount,
    cardinal,
    decimal,
    fraction,
    grouped,
    ordinal,
    plural,
    year,
)


@given(st.integers(-(10**18), 10**18))
def test_numbers_are_words(number: int) -> None:
    assert cardinal(number).replace(" ", "").isalpha()


@pytest.mark.parametrize(
    ("number", "said"), [(0, "zero"), (21, "twenty one"), (100, "one hundred"), (1001, "one thousand one")]
)
def test_cardinals(number: int, said: str) -> None:
    assert cardinal(number) == said


@pytest.mark.parametrize(("number", "said"), [(1, "first"), (12, "twelfth"), (20, "twentieth"), (43, "forty third")])
def test_ordinals(number: int, said: str) -> None:
    assert ordinal(number) == said


@pytest.mark.parametrize(
    ("number", "said"), [(1900, "nineteen hundred"), (1906, "nineteen oh six"), (2000, "two thousand")]
)
def test_years(number: int, said: str) -> None:
    assert year(number) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("00 7", "zero zero seven"),
        ("12345", "one two three four five"),
        ("123456", "one two three, four five six"),
        ("4165550192", "four one six, five five five, zero one nine two"),
    ],
)
def test_from_six_digits_on_they_are_said_in_groups(text: str, said: str) -> None:
    assert grouped(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,234.50", "one thousand two hundred thirty four point five zero"),
        ("1.000.000", "one million"),
        (".5", "zero point five"),
        ("007", "zero zero seven"),
        ("10\u202f000", "ten thousand"),
    ],
)
def test_decimals_as_they_are_written(text: str, said: str) -> None:
    assert decimal(text) == said == amount(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4 1/2", "four and a half"),
        ("4½", "four and a half"),
        ("3/4", "three quarters"),
        ("2 1/3", "two and one third"),
        ("7/4", "seven over four"),
        ("12", ""),
    ],
)
def test_fractions(text: str, said: str) -> None:
    assert fraction(text) == said


@pytest.mark.parametrize(
    ("one", "several"),
    [("nineteen eighty", "nineteen eighties"), ("twenty six", "twenty sixes"), ("fifteen", "fifteens")],
)
def test_plurals(one: str, several: str) -> None:
    assert plural(one) == several

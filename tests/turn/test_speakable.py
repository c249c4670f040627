"""Speakable text: total, lossless in what is written, and said as people say it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.stopwatch import spent
from voicepipe.turn.speakable import cardinal, heard, ordinal, pieces, speakable, year

TRICKY = (
    "$18.50 7:30 pm 24:59 0:00 2026-05-14 31/12/2025 May 32 1st 00 +44 20 7946 **b** _i_ `c` [a](b) | --- # - 😀 e.g. "
    "Dr. no. a@b.co https://x.org/?q=1 12.5% 5 km °C 1,234,567 1e9 A12 & @ < ３ ² ٣ \n \n\n \x01"
)
MIXED = st.lists(st.one_of(st.sampled_from(TRICKY.split(" ")), st.text(max_size=6)), max_size=12).map(" ".join)


@given(st.one_of(st.text(), MIXED), st.sampled_from(["en", "en-US", "de", "", "?"]))
def test_never_raises_and_loses_nothing(text: str, language: str) -> None:
    assert "".join(piece.written for piece in pieces(text, language)) == text
    speakable(text, language)


@given(st.one_of(st.text(), MIXED))
@example("<<")
def test_nothing_is_said_that_cannot_be(text: str) -> None:
    said = speakable(text)
    assert said == " ".join(said.split())
    assert not any(sign in said for sign in "\0\x01`😀")
    assert not any(sign in "0123456789" for sign in said)


@given(MIXED, st.integers(0, 60))
def test_what_was_heard_is_a_beginning(text: str, words: int) -> None:
    assert text.startswith(heard(pieces(text), words))


def test_heard_counts_spoken_words() -> None:
    parts = pieces("It costs $18.50 today.")
    assert heard(parts, 4) == "It costs "
    assert heard(parts, 5) == "It costs $18.50 "
    assert heard(parts, 6) == "It costs $18.50 today."


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("", ""),
        ("It is $18.50.", "It is eighteen dollars fifty."),
        ("$1, $0.50, $4.05", "one dollar, fifty cents, four dollars five"),
        ("€1,234.50 or 20€", "one thousand two hundred thirty four euros fifty or twenty euros"),
        ("$2.5 million", "two point five million dollars"),
        ("at 7:30 pm", "at seven thirty p m"),
        ("at 7pm.", "at seven p m."),
        ("19:30, 7:05, 12:00", "nineteen thirty, seven oh five, twelve o'clock"),
        ("7:00 a.m. today", "seven a m today"),
        ("On 2026-05-14", "On May fourteenth, twenty twenty six"),
        ("5/14/2026 or 14 May 2026", "May fourteenth, twenty twenty six or May fourteenth, twenty twenty six"),
        ("In May. 10 of us", "In May. ten of us"),
        ("Dec. 5", "December fifth"),
        ("May I?", "May I?"),
        ("+44 20 7946 0958", "plus four four, two zero, seven nine four six, zero nine five eight"),
        ("(555) 555-0142", "five five five, five five five, zero one four two"),
        ("since 1987 or 2005", "since nineteen eighty seven or two thousand five"),
        ("12.5% of 5 km", "twelve point five percent of five kilometers"),
        ("1 kg at 20°C", "one kilogram at twenty degrees Celsius"),
        ("the 1st and 22nd", "the first and twenty second"),
        ("5-7 people", "five to seven people"),
        ("-5 or 3.14", "minus five or three point one four"),
        ("room A12, code 007", "room A twelve, code zero zero seven"),
        ("**Bold**, _it_ and `code`", "Bold, it and code"),
        ("[our site](https://a.example/b).", "our site."),
        ("# Title\n\n- one\n- two", "Title. one, two"),
        ("see https://www.example.org/menu?x=1.", "see example dot org slash menu."),
        ("mail a.b@example.org", "mail a dot b at example dot org"),
        ("Dr. Ray, e.g. no. 5, etc.", "Doctor Ray, for example number five, et cetera."),
        ("No. Yes.", "No. Yes."),
        ("fine 👍🏽 & good", "fine and good"),
        ("7 o'clock", "seven o'clock"),
        ("2*3=6", "two times three equals six"),
    ],
)
def test_english(written: str, spoken: str) -> None:
    assert speakable(written) == spoken


def test_other_languages_lose_only_the_markup() -> None:
    assert speakable("Das kostet 18,50 € **heute** 😀", "de") == "Das kostet 18,50 € heute"


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


HARD = (
    "a|a |[|](|(|1,000|a. |"
    "https://.|www.-|x@|9|9.|May |1 |$1,000,|+1 |1a|`|#1|-1|7:|etc. |((((1|!)|1 k|[x]|1,|5-|a.b.|+|.| "
).split("|") + ["|", "( ", "-", "[a"]


@pytest.mark.parametrize("unit", HARD)
def test_a_text_costs_its_length(unit: str) -> None:
    def took(chars: int) -> float:
        text = (unit * chars)[:chars]
        return spent(lambda: speakable(text))

    few, many = took(1_000), took(8_000)
    assert many < 32 * max(few, 0.0005), "eight times as much would be 64 times as dear if the square were paid"

"""Speakable text: total, lossless in what is written, and said as people say it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.stopwatch import spent
from voicepipe.conversation.speakable import pieces, speakable

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


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("", ""),
        ("**Bold**, _it_ and `code`", "Bold, it and code"),
        ("[our site](https://a.example/b).", "our site."),
        ("# Title\n\n- one\n- two", "Title. one, two"),
        ("fine 👍🏽 & good", "fine and good"),
    ],
)
def test_markup(written: str, spoken: str) -> None:
    assert speakable(written) == spoken


@pytest.mark.parametrize("language", ["de", "fr-CA", "zh", ""])
def test_other_languages_lose_only_the_markup(language: str) -> None:
    assert speakable("18,50 € **24/7** 1-800-555-0199 😀", language) == "18,50 € 24/7 1-800-555-0199"


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

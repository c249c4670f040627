"""Callers' words, as recognisers write them and as they were said."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stopwatch import spent
from voicepipe.base.words import plain
from voicepipe.languages.en.as_said import LONGEST, as_said


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("seven thirty", "730 | 7:30. | 7.30 | 7 30 | Seven-thirty."),
        ("at seven oh five", "at 705. | At 7:05"),
        ("seven thirty p m", "730PM | 7:30 pm | 7.30 p.m. | seven thirty pm"),
        ("eight p m please", "8PM please. | 8 p.m., please | APM, please."),
        ("at eight fifty five", "at 855. | at 8:55"),
        ("nineteen thirty", "1930. | 19:30"),
        ("eighteen hundred hours", "1800 hours"),
        ("half past seven", "Half past 7. | Have past seven | Have pass 7."),
        ("at half past eight", "at half past date."),
        ("quarter to eight", "Quarter to 8"),
        ("eight o'clock", "8 o'clock. | 8 O’clock"),
        ("on the fifth of may", "on May 5th. | on 5 May | on the 5th of May. | on May the fifth"),
        ("the twenty first of june", "21 June | June 21st. | June 21"),
        ("for two", "For 2. | for two,"),
        ("four people please", "4 people, please. | For people, please."),
        ("two hundred fifty people", "250 people."),
        ("five five five zero one four two", "555-0142. | 5550142 | 555 0142 | 5 5 5 0 1 4 2 | 555-O142 | 5-55 0142"),
        ("my number is five five five zero one", "My number is 555-01 | My number is 555 01"),
        ("you can reach me at four one five", "You can reach me at 415"),
        ("my reference is one two three", "My reference is 123."),
        ("nine hundred people", "900 people"),
        ("in twenty twenty seven", "In 2027."),
        ("twenty dollars", "$20. | 20 dollars"),
        ("three dollars fifty", "$3.50"),
        ("twenty percent", "20%"),
        ("the three course dinner", "the 3-course dinner"),
        ("b r o w n", "B-R-O-W-N | B R O W N. | b.r.o.w.n."),
        ("this is mr o'hara", "This is Mr. O’Hara. | this is mister o'hara"),
        ("no six people", "No. 6 people. | No, 6 people"),
        ("no no thanks", "No. No, thanks."),
        ("okay that's all right", "OK, that's alright."),
        ("no that's wrong", "Know that's wrong."),
        ("i know that", "I know that."),
        ("uh huh", "Uh-huh. | Aha."),
        ("mm hmm", "Mm-hmm. | Mhm."),
        ("is the parking free for guests", "Is the parking free for guests?"),
        ("what is a date", "What is a date?"),
        ("", " | ..."),
    ],
)
def test_what_was_said(said: str, written: str) -> None:
    for text in (said, *written.split("|")):
        assert as_said(text.strip()) == said, text


@pytest.mark.parametrize(
    ("digits", "written"),
    [
        ("five five five", "555."),
        ("seven three zero", "730 | 7-30"),
        ("my number is four one five", "My number is 415"),
        ("no at seven thirty", "No, at 730."),
    ],
)
def test_where_digits_were_asked_for_each_is_one(digits: str, written: str) -> None:
    for text in written.split("|"):
        assert as_said(text.strip(), dictated=True) == digits, text


def test_a_text_of_words_alone_is_only_made_plain() -> None:
    for text in ("I'd like to book a table, please.", "Qu’est-ce que c’est?", "請問你們幾點開門?"):
        assert as_said(text) == plain(text)


@given(st.text(max_size=40) | st.text("0123456789 .:-o$ apmforNo", max_size=20))
def test_what_was_said_is_itself_said_so(text: str) -> None:
    said = as_said(text)
    assert said == said.lower()
    assert as_said(said) == said or not text.isascii()


def test_the_longest_texts_take_no_time() -> None:
    for long in (
        "1 " * 500_000,
        "5-" * 500_000,
        "twenty first " * 100_000,
        "1o" * (LONGEST // 2),
        "7 " * (LONGEST // 2),
    ):
        as_said(long)


@pytest.mark.parametrize(
    "text", ["-".join(["20"] * 60) + "th", "o" * 500, "-".join(["2o"] * 60) + " people", "1" * 500]
)
def test_a_row_of_digits_takes_no_time(text: str) -> None:
    assert spent(partial(as_said, text)) < 0.1


def test_a_row_of_digits_is_read_group_by_group() -> None:
    assert as_said("20-20-20", dictated=True) == "two zero two zero two zero"

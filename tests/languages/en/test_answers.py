"""Whether a few words answer what the agent asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.languages.en.answers import MOST_WORDS, agrees, answers, declines, to_be_done, wants_digits
from voicepipe.languages.en.completeness import LEADS_ON

MANY, DAY, TIME = "With pleasure. For how many people?", "For which day?", "And at what time?"
BOOK, RIGHT, ELSE = "A table for four. Shall I book it?", "Is that right?", "You're welcome. Is there anything else?"
NAME, WHO, TELL = "May I have your name?", "And who is calling, please?", "Could you give me your name, please?"
PHONE, SPELL = "And your telephone number?", "Could you spell that?"
HELP = "Harbour House, good day. How can I help you?"


@pytest.mark.parametrize(
    ("asked", "digits"),
    [
        (PHONE, True),
        (f"We are open until ten. {PHONE}", True),
        ("What is your order number?", True),
        (f"{PHONE} We will call you. We are open until ten.", False),
        (MANY, False),
        (RIGHT, False),
        (NAME, False),
        (SPELL, False),
        (HELP, False),
        ("", False),
    ],
)
def test_who_is_asked_for_digits(asked: str, digits: bool) -> None:
    assert wants_digits(asked) == digits


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            MANY,
            "four, for four, four people please, we are four, just me, twenty five, two adults and two children, 4, "
            "we'll be five, there will be six of us, only me, me and my wife, my wife and i, two adults and one child",
        ),
        (
            DAY,
            "friday, on friday evening, tomorrow, the twenty first of june, june the third, 21st, day after tomorrow, "
            "on the eighth of may",
        ),
        (TIME, "seven, at seven thirty, half past seven, quarter to eight in the evening, 7:30, seven pm, at noon"),
        (TIME, "eight o'clock, 8 o'clock please, at about seven, make it eight, 7:30 p.m."),
        (
            BOOK,
            "yes please, yes, no thank you, yes that's right, no for five, that would be great thanks, oh yes please",
        ),
        (RIGHT, "correct, yes it is, no it's six, that's right, exactly, no, yes but at eight"),
        (NAME, "smith, under ann brown, ann brown, it's ann brown, my name is ann brown"),
        (WHO, "this is mary jones"),
        (TELL, "john smith"),
        ("What is your name?", "smith"),
        (ELSE, "no that's all, no thanks, nothing else"),
        ("Which day would you like? We are closed on Monday.", "saturday"),
        ("Is Ann Brown the right name?", "yes it is"),
    ],
)
def test_whole_answers(asked: str, said: str) -> None:
    for text in said.split(", "):
        assert answers(text, asked), text
        assert answers(f"{text.capitalize()}.", asked), "as recognisers write it"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            MANY,
            "for, well, we are, yes, two adults and, for a table, for four at, me and my two, me and my family, "
            "one second",
        ),
        (DAY, "on the, june, next, friday at, my wife and i, one moment, just a second"),
        (TIME, "at, half past, quarter to, half, seven at, friday at, about seven at"),
        (BOOK, "yes but, yes and, i'd like, yes please book it for a table with a view please"),
        (NAME, "my name is, it's, yes, yes it's, well, one moment, let me see, just a second, hold on, hang on, okay"),
        (TELL, "sure"),
        (PHONE, "five five five, seven, 0 2 0"),
        (MANY, "five five five"),
        (SPELL, "s"),
        (HELP, "yes, no, hello"),
        ("We are open until ten.", "yes, four"),
        ("", "yes, four"),
        ("Shall I book it? I can also call you back. You need not decide now.", "yes"),
    ],
)
def test_beginnings_and_answers_to_nothing(asked: str, said: str) -> None:
    for text in said.split(", "):
        assert not answers(text, asked), text


@given(
    st.lists(
        st.sampled_from([*sorted(LEADS_ON), "yes", "four", "seven", "friday", "thirty", "june", "o'clock"]), max_size=40
    ),
    st.sampled_from([MANY, DAY, TIME, BOOK, RIGHT, NAME, PHONE, HELP]),
)
def test_no_long_sentence_and_none_that_leads_on_is_an_answer(words: list[str], asked: str) -> None:
    if answers(" ".join(words), asked):
        assert 0 < len(words) <= MOST_WORDS and asked not in (PHONE, HELP)


YES = """
    yes, yes please, please, okay, right, yes that's right thank you, Yes - that is right., that's all right, we do,
    it's all correct, yes that's all thank you, oh yes of course, yes it is, go ahead, sounds good, yes do that,
    why not, that works, everything is correct thanks, yes please that would be lovely thank you very much
"""
NO = """
    no, okay no, right no, absolutely not, of course not, well no, yes but no, that's not right, it isn't right,
    please don't, i do not think so, yes that's right no sorry, sorry no, okay wrong number
"""
NEITHER = """
    okay never mind, alright forget it, ok cancel, please hold on, please repeat that, yes but wait, yes maybe,
    okay and do you have parking, please connect me to a person, ok keep it, okay leave it as it is, i would, it is,
    yes for two, yes and, that's it, it's fine, it's all good, yes but not so fast, thank you, hello
"""


def listed(texts: str) -> list[str]:
    return [text.strip() for text in texts.split(",")]


@pytest.mark.parametrize("said", listed(YES))
def test_a_yes_and_nothing_else(said: str) -> None:
    assert agrees(said) and not declines(said)
    assert answers(said, RIGHT) or len(said.split()) > MOST_WORDS or said == "please", "as endpointing has it"


@pytest.mark.parametrize("said", listed(NO))
def test_a_no_whatever_stands_before_it(said: str) -> None:
    assert declines(said) and not agrees(said)


@pytest.mark.parametrize("said", listed(NEITHER))
def test_what_is_neither(said: str) -> None:
    assert not agrees(said) and not declines(said)


def test_a_yes_that_repeats_what_was_read_back() -> None:
    for said in ("yes for two", "yes on friday at seven thirty", "that's right, 2 people please"):
        assert agrees(said, repeating=True) and not agrees(said)
    for said in ("for two", "yes for two no", "yes for two but", "yes for two at", "yes maybe for two", "yes hold on"):
        assert not agrees(said, repeating=True), said


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("cancel it please", ("cancel", "it")),
        ("yes please cancel my booking", ("cancel", "my booking")),
        ("go ahead and book it", ("book", "it")),
        ("yes, you can cancel", ("cancel", "")),
        ("yes please", ("", "")),
        ("is it", ("", "")),
        ("cancel it but not now", ("", "")),
    ],
)
def test_what_is_to_be_done(said: str, what: tuple[str, str]) -> None:
    assert to_be_done(said) == what


def test_the_longest_texts_take_no_time() -> None:
    for long in ("that is all right " * 5000, "that is all right " * 3 + "x", "yes " + "twenty five " * 5000):
        assert not agrees(long, repeating=True) and not declines(long) and to_be_done(long) == ("", "")
    assert not answers("yes " * 100_000, BOOK)
    assert not answers("seven " * MOST_WORDS + "and", MANY)
    assert answers("yes", "a " * 50_000 + "?" + "Yes? " * 50_000)
    assert not answers("yes", "? " + "a " * 50_000)

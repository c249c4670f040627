"""Numbers in a text, however they are written or said, as digits; and what stands between them."""

import random

import pytest

from tests.redaction.said_numbers import UP_TO, as_one, say
from voicepipe.redaction.numbers_read import Gap, read

CLOSE, LOOSE, APART = Gap.CLOSE, Gap.LOOSE, Gap.APART


def digits(text: str, *languages: str) -> list[str]:
    return [number.digits for number in read(text, set(languages)).numbers]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4539 1488", ["45391488"]),
        ("four five three nine", ["4539"]),
        ("double one, triple five", ["11555"]),
        ("four ones", ["1111"]),
        ("forty-five thirty nine", ["4539"]),
        ("four thousand five hundred and thirty nine", ["4539"]),
        ("four hundred oh five", ["405"]),
        ("one for one one", ["1411"]),
        ("oh three four", ["034"]),
        ("４５３９", ["4539"]),
        ("nobody is here", []),
        ("won't you come for two tonight", []),
    ],
)
def test_numbers_are_read_as_their_digits(text: str, expected: list[str]) -> None:
    assert digits(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vier fünf drei neun", ["4539"]),
        ("einundvierzig zweiundzwanzig", ["4122"]),
        ("quarante-cinq trente-neuf", ["4539"]),
        ("quatre-vingt-dix-sept", ["97"]),
        ("soixante et onze zéro", ["710"]),
        ("treinta y uno cuatro", ["314"]),
        ("ventuno quarantotto", ["2148"]),
        ("meia dois três", ["623"]),
    ],
)
def test_numbers_of_other_languages(text: str, expected: list[str]) -> None:
    assert digits(text) == expected


@pytest.mark.parametrize("language", ["de", "fr", "es", "it", "nl", "pt"])
def test_each_number_of_a_language_is_read_as_its_digits(language: str) -> None:
    """All below a thousand, and some above, by num2words."""
    for number in [*range(10, 1000), *random.Random(1).sample(range(1000, UP_TO), 500)]:
        assert digits(say(language, number), language) == [str(number)], say(language, number)


@pytest.mark.parametrize("language", ["de", "fr", "es", "it"])
def test_each_number_is_read_as_recognisers_write_it(language: str) -> None:
    chance = random.Random(1)
    for number in chance.sample(range(10, UP_TO), 500):
        said = as_one(chance, str(number), language)
        assert digits(said, language) == [str(number)], said


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("doppelt die fünf", "de", ["55"]),
        ("drei mal die fünf", "de", ["555"]),
        ("fünf und vierzig neun und dreißig", "de", ["4539"]),
        ("dreißig fünf", "de", ["305"]),
        ("vierhundert, acht", "de", ["4008"]),
        ("neunzehnhundertachtundneunzig", "de", ["1998"]),
        ("trois fois le cinq", "fr", ["555"]),
        ("soixante, onze", "fr", ["6011"]),
        ("sept cent quatre-vingt-quatorze cent trente-huit", "fr", ["794138"]),
        ("dos veces ocho", "es", ["88"]),
        ("treinta y nueve, mil cuatrocientos", "es", ["391400"]),
        ("due volte otto", "it", ["88"]),
        ("quattro mila cinquecento trentanove", "it", ["4539"]),
    ],
)
def test_ways_of_other_languages(text: str, language: str, expected: list[str]) -> None:
    assert digits(text, language) == expected


def test_a_word_that_is_a_digit_elsewhere_counts_where_its_language_is_spoken() -> None:
    assert digits("sei 4 4") == ["44"]
    assert digits("sei 4 4", "it") == ["644"]


@pytest.mark.parametrize(
    ("text", "gaps"),
    [
        ("4539, uh, 1488", [CLOSE, CLOSE]),
        ("4539 and then 1488", [CLOSE, CLOSE]),
        ("4539 my dog barks 1488", [CLOSE, LOOSE]),
        ("4539 or 1488", [CLOSE, APART]),
        ("I live at 4539", [LOOSE]),
        ("4539 people, 1488", [CLOSE, APART]),
    ],
)
def test_what_stands_between_numbers(text: str, gaps: list[Gap]) -> None:
    assert [number.gap for number in read(text, set()).numbers] == gaps


@pytest.mark.parametrize(
    ("text", "known"),
    [("phone number 4539", True), ("4539 euros", True), ("room 4539", True), ("it is 4539", False)],
)
def test_words_beside_a_number_may_say_what_it_is(text: str, known: bool) -> None:
    (number,) = read(text, set()).numbers
    assert number.known is known


@pytest.mark.parametrize(
    "text", ["2026-11-27T19:30", "27.11.2026", "€1,234.50", "15 %", "the 3rd", "550e8400-e29b-41d4-a716-446655440000"]
)
def test_dates_prices_and_ids_are_no_numbers_of_a_card(text: str) -> None:
    assert digits(text) == []


def test_a_time_of_day_may_belong_to_a_number_that_has_begun() -> None:
    reading = read("4539 14:88 11:11", set())
    assert [(number.digits, number.soft) for number in reading.numbers][-1] == ("1111", True)
    assert read("at 19:30", set()).numbers[0].gap is LOOSE


def test_where_a_number_stands() -> None:
    (number,) = read("it is four five, thanks", set()).numbers
    assert "it is four five, thanks"[number.start : number.end] == "four five"


@pytest.mark.parametrize(
    ("text", "tail", "wordy", "card"),
    [
        ("uh, and then", CLOSE, False, False),
        ("my dog barks", LOOSE, True, False),
        ("4539", CLOSE, False, False),
        ("4539 my dog barks", LOOSE, True, False),
        ("4539 or", APART, True, False),
        ("my visa card", LOOSE, True, True),
    ],
)
def test_what_stands_behind_the_last_number(text: str, tail: Gap, wordy: bool, card: bool) -> None:
    reading = read(text, set())
    assert (reading.tail, reading.wordy, reading.card) == (tail, wordy, card)


@pytest.mark.parametrize(
    ("text", "left"),
    [("nobody has one left", []), ("a table for 4 tonight", []), ("we are one two here", ["12"]), ("my seven", ["7"])],
)
def test_a_digit_amid_other_words_belongs_to_no_number(text: str, left: list[str]) -> None:
    assert digits(text) == left

"""Which numbers, said one after the other, are parts of a card's."""

from collections.abc import Iterable

import pytest

from voicepipe.redaction.card_numbers import found, is_right, joined
from voicepipe.redaction.numbers_read import Gap, Number

CLOSE, LOOSE = Gap.CLOSE, Gap.LOOSE


def said(*parts: str | tuple[str, Gap], known: Iterable[int] = (), again: Iterable[int] = ()) -> list[Number]:
    """Numbers in order, each with what is between it and the one before; where nothing is said of it: nothing."""
    numbers = []
    for index, part in enumerate(parts):
        digits, gap = part if isinstance(part, tuple) else (part, CLOSE)
        numbers.append(Number(0, len(digits), digits, gap, known=index in known, again=index in again))
    return numbers


def cards(numbers: list[Number], *, talk: bool = False, written: bool = False) -> set[str]:
    return {joined(parts) for parts in found(numbers, talk, written)}


@pytest.mark.parametrize(
    ("digits", "right"),
    [
        ("4539148803436467", True),
        ("4539148803436468", False),
        ("378282246310005", True),
        ("5555555555554444", True),
        ("6011111111111117", True),
        ("1234567812345670", False),
        ("79927398713", False),
    ],
)
def test_a_card_s_number_has_its_beginning_its_length_and_its_check_digit(digits: str, right: bool) -> None:
    assert is_right(digits) is right


def test_parts_that_follow_each_other_are_one_number_whatever_its_check_digit() -> None:
    assert cards(said("4539", "1488", "0343", "6468")) == {"4539148803436468"}
    assert cards(said("4539148803436468")) == {"4539148803436468"}
    assert cards(said("4539", "1488", "0343")) == set()


def test_other_words_part_a_number_unless_there_is_talk_of_cards() -> None:
    apart = said("4539", "1488", ("0343", LOOSE), "6468")
    assert cards(apart) == set()
    assert cards(apart, talk=True) == {"4539148803436468"}


def test_a_right_check_digit_joins_what_other_words_part() -> None:
    assert cards(said("4539", ("1488", LOOSE), ("0343", LOOSE), ("6467", LOOSE))) == {"4539148803436467"}


def test_two_telephone_numbers_are_no_card() -> None:
    assert cards(said("0301234567", "0301234568")) == set()


def test_a_longer_number_is_no_card_where_a_program_says_what_it_is() -> None:
    assert cards(said(20 * "1")) == cards(said(20 * "1"), written=True) == {20 * "1"}
    assert cards(said(20 * "1", known=[0]), written=True) == set()


def test_two_numbers_that_are_known_are_not_joined() -> None:
    assert cards(said("453914880", "3436467")) == {"4539148803436467"}
    assert cards(said("453914880", "3436468", known=[0, 1])) == set()


def test_what_was_said_again_counts_once() -> None:
    numbers = said("4539", "4539", "1488", "0343", "6467", again=[1])
    assert joined(numbers) == "4539148803436467"
    assert cards(numbers) == {"4539148803436467"}

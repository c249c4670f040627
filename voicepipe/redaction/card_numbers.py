"""Finds the numbers that, said one after the other, are parts of a card's. Pure.

A card number has 13 to 19 digits. Nobody asks whether its check digit is right, since a recogniser mishears digits; the
check digit decides where numbers stand apart.
"""

import re
from collections.abc import Iterator, Sequence

from voicepipe.redaction.maskable_text import split
from voicepipe.redaction.numbers_read import Gap, Number

SHORTEST, LONGEST = 13, 19
"""Digits of a card number."""
WITH_CODES = LONGEST + 8
"""Digits of a card number with its expiry date and its code behind it."""
PHONE = 9
"""Digits of a telephone number. Two such numbers in a row are two telephone numbers, unless something indicates a
card."""
THREE_QUARTERS = 12
"""Digits of a card number in groups of four of which one is missing."""
ISSUED = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[0-8]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[0689]\d{12}|35\d{14}|6\d{15,18}"
)
"""Beginnings of card numbers."""
DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def found(numbers: Sequence[Number], talk: bool, written: bool = False) -> Iterator[list[Number]]:
    """Parts of card numbers, among numbers of which none is separate from the others. `talk`: the talk is of cards, so
    that other words may be between the parts. `written`: by a program, which marks numbers of other kinds."""
    for number in numbers:
        if len(number.digits) >= SHORTEST and not (written and number.known and not is_right(number.digits)):
            yield [number]
    for close in (numbers,) if talk else split(numbers, Gap.LOOSE):
        for run in _runs(close, talk):
            size = len(joined(run))
            if size >= SHORTEST and not (written and size > LONGEST):
                yield run
    if written or any(number.gap is not Gap.CLOSE for number in numbers[1:]):
        yield from _right_ones([number for number in numbers if not number.again])


def joined(numbers: Sequence[Number]) -> str:
    """The digits that were said in all, without those that were repeated."""
    return "".join([number.digits for number in numbers if not number.again])


def is_right(digits: str) -> bool:
    """Whether it may be a card number: its beginning, its length and its check digit are right."""
    if not ISSUED.fullmatch(digits):
        return False
    values = list(map(int, reversed(digits)))
    return (sum(values[::2]) + sum([DOUBLED[value] for value in values[1::2]])) % 10 == 0


def _runs(numbers: Sequence[Number], talk: bool) -> Iterator[list[Number]]:
    """Sequences of numbers that may be one number."""
    run: list[Number] = []
    for number in numbers:
        if run and not number.again and not _goes_on(run, number, talk):
            yield run
            run = []
        run.append(number)
    if run:
        yield run


def _goes_on(run: Sequence[Number], number: Number, talk: bool) -> bool:
    digits, more = joined(run), number.digits
    if number.known and (run[-1].known or len(digits) >= PHONE):
        return False
    if run[-1].known and number.gap is Gap.LOOSE:
        return False
    if len(digits) >= SHORTEST:
        return len(more) < PHONE and len(digits) + len(more) <= WITH_CODES
    if min(len(digits), len(more)) < PHONE or len(digits) + len(more) <= LONGEST:
        return True
    if any(is_right((digits + more)[:size]) for size in range(SHORTEST, LONGEST + 1)):
        return True
    return digits[:3] != more[:3] and (talk or len(digits) == THREE_QUARTERS)


def _right_ones(numbers: Sequence[Number]) -> Iterator[list[Number]]:
    """Numbers that together are a card's, whatever is between them."""
    for first in range(len(numbers)):
        digits = ""
        for last in range(first, len(numbers)):
            more = numbers[last].digits
            digits += more
            if len(digits) > LONGEST or not (len(more) < PHONE or len(more) == THREE_QUARTERS):
                break
            if len(digits) >= SHORTEST and last > first and is_right(digits):
                yield list(numbers[first : last + 1])

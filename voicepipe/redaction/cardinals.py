"""The digits of number words that stand in a row: "four thousand five hundred thirty nine" is 4539. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from voicepipe.redaction.number_words import BEFORE_TENS, EIGHTY, TEN_WITH_UNITS, TENS_ALONE, TENS_WITH_TEENS, Kind


class NumberPart(NamedTuple):
    """A word of a number, or digits of it. Kind None: written digits, or a word inside a number, such as "and"."""

    kind: Kind | None
    digits: str
    word: str
    start: int
    end: int
    marked: bool = False
    """A comma or a full stop ends the number before it."""


def spelled(parts: Sequence[NumberPart]) -> str:
    """Their digits, in the order in which they were said."""
    said, at = [], 0
    while at < len(parts):
        part = parts[at]
        following = parts[at + 1] if at + 1 < len(parts) else None
        if part.kind is None:
            said.append(part.digits)
        elif part.kind is Kind.TIMES:
            counted = parts[_past_join(parts, at + 1) :][:1]
            if counted and counted[0].digits and counted[0].kind is not Kind.TIMES:
                said.append(counted[0].digits[0] * (int(part.digits) - 1))
        elif part.kind is Kind.UNIT and following and following.kind is Kind.PLURAL:
            said.append(following.digits * int(part.digits))
            at += 1
        elif part.kind is Kind.PERHAPS:
            said.append(part.digits)
        elif part.kind is not Kind.PLURAL:
            number, at = _cardinal(parts, at)
            said.append(number)
            continue
        at += 1
    return "".join(said)


def _cardinal(parts: Sequence[NumberPart], at: int) -> tuple[str, int]:
    """The number that begins there, and its end: "four thousand one hundred eleven" is 4111."""
    value, at = _hundreds(parts, at)
    if at < len(parts) and parts[at].kind is Kind.THOUSAND and value < 1000 and not (value and parts[at].marked):
        rest, at = _hundreds(parts, _rest(parts, at + 1), (Kind.THOUSAND,), 1000)
        value = (value or 1) * 1000 + rest
    return str(value), at


def _hundreds(parts: Sequence[NumberPart], at: int, before: Sequence[Kind] = (), below: int = 10**9) -> tuple[int, int]:
    if at < len(parts) and parts[at].kind is Kind.LARGE:
        return _large(parts, at, below)
    value, at = _last_two(parts, at, before)
    if at < len(parts) and parts[at].kind is Kind.HUNDRED and not (value and parts[at].marked):
        value, at = (value or 1) * 100, at + 1
        if at < len(parts) and not parts[at].marked:
            rest, at = _last_two(parts, _rest(parts, at), (Kind.HUNDRED, Kind.THOUSAND))
            value += rest
    return value, at


def _large(parts: Sequence[NumberPart], at: int, below: int) -> tuple[int, int]:
    """A word such as "viertausend" or "quinientos", with what may follow it."""
    value = int(parts[at].digits)
    if value >= below:
        return 0, at
    at += 1
    if at == len(parts) or parts[at].marked:
        rest = 0
    elif value % 1000 == 0:
        rest, at = _hundreds(parts, _past_join(parts, at), (Kind.THOUSAND,), 1000)
    elif value % 100 == 0:
        rest, at = _last_two(parts, _past_join(parts, at), (Kind.HUNDRED, Kind.THOUSAND))
    else:
        rest = 0
    return value + rest, at


def _last_two(parts: Sequence[NumberPart], at: int, before: Sequence[Kind]) -> tuple[int, int]:
    """As `_below_hundred`, but what stands before such a word begins another number: "one hundred ninety, seven
    thousand"."""
    value, end = _below_hundred(parts, at)
    if end == len(parts) or parts[end].kind not in before or parts[end].marked:
        return value, end
    if end <= at + 1:
        return 0, at
    is_whole = parts[end - 1].kind is Kind.TEEN  # "soixante-quatorze cent": nobody says "quatorze cent".
    return (value, end) if is_whole else (value // 10 * 10, end - 1)


def _past_join(parts: Sequence[NumberPart], at: int) -> int:
    return at + 1 if at < len(parts) and parts[at].kind is None and not parts[at].digits else at


def _rest(parts: Sequence[NumberPart], at: int) -> int:
    """The position after "hundred" where a number goes on: behind an "and", or an "oh" ("four hundred oh five")."""
    at = _past_join(parts, at)
    return at + 1 if at < len(parts) and parts[at].kind is Kind.PERHAPS and parts[at].digits == "0" else at


def _below_hundred(parts: Sequence[NumberPart], at: int) -> tuple[int, int]:
    """A number below a hundred that begins there, and its end; 0 and the same position: there is none."""
    if at == len(parts) or parts[at].kind not in (Kind.UNIT, Kind.TEEN, Kind.TEN):
        return 0, at
    part, value = parts[at], int(parts[at].digits)
    if part.kind is Kind.UNIT and at + 2 < len(parts):
        join, ten = parts[at + 1 : at + 3]
        if join.word in BEFORE_TENS and ten.kind is Kind.TEN:
            return int(ten.digits) + value, at + 3
    following = parts[_past_join(parts, at + 1) :][:2]
    if part.word in EIGHTY and following and following[0].word in EIGHTY[part.word]:
        at, value = at + 1, 80
        following = parts[_past_join(parts, at + 1) :][:2]
    if following and (following[0].marked or part.word in TENS_ALONE and following[0] is parts[at + 1]):
        return value, at + 1
    if part.kind is Kind.TEN or value == 80:
        high = part.word in TENS_WITH_TEENS or part.word in EIGHTY
        if following and following[0].kind is Kind.UNIT and following[0].digits != "0":
            return value + int(following[0].digits), _past_join(parts, at + 1) + 1
        if high and following and following[0].kind is Kind.TEEN:
            rest, at = _below_hundred(parts, _past_join(parts, at + 1))
            return value + rest, at
    if part.word in TEN_WITH_UNITS and following and following[0].kind is Kind.UNIT and following[0].digits in "789":
        return 10 + int(following[0].digits), at + 2
    return value, at + 1

"""Finds the numbers in a text, written or said, as digits; and the kind of text between them. Pure.

"My card is 4111 11, uh, double one" has the numbers 411111 and 11, which may be one number: only a filler is between.
"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple
from unicodedata import digit as digit_of

import regex

from voicepipe.redaction.number_words import ABROAD, CARD, EVIDENCE, LETTER_APOSTROPHE, WORDS, Kind


class Gap(IntEnum):
    """The kind of text between two numbers."""

    CLOSE = 0
    """Nothing but fillers: they may be parts of one number."""
    LOOSE = 1
    """Other words: they are parts of one number only if more indicates it."""
    APART = 2
    """They are two numbers."""


@dataclass(slots=True, eq=False)
class Number:
    """A number without other words in it, in `text[start:end]`; and how it is kept, which the redactor decides."""

    start: int
    end: int
    digits: str
    gap: Gap
    """The gap to the number before it, or to the beginning of the text."""
    known: bool = False
    """The words beside it show that it is no card's: "phone number", "people"."""
    soft: bool = False
    """It is written as a time of day. A recogniser may write "eleven eleven" so: it belongs to a number that has
    begun."""
    key: Hashable = None
    """The key of the text that it is in."""
    mask: str = ""
    """The text that replaces it; empty: the number itself."""
    final: bool = False
    """The mask no longer changes."""
    again: bool = False
    """It repeats an earlier number, and adds nothing to the numbers beside it."""


@dataclass(slots=True)
class NumbersReading:
    """The numbers of one text, and what else in it concerns numbers."""

    numbers: list[Number] = field(default_factory=list)
    tail: Gap = Gap.CLOSE
    """The gap from the last number, or from the beginning, to the end of the text."""
    wordy: bool = False
    """There are words that are neither numbers nor fillers."""
    card: bool = False
    """The text speaks of cards."""


TOKEN = regex.compile(
    r"""
    (?P<word>[^\W\d_]+)
    | (?=[\d€$£]) (?:
      (?P<apart>
        (?<![\d./-])(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?![\d./-])(?:T[\d:.]+)?  # 2026-11-27
        | (?<![\d./-])[0-3]?\d(?P<mark>[./-])[0-3]?\d(?P=mark)(?:19|20)\d\d(?![./-]?\d)  # 27.11.2026
        | [€$£]\ ?\d{1,3}(?:[.,]?\d{2,3}){0,3}(?![\s.,-]{0,2}\d)
        | (?<![\d.,])(?<!\d[\s.,-])\d{1,3}(?:[.,]?\d{2,3}){0,3}\ ?[€$£%]
      )
    | (?P<time>(?<![\d:])(?:[01]?\d|2[0-3])[:h][0-5]\d(?::[0-5]\d)?(?![\d:]))
    | (?P<other>\d{1,3}(?:st|nd|rd|th)\b)
    | (?P<digits>\d+)
    )
    """,
    regex.VERBOSE,
)
UUID = re.compile(r"(?i)\b(?=[\d-]*[a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")
JOINS = {"and": (Kind.HUNDRED, Kind.THOUSAND), "y": (Kind.TEN,), "e": (Kind.TEN,), "et": (Kind.TEN,)}
"""Words inside a number: "one hundred and eleven", "treinta y uno"."""
WORD = regex.compile(r"[^\W\d_]+")
APOSTROPHE = regex.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
"""`regex`, since for `re` a vowel sign is no part of a word: one Hindi word amid digits would be several."""
ALONE = 9
"""Digits of a number that may be whole, such as a telephone number: a time of day behind it is no part of it."""
SPOKEN = (Kind.UNIT, Kind.PERHAPS, Kind.TIMES, Kind.PLURAL)
NUMERIC = frozenset(
    (Kind.UNIT, Kind.TEEN, Kind.TEN, Kind.HUNDRED, Kind.THOUSAND, Kind.TIMES, Kind.PLURAL, Kind.PERHAPS)
)


class NumberPart(NamedTuple):
    """A word of a number, or digits of it. Kind None: written digits, or "and"."""

    kind: Kind | None
    digits: str
    word: str
    start: int
    end: int


def read(text: str, languages: set[str]) -> NumbersReading:
    """The numbers of a text. `languages` are those that the call is known to be in, besides English; the text may add
    to them."""
    if "'" in text or "’" in text:
        text = APOSTROPHE.sub(LETTER_APOSTROPHE, text)
    languages |= _languages(WORD.findall(text.lower()))
    return _NumberReader(text, languages).read()


class _NumberReader:
    """Reads the numbers of one text, word by word."""

    def __init__(self, text: str, languages: set[str]) -> None:
        self._text = UUID.sub(lambda found: "x" * len(found[0]), text) if "-" in text else text
        self._languages = languages
        self._reading = NumbersReading()
        self._parts: list[NumberPart] = []
        """The parts of the number in progress."""
        self._gap = Gap.CLOSE
        self._named = False
        """The last word that is no filler announces another kind of number."""
        self._after = False
        """The position is directly behind a number."""
        self._others = 0
        """There were words since then that are no fillers."""
        self._close = 0
        """Digits of the numbers of which the next one may be a part."""
        self._spoken = False
        """The last number was said in words, at least in part."""

    def read(self) -> NumbersReading:
        for found in TOKEN.finditer(self._text):
            group = found.lastgroup
            if group == "word":
                self._word(found[0].lower(), *found.span())
            elif group == "digits":
                self._parts.append(NumberPart(None, _ascii(found[0]), found[0], *found.span()))
            else:
                self._written(group, *found.span())
        self._flush()
        self._reading.tail = self._gap
        return _without_loners(self._reading)

    def _word(self, word: str, start: int, end: int) -> None:
        kind, digits = self._meaning(word)
        if kind in NUMERIC and (self._parts or word != "oh" or self._text[end : end + 1] != ","):
            self._parts.append(NumberPart(kind, digits, word, start, end))
            return
        if self._parts and word in JOINS and self._parts[-1].kind in JOINS[word]:
            self._parts.append(NumberPart(None, "", word, start, end))
            return
        self._flush()
        if word in CARD:
            self._reading.card, self._named = True, False
        self._between(kind)
        self._after = False

    def _meaning(self, word: str) -> tuple[Kind | None, str]:
        for language, meaning in ABROAD.get(word, {}).items():
            if language in self._languages:
                return meaning
        return WORDS.get(word, (None, ""))

    def _between(self, kind: Kind | None) -> None:
        numbers = self._reading.numbers
        match kind:
            case Kind.FILLER | Kind.PERHAPS:
                return
            case Kind.COUNTED:
                if self._after and len(numbers[-1].digits.lstrip("0")) <= 1:
                    self._gap = max(self._gap, numbers.pop().gap)
                return
            case Kind.MEASURED if self._after:
                numbers[-1].known = True
                self._gap = Gap.APART
            case Kind.APART:
                self._gap = Gap.APART
            case _:
                self._gap = max(self._gap, Gap.LOOSE)
        self._named = kind is Kind.NAMED
        self._reading.wordy = True
        self._others += 2 if kind else 1

    def _written(self, group: str | None, start: int, end: int) -> None:
        self._flush()
        if group == "time":
            digits = _ascii("".join(filter(str.isdigit, self._text[start:end])))
            self._add(start, end, digits, soft=True)
            if self._reading.numbers[-1].gap is Gap.CLOSE:
                return
        self._gap = max(self._gap, Gap.APART if group == "apart" else Gap.LOOSE)
        self._after = False
        self._others += 2

    def _add(self, start: int, end: int, digits: str, spoken: bool = False, soft: bool = False) -> None:
        numbers, gap = self._reading.numbers, self._gap
        if self._named or (soft and not (self._after and len(numbers[-1].digits) < ALONE)):
            gap = max(gap, Gap.LOOSE)
        elif gap is Gap.LOOSE and self._others == 1 and numbers and not (soft or numbers[-1].known):
            # Amid digits a single other word is mostly one of them, which was misheard.
            if spoken or self._spoken:
                gap = Gap.CLOSE if self._close + len(digits) > 2 else gap
            elif min(self._close, len(digits)) > 2 and self._text[start - 1].isspace():
                gap = Gap.CLOSE
        self._close = len(digits) + (self._close if gap is Gap.CLOSE else 0)
        numbers.append(Number(start, end, digits, gap, self._named, soft))
        self._gap, self._named, self._after, self._others, self._spoken = Gap.CLOSE, False, True, 0, spoken

    def _flush(self) -> None:
        """End the number in progress, if there is one."""
        if not self._parts:
            return
        parts, self._parts = self._parts, []
        for run, is_number in _runs(parts):
            digits = _spelled(run) if is_number else ""
            if digits:
                self._add(run[0].start, run[-1].end, digits, any(part.kind for part in run))
                continue
            self._after = False
            if any(part.word not in ("oh", "o", "and", "y", "e", "et", "ones", "ohs") for part in run):
                self._gap = max(self._gap, Gap.LOOSE)
                self._named = False
                self._others += len(run)


def _languages(words: Sequence[str]) -> set[str]:
    """The languages that are certainly spoken: by one word that is a digit in them alone, or by two that may also be
    other words."""
    sure: set[str] = set()
    doubtful: dict[str, set[int]] = {}
    for at, word in enumerate(words):
        if word in EVIDENCE:
            sure |= EVIDENCE[word]
        elif word in ABROAD and word not in WORDS:
            for language in ABROAD[word]:
                doubtful.setdefault(language, set()).add(at)
    return sure | {
        language for language, at in doubtful.items() if any(each + 1 in at or each + 2 in at for each in at)
    }


def _ascii(digits: str) -> str:
    return digits if digits.isascii() else "".join(str(digit_of(each, 0)) for each in digits)


def _runs(parts: list[NumberPart]) -> list[tuple[list[NumberPart], bool]]:
    """The parts in sequences: words that are digits together, and words that only sound like digits apart."""
    if len(parts) == 1:
        return [(parts, parts[0].kind is not Kind.PERHAPS)]
    if all(part.kind is Kind.PERHAPS for part in parts):
        oh = all(part.digits == "0" for part in parts)
        return [(parts, len(parts) >= (2 if oh else 3))]
    runs: list[tuple[list[NumberPart], bool]] = []
    for index, part in enumerate(parts):
        digit = part.kind is not Kind.PERHAPS or part.digits == "0" or _is_amid(parts, index)
        if runs and runs[-1][1] == digit:
            runs[-1][0].append(part)
        else:
            runs.append(([part], digit))
    return runs


def _is_amid(parts: Sequence[NumberPart], index: int) -> bool:
    """Whether a part is between single digits: "one for one one"."""
    return 0 < index < len(parts) - 1 and all(
        part.kind in SPOKEN or (part.kind is None and len(part.digits) == 1)
        for part in (parts[index - 1], parts[index + 1])
    )


def _spelled(parts: Sequence[NumberPart]) -> str:
    said, at = [], 0
    while at < len(parts):
        part = parts[at]
        following = parts[at + 1] if at + 1 < len(parts) else None
        if part.kind is None:
            said.append(part.digits)
        elif part.kind is Kind.TIMES:
            if following and following.digits and following.kind is not Kind.TIMES:
                said.append(following.digits[0] * (int(part.digits) - 1))
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
    if at < len(parts) and parts[at].kind is Kind.THOUSAND:
        rest, at = _hundreds(parts, _rest(parts, at + 1), (Kind.THOUSAND,))
        value = (value or 1) * 1000 + rest
    return str(value), at


def _hundreds(parts: Sequence[NumberPart], at: int, before: Sequence[Kind] = ()) -> tuple[int, int]:
    value, at = _last_two(parts, at, before)
    if at < len(parts) and parts[at].kind is Kind.HUNDRED:
        rest, at = _last_two(parts, _rest(parts, at + 1), (Kind.HUNDRED, Kind.THOUSAND))
        value = (value or 1) * 100 + rest
    return value, at


def _last_two(parts: Sequence[NumberPart], at: int, before: Sequence[Kind]) -> tuple[int, int]:
    """As `_below_hundred`, but what stands before such a word begins another number: "one hundred ninety, seven
    thousand"."""
    value, end = _below_hundred(parts, at)
    if end == len(parts) or parts[end].kind not in before:
        return value, end
    return (value // 10 * 10, end - 1) if end > at + 1 else (0, at)


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
    following = parts[_past_join(parts, at + 1) :][:2]
    if part.word == "quatre" and following and following[0].word in ("vingt", "vingts"):
        at, value = at + 1, 80
        following = parts[_past_join(parts, at + 1) :][:2]
    if part.kind is Kind.TEN or value == 80:
        high = part.word in ("soixante", "quatre")
        if following and following[0].kind is Kind.UNIT and following[0].digits != "0":
            return value + int(following[0].digits), _past_join(parts, at + 1) + 1
        if high and following and following[0].kind is Kind.TEEN:
            rest, at = _below_hundred(parts, _past_join(parts, at + 1))
            return value + rest, at
    if part.word == "dix" and following and following[0].word in ("sept", "huit", "neuf"):
        return 10 + int(following[0].digits), at + 2
    return value, at + 1


def _without_loners(reading: NumbersReading) -> NumbersReading:
    """A digit amid other words ("no one", "for 4") belongs to no longer number."""
    numbers = reading.numbers
    for index in range(len(numbers) - 1, -1, -1):
        number = numbers[index]
        if len(number.digits) > 1 or number.gap is Gap.CLOSE:
            continue
        after = numbers[index + 1].gap if index + 1 < len(numbers) else reading.tail
        if after is Gap.CLOSE:
            continue
        del numbers[index]
        joined = max(number.gap, after)
        if index < len(numbers):
            numbers[index].gap = joined
        else:
            reading.tail = joined
    return reading

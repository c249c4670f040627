"""Finds the numbers in a text, written or said, as digits; and the kind of text between them. Pure.

"My card is 4111 11, uh, double one" has the numbers 411111 and 11, which may be one number: only a filler is between.
"""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from unicodedata import digit as digit_of

import regex

from voicepipe.redaction.cardinals import NumberPart, spelled
from voicepipe.redaction.number_words import (
    ABROAD,
    CARD,
    CARD_PHRASES,
    ENGLISH_PARTS,
    EVIDENCE,
    FOLDS,
    JOINS,
    LETTER_APOSTROPHE,
    NUMERIC,
    WORDS,
    Kind,
    large,
)


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
WORD = regex.compile(r"[^\W\d_]+")
APOSTROPHE = regex.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_])")
"""`regex`, since for `re` a vowel sign is no part of a word: one Hindi word amid digits would be several."""
ALONE = 9
"""Digits of a number that may be whole, such as a telephone number: a time of day behind it is no part of it."""
SPOKEN = (Kind.UNIT, Kind.PERHAPS, Kind.TIMES, Kind.PLURAL)
NEXT = regex.compile(r"[\s,-]*(?:([^\W\d_]+)|\d)")
"""The next word, or a digit."""
MARK = regex.compile(r"[,.;]")


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
        self._reading.card |= CARD_PHRASES.search(self._text)
        return _without_loners(self._reading)

    def _word(self, word: str, start: int, end: int) -> None:
        kind, digits = self._meaning(word)
        if kind in NUMERIC and (self._parts or word != "oh" or self._text[end : end + 1] != ","):
            self._parts.append(NumberPart(kind, digits, word, start, end, self._is_marked(word, start)))
            return
        if self._parts and self._joins(word, start, end):
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
        if word in WORDS:
            return WORDS[word]
        number, _ = large(word)
        return (Kind.LARGE, str(number)) if number else (None, "")

    def _is_marked(self, word: str, start: int) -> bool:
        """Whether a comma or a full stop ends the number before it. In English, "fifty, two" may be one."""
        last = self._parts[-1] if self._parts else None
        if last is None or last.word in ENGLISH_PARTS or word in ENGLISH_PARTS:
            return False
        return bool(MARK.search(self._text, last.end, start))

    def _joins(self, word: str, start: int, end: int) -> bool:
        """Whether a word is inside the number in progress, of which it then is a part."""
        last = self._parts[-1]
        if word in FOLDS and last.kind is Kind.UNIT and self._next(end) in (Kind.UNIT, Kind.FILLER):
            self._parts[-1] = last._replace(kind=Kind.TIMES, end=end)
            return True
        after = JOINS.get(word, {}).get(last.kind) if last.kind else None
        if after is None or (after and self._next(end) not in after):
            return False
        self._parts.append(NumberPart(None, "", word, start, end))
        return True

    def _next(self, end: int) -> Kind | None:
        """The kind of the next word."""
        found = NEXT.match(self._text, end)
        if not found:
            return None
        return self._meaning(found[1].lower())[0] if found[1] else Kind.UNIT

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
            digits = spelled(run) if is_number else ""
            if digits:
                self._add(run[0].start, run[-1].end, digits, any(part.kind for part in run))
                continue
            self._after = False
            if any(part.word not in JOINS and part.word not in ("oh", "o", "ones", "ohs") for part in run):
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
            for language, (kind, _) in ABROAD[word].items():
                if kind in NUMERIC:
                    doubtful.setdefault(language, set()).add(at)
        elif word not in WORDS and (language := large(word)[1]):
            sure.add(language)
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

"""The meaning of words in finding digits, in all languages that have a file of their number words
(`languages/*/digits.toml`)."""

import re
from collections.abc import Iterator
from enum import IntEnum, auto
from itertools import product

from voicepipe.languages.digits_file import DigitsFile, OneWordNumbers, by_value, digits_files


class Kind(IntEnum):
    """The role of a word in finding digits."""

    UNIT = auto()
    """0 to 9."""
    TEEN = auto()
    """Two digits in one word: "eleven", "einundvierzig"."""
    TEN = auto()
    """ "twenty", "thirty": a unit may follow."""
    HUNDRED = auto()
    THOUSAND = auto()
    LARGE = auto()
    """A hundred or more in one word: "quinientos", "viertausend". What it ends with noughts for may follow."""
    TIMES = auto()
    """"double": the next digit counts so often."""
    PLURAL = auto()
    """"ones" in "four ones": the digit counts so often."""
    PERHAPS = auto()
    """"oh", "for": a digit only beside digits."""
    FILLER = auto()
    """May be between the digits of one number."""
    COUNTED = auto()
    """ "digits", "moment": a single digit before it belongs to no number."""
    NAMED = auto()
    """"phone", "booking": the number behind it is mostly of that kind."""
    MEASURED = auto()
    """"people", "euros": the number before it ends there, and its kind is known."""
    PLAIN = auto()
    """"at", "until": neither a filler nor a misheard digit."""
    APART = auto()
    """ "or": what follows is another number."""


LETTER_APOSTROPHE = "ʼ"
"""Replaces the apostrophe of "it's" here, since it is a letter."""
Word = tuple[Kind, str]
"""A word's kind, and its digits."""
DIGIT_KINDS = (Kind.UNIT, Kind.TEEN, Kind.TEN, Kind.LARGE)
NUMERIC = frozenset((*DIGIT_KINDS, Kind.HUNDRED, Kind.THOUSAND, Kind.TIMES, Kind.PLURAL, Kind.PERHAPS))
LONG_WORD = 7
"""Letters from which on a word may be a large number: "mille" and the like are known as they are."""

FILES = digits_files()
ENGLISH = FILES["en"]
UNITS = {tag: " ".join(words[0] for words in by_value(file.units)) for tag, file in FILES.items()}
PERHAPS = ENGLISH.perhaps
ENGLISH_PARTS = frozenset(f"{ENGLISH.tens} {ENGLISH.hundred} {ENGLISH.thousand}".split())
"""Words between which a comma may be inside a number: "fifty, two"."""

WORDS: dict[str, Word] = {}
"""The meaning of words in every language."""
ABROAD: dict[str, dict[str, Word]] = {}
"""The meaning, by language, of words that mean something else in another one."""
EVIDENCE: dict[str, set[str]] = {}
"""Words that are evidence of the languages in which they occur."""
JOINS: dict[str, dict[Kind, frozenset[Kind]]] = {}
"""Words inside a number, by the kind before them: the kinds of which one must follow ("one hundred and eleven",
"treinta y uno", "doppelt die fünf"); empty: whatever follows."""
CARD: set[str] = set()
"""Words that indicate a card number, before or after them."""

FOLDS = frozenset(word for file in FILES.values() for word in file.fold.split())
""" "fois" in "trois fois cinq"."""
BEFORE_TENS = frozenset(word for file in FILES.values() for word in file.joins_units.split())
""" "und" in "fünf und vierzig"."""
TENS_ALONE = frozenset(
    word for file in FILES.values() if file.one_word for words in by_value(file.tens) for word in words
)  # fmt: skip
""" "dreißig": 35 is one word, so that "dreißig fünf" is 305; in Spanish, "y" would be between."""
TENS_WITH_TEENS = frozenset(word for file in FILES.values() for word in file.tens_with_teens.split())
""" "soixante" in "soixante-douze"."""
TEN_WITH_UNITS = frozenset(word for file in FILES.values() for word in file.ten_with_units.split())
""" "dix" in "dix-sept"."""
EIGHTY = {
    word: frozenset(scores)
    for file in FILES.values() if file.eighty
    for fours, scores in (by_value(file.eighty),) for word in fours
}  # fmt: skip
""" "quatre-vingt": the second word, by the first."""


class _PhrasesSaid:
    """Whether one of some patterns, which are in small letters, is in a text. So it takes a third of the time that it
    would regardless of case."""

    def __init__(self, patterns: Iterator[str]) -> None:
        self._pattern = re.compile(rf"\b(?:{'|'.join(dict.fromkeys(patterns))})\b")

    def search(self, text: str) -> bool:
        return bool(self._pattern.search(text.lower()))


ASKED = _PhrasesSaid(pattern for file in FILES.values() for pattern in file.asks_other)
"""Words of the agent after which the next numbers are no part of a card's."""
CODES = _PhrasesSaid(pattern for file in FILES.values() for pattern in file.codes)
"""Words that announce a card's expiry date or its code."""
CARD_PHRASES = _PhrasesSaid(pattern for file in FILES.values() for pattern in file.card_phrases)
"""What indicates a card number in several words."""


class _OneWord:
    """The numbers that a language writes as one word."""

    def __init__(self, file: DigitsFile, rules: OneWordNumbers) -> None:
        self.below_hundred = dict(_below_hundred(rules, rules.tens or file.tens))
        """Only those of two words in one."""
        self._hundred, self._thousands, self._inside = rules.hundred, rules.thousand.split(), rules.inside.split("/")
        self._small = self.below_hundred | dict(_numbered(file.teens, 10, 1)) | dict(_numbered(file.tens, 20, 10))
        ones = [(word, value) for word, value in _numbered(f"{file.units}", 0, 1) if value]
        self._small |= dict(ones) | {word: value for word, value in _numbered(rules.units, 1, 1) if word[-1] == "é"}

    def value(self, word: str) -> int:
        """The number that a word is, if it has hundreds or thousands; otherwise 0."""
        if not self._hundred:
            return 0
        for thousand in self._thousands:
            before, found, after = word.partition(thousand)
            if found:
                many, rest = self._hundreds(before, 1), self._hundreds(after, 0)
                return many * 1000 + rest if many is not None and rest is not None else 0
        return (self._hundreds(word, 0) or 0) if self._hundred in word else 0

    def _hundreds(self, word: str, empty: int) -> int | None:
        """A number below a thousand, or below 10,000 as in "neunzehnhundert". None: it is none. `empty`: of no word."""
        if not word:
            return empty
        before, found, after = word.partition(self._hundred)
        if not found:
            return self._tens(word)
        many, rest = self._small.get(before) if before else 1, self._tens(after, self._hundred[-1]) if after else 0
        return many * 100 + rest if many is not None and rest is not None else None

    def _tens(self, word: str, elided: str = "") -> int | None:
        """`elided`: the letter before it, which it may share: "cent(o)ottanta"."""
        for inside in ("", *self._inside):
            if word.startswith(inside) and (value := self._small.get(word[len(inside) :])) is not None:
                return value
        return self._small.get(elided + word) if elided else None


def _below_hundred(rules: OneWordNumbers, tens: str) -> Iterator[tuple[str, int]]:
    pairs = product(_numbered(tens, 20, 10), _numbered(rules.units, 1, 1))
    for (ten, high), (unit, low) in pairs:
        yield (unit + ten if rules.unit_first else ten + unit), high + low


def _numbered(words: str, first: int, step: int) -> Iterator[tuple[str, int]]:
    for index, every in enumerate(by_value(words)):
        for word in every:
            yield word, first + step * index


ONE_WORD = {tag: _OneWord(file, file.one_word) for tag, file in FILES.items() if file.one_word}


def large(word: str) -> tuple[int, str]:
    """The number above a hundred that is one word, and its language; 0: it is none."""
    if len(word) >= LONG_WORD:
        for tag, numbers in ONE_WORD.items():
            if value := numbers.value(word):
                return value, tag
    return 0, ""


def _digit_words(tag: str, file: DigitsFile) -> Iterator[tuple[str, Word]]:
    for kind, words, first, step in (
        (Kind.TEEN, file.teens, 10, 1),
        (Kind.LARGE, file.hundreds, 100, 100),
        (Kind.TEN, file.tens, 20, 10),
        (Kind.UNIT, file.units, 0, 1),
    ):
        for word, value in _numbered(words, first, step):
            yield word, (kind, str(value))
    if tag in ONE_WORD:
        for word, value in ONE_WORD[tag].below_hundred.items():
            yield word, (Kind.TEEN, str(value))


def _meanings(tag: str, file: DigitsFile) -> dict[str, Word]:
    """What the words of a language mean; of two meanings, the later one."""
    known: dict[str, Word] = {}
    for kind, words in (
        (Kind.PLAIN, file.plain),
        (Kind.FILLER, file.fillers),
        (Kind.MEASURED, file.measured),
        (Kind.NAMED, file.named),
        (Kind.COUNTED, file.counted),
        (Kind.APART, file.apart),
        (Kind.HUNDRED, file.hundred),
        (Kind.THOUSAND, file.thousand),
    ):
        known.update(dict.fromkeys(words.replace("'", LETTER_APOSTROPHE).split(), (kind, "")))
    known.update({word: (Kind.PERHAPS, digit) for word, digit in file.perhaps.items()})
    known.update({word: (Kind.TIMES, str(times)) for word, times in file.times.items()})
    known.update(_digit_words(tag, file))
    known.update({word: (Kind.PLURAL, str(digit)) for word, digit in _numbered(file.plurals, 0, 1)})
    return known


def _learn(tag: str, file: DigitsFile) -> None:
    """English comes first: its meaning of a word is the usual one, and of two other languages with two meanings each
    has its own."""
    ambiguous, no_evidence = set(file.ambiguous.split()), set(file.no_evidence.split())
    for word, meaning in _meanings(tag, file).items():
        usual = WORDS.get(word)
        if word in ambiguous or (usual and usual != meaning):
            ABROAD.setdefault(word, {})[tag] = meaning
            continue
        if tag != "en" and meaning[0] in DIGIT_KINDS and not (word in no_evidence or word in ENGLISH.units.split()):
            EVIDENCE.setdefault(word, set()).add(tag)
        WORDS[word] = meaning


def _join(words: str, *between: tuple[Kind, tuple[Kind, ...]]) -> None:
    for word in words.split():
        for before, after in between:
            known = JOINS.setdefault(word, {})
            known[before] = known.get(before, frozenset()) | frozenset(after)


def _learn_joins(file: DigitsFile) -> None:
    small = (Kind.UNIT, Kind.TEEN, Kind.TEN)
    if file is ENGLISH:
        _join(file.joins_hundreds, (Kind.HUNDRED, ()), (Kind.THOUSAND, ()))
    else:
        large_ones = (*small, Kind.LARGE)
        above = [(kind, large_ones) for kind in (Kind.HUNDRED, Kind.THOUSAND, Kind.LARGE)]
        _join(file.joins_hundreds, *above)
    _join(file.joins_tens, (Kind.TEN, (Kind.UNIT, Kind.TEEN)))
    _join(file.joins_units, (Kind.UNIT, (Kind.TEN,)))
    _join(file.before_counted, (Kind.TIMES, small))


for _tag, _file in FILES.items():
    _learn(_tag, _file)
    _learn_joins(_file)
    CARD.update(_file.card.split())
CARD.update([f"{word}{LETTER_APOSTROPHE}s" for word in CARD])

"""How a language says numbers: what its `forms.py` tells the forms that languages share (`spoken_forms.py`)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from voicepipe.languages import number_words
from voicepipe.languages.written_form import CURRENCY, DIGITS

_CODES = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥"}
_SPACES = "\u00a0\u2009\u202f"
YEAR = "(?:1[0-9]{3}|20[0-9]{2})"
_NOUN = re.compile(r"[ \u00a0]([^\W\d_]+)")


class Money(NamedTuple):
    """The names of a currency, and of its hundredth, for one and for more."""

    one: str
    many: str
    cent: str = ""
    cents: str = ""


class Amount(NamedTuple):
    """A number as it is written, in digits."""

    whole: str
    fraction: str


@dataclass(frozen=True, kw_only=True)
class NumberForms:
    """How one language writes numbers and says them. A callable here is pure and never raises."""

    tag: str
    groups: str = "." + _SPACES + "'’"
    """What parts thousands."""
    comma: str
    """Said for the sign before the fraction, as are those below for theirs."""
    point: str
    minus: str
    plus: str
    percent: str
    permille: str
    and_: str
    at: str
    slash: str
    dash: str
    underscore: str
    times: str
    equals: str
    to: Callable[[str, str, str], str]
    """(text before it, low, high) -> what is said for a range."""
    counted: Callable[[int, str, str], str]
    """(number, text before it, the noun behind it or "") -> the number in the noun's gender."""
    fraction: Callable[[str], str]
    """The digits behind the comma -> their words."""
    year: Callable[[int], str]
    dated: Callable[[str, int, str], str]
    """(text before it, day, the month's name) -> the date without its year."""
    before_year: str
    """Between month and year: " de "."""
    day_marks: str
    """A pattern of what stands behind a day that is written with its month: "." or "er"."""
    date_context: str
    """A pattern of words before a date: "14/07" is a day there, not a fraction."""
    clock: Callable[[int, int, str], str]
    """(hour, minute, what is written behind it or "") -> the time of day."""
    clock_marks: str
    """A pattern of that: "Uhr"."""
    clock_context: str
    """A pattern of words before a time: "13.30" is one there, not a number."""
    hours_alone: bool = False
    """Whether 9 h is said as a time and as a length of time alike."""
    span: Callable[[str, str, str], str] = lambda before, first, last: ""
    """(text before it, first time, last time) -> what is said for a range of times; empty: as any range."""
    money: Mapping[str, Money]
    """By its sign, or its ISO 4217 code where it has none."""
    price: Callable[[str, str], str]
    """("zwölf Euro", "fünfzig") -> "zwölf Euro fünfzig"."""
    scales: Mapping[str, tuple[str, str]]
    """Mio. -> one of them, more of them."""
    of: str = ""
    """Between millions and what they are of: "d'", "de "."""
    singular_below_two: bool = False
    """Whether 0 and 1,5 are singular, as in French."""
    metres: str
    """Between metres and centimetres: 1,80 m is "ein Meter achtzig"."""
    units: Mapping[str, tuple[str, str]]
    """km -> one of them, more of them. There are "m" and "s"."""
    unit_in: Callable[[str, str], str] = lambda before, name: name
    """(text before the number, a unit for more than one) -> the unit in its case."""
    per: Mapping[str, str]
    """Behind a price and a "/": "Monat" -> "pro Monat"."""
    fractions: Mapping[str, str]
    """1/2 -> einhalb."""
    mixed: str
    """"{whole} et {part}": 2 1/2."""
    multiple: Callable[[int], str]
    """2x -> zweimal."""
    dialled: Callable[[str], str]
    """A group of a telephone number -> its words."""
    spaced_numbers: bool = True
    """Whether "1 250" is one number."""
    code_context: str
    """A pattern of words before a number of four digits and more that is said one by one: "code"."""
    phone_context: str
    """A pattern of words before a short number that is dialled."""
    short_number: Callable[[str], str]
    """112 -> as it is said there."""

    def cardinal(self, number: int) -> str:
        return number_words.cardinal(number, self.tag)

    def each(self, digits: str) -> str:
        """Digit by digit."""
        return number_words.digits(digits, self.tag)

    def whole(self, digits: str, before: str = "", noun: str = "") -> str:
        """The words of a whole number without signs; of one that is too long, or no number (007), its digits."""
        if len(digits) > number_words.LONGEST_NUMBER or (digits[0] == "0" and len(digits) > 1):
            return self.each(digits)
        return self.counted(int(digits), before, noun)

    @cached_property
    def grouped(self) -> str:
        """A pattern of a number whose thousands are parted, each time by the same sign."""
        signs = self.groups + (" " if self.spaced_numbers else "")
        return (
            "(?:"
            + "|".join(rf"[1-9][0-9]{{0,2}}(?:{re.escape(sign)}[0-9]{{3}}){{1,4}}(?![0-9])" for sign in signs)
            + ")"
        )

    @cached_property
    def number(self) -> str:
        """A pattern of a number, with its fraction."""
        return rf"(?:{self.grouped}|[0-9]{{1,15}}(?![0-9]))(?:,[0-9]{{1,15}}(?![0-9]))?"

    @cached_property
    def sum(self) -> str:
        """A pattern of a number of money, which may also be written as in English."""
        cents = r"(?:[.,][0-9]{2}(?![0-9])|,[0-9]{1,15}(?![0-9]|[.][0-9])|,[–—-]{1,2})?"
        english = r"[1-9][0-9]{0,2}(?:,[0-9]{3}){1,4}(?![0-9])(?:[.][0-9]{2}(?![0-9]))?"
        return rf"(?:{english}|(?:{self.grouped}|[0-9]{{1,15}}(?![0-9])){cents})"

    @cached_property
    def currencies(self) -> dict[str, Money]:
        """By sign and code."""
        return {**self.money, **{code: self.money[sign] for code, sign in _CODES.items()}}

    @cached_property
    def signs(self) -> str:
        """A pattern of the signs and codes of money."""
        names = sorted(self.currencies, key=len, reverse=True)
        return rf"(?:{'|'.join(map(re.escape, names))}|[{CURRENCY}])"

    def is_one(self, written: str) -> bool:
        """Whether what is counted stands in the singular."""
        whole, fraction = self.amount(written)
        return whole == "1" and not fraction or (self.singular_below_two and whole in ("0", "1"))

    def amount(self, written: str) -> Amount:
        """The digits of a number: 1.250,50 -> 1250, 50."""
        whole, _, fraction = written.partition(",")
        return Amount(
            "".join(each for each in whole if each in DIGITS), "".join(each for each in fraction if each in DIGITS)
        )

    def said(self, written: str, before: str = "", noun: str = "") -> str:
        """The words of what `number` matches."""
        amount = self.amount(written)
        if amount.fraction:
            return f"{self.whole(amount.whole)} {self.comma} {self.fraction(amount.fraction)}"
        return self.whole(amount.whole, before, noun)


def noun_behind(found: re.Match[str]) -> str:
    """The word behind the form; empty: there is none right behind it."""
    behind = _NOUN.match(found.string, found.end())
    return behind[1] if behind else ""

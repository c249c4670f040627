"""Numbers and names in words, of any language that the libraries know: num2words (LGPL-2.1) for numbers, Babel, which
has Unicode's CLDR, for names of months, units and currencies. Both are loaded with the first word that is asked for.

`tag`: a BCP 47 language alone, such as "de".
"""

import re
from functools import cache, lru_cache

LONGEST_NUMBER = 15
"""Digits. Nobody hears what a longer number is: its digits are said one by one."""
_MENDED = {
    "de": (("einstausend", "eintausend"),),
    "fr": (("vingtsième", "vingtième"), ("centsième", "centième")),
    "it": (("dicotto", "diciotto"), (r"(?<=\w)tre$", "tré"), (" e ", " ")),
}
"""What num2words 0.5.14 gets wrong, as patterns: 101000, 80e, 118, 123, 1000001."""
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


@lru_cache(4096)
def cardinal(number: int, tag: str) -> str:
    """21 -> einundzwanzig."""
    return _said(number, tag, "cardinal")


@lru_cache(512)
def ordinal(number: int, tag: str) -> str:
    """21 -> einundzwanzigste."""
    return _said(number, tag, "ordinal")


@lru_cache(512)
def year(number: int, tag: str) -> str:
    """1998 -> neunzehnhundertachtundneunzig."""
    return _said(number, tag, "year")


def _said(number: int, tag: str, kind: str) -> str:
    from num2words import num2words

    said = str(num2words(number, lang=tag, to=kind))
    for wrong, right in _MENDED.get(tag, ()):
        said = re.sub(wrong, right, said)
    return said


def digits(text: str, tag: str) -> str:
    """Each digit by itself."""
    return " ".join(cardinal(int(digit), tag) for digit in text if digit.isdecimal())


def roman(text: str) -> int:
    """XXI -> 21; 0: it is no number."""
    if not re.fullmatch("C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})", text):
        return 0
    values = [_ROMAN[letter] for letter in text]
    return sum(-one if one < following else one for one, following in zip(values, [*values[1:], 0], strict=True))


@cache
def months(tag: str) -> tuple[str, ...]:
    """January to December."""
    from babel import Locale

    return tuple(Locale(tag).months["format"]["wide"][number] for number in range(1, 13))


@cache
def months_by_name(tag: str) -> dict[str, int]:
    """The number of each month (1 to 12) by its names, in small letters and without points: "jan", "januar"."""
    from babel import Locale

    named = Locale(tag).months
    return {
        names[number].lower().rstrip("."): number
        for usage in ("format", "stand-alone")
        for names in (named[usage]["wide"], named[usage]["abbreviated"])
        for number in range(1, 13)
    }


@cache
def unit_name(unit: str, tag: str, one: bool) -> str:
    """length-kilometer -> Kilometer, for one or for two of them. Raises babel.units.UnknownUnitError."""
    from babel.units import format_unit

    return format_unit(1 if one else 2, unit, "long", locale=tag).lstrip("12 \u00a0\u202f").replace("’", "'")


@cache
def currency_name(code: str, tag: str, one: bool) -> str:
    """SEK -> schwedische Krone, for one or for two of them; the code itself where there is no such currency."""
    from babel.numbers import get_currency_name

    return get_currency_name(code, 1 if one else 2, locale=tag)

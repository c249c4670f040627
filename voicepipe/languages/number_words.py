"""Numbers and months in words, of any language that the libraries know: num2words (LGPL-2.1) for numbers, arrow for
months. Both are loaded with the first word that is asked for.

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
    from arrow.locales import get_locale

    return tuple(get_locale(tag).month_names[1:])


@cache
def months_by_name(tag: str) -> dict[str, int]:
    """The number of each month (1 to 12) by its names, in small letters: "jan", "januar"."""
    from arrow.locales import get_locale

    locale = get_locale(tag)
    every = (*locale.month_names, *locale.month_abbreviations)
    return {name.lower(): at % 13 for at, name in enumerate(every) if name}

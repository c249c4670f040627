"""Which characters of a text reach the voice: all that is written in any script, and no pictures.

What deletes pictures must not delete what it does not know: vowel signs are marks (Unicode's category M), as are the
selectors and the keycap of emoji. So letters, marks, digits and punctuation are what Unicode says they are, and only
what is known to be drawn or invisible goes.
"""

import unicodedata

import regex

from voicepipe.base.words import UNSPACED

_FOR_EMOJI = r"\uFE0E\uFE0F\u20E3"
"""Marks that say how an emoji is drawn."""
_MARK = rf"[\p{{M}}--[{_FOR_EMOJI}]]"
_RUN = regex.compile(rf"(?V1){UNSPACED}[{UNSPACED}{_MARK}]*+|\p{{L}}[[\p{{L}}--{UNSPACED}]{_MARK}]*+")
"""Letters of a script with spaces are a word by themselves beside those of one without: "请看https://..."."""
_PICTURE = regex.compile(
    r"(?V1)(?:[[\p{So}〰〽]--[°№]]|(?=\p{Extended_Pictographic})(?:[\p{S}\p{Cn}]|\p{L}\uFE0F)"
    r"|[\p{Sm}&&[\p{Block=Arrows}\p{Block=Supplemental_Arrows_A}\p{Block=Supplemental_Arrows_B}"
    r"\p{Block=Miscellaneous_Symbols_And_Arrows}\p{Block=Geometric_Shapes}\p{Block=Miscellaneous_Technical}]])\p{M}*+"
)
_DRAWN = regex.compile(r"\p{Extended_Pictographic}")
_UNHEARD = regex.compile(rf"[\p{{C}}\p{{Sk}}{_FOR_EMOJI}]")
_JOINER = regex.compile(
    r"(?V1)(?<=[\p{L}--[\p{Latin}\p{Greek}\p{Cyrillic}\p{Armenian}\p{Georgian}\p{Hebrew}\p{Han}\p{Hiragana}"
    r"\p{Katakana}\p{Hangul}\p{Common}]]\p{M}*)[\u200C\u200D]"
)
"""The zero-width joiner and non-joiner, behind a letter that looks and sometimes sounds different for them."""
_APOSTROPHE = regex.compile(r"(?<=[\p{L}\p{M}])´(?=\p{L})")


def spoken(text: str, at: int) -> tuple[int, str]:
    """The end of the run of letters, the picture or the single character at `at`, and what of it is given to the
    voice."""
    if picture := _PICTURE.match(text, at):
        # "5㎏" is said "5 kg".
        apart = " " if at and text[at - 1].isdigit() else ""
        return picture.end(), apart + _letters(text[at])
    if run := _RUN.match(text, at):
        return run.end(), run.group()
    if _APOSTROPHE.match(text, at):
        return at + 1, "'"
    unheard = _UNHEARD.match(text, at) and not _JOINER.match(text, at)
    return at + 1, "" if unheard else text[at]


def _letters(sign: str) -> str:
    """The letters that a sign stands for: "℃" is °C, "㎏" is kg. An emoji stands for none."""
    meant = unicodedata.normalize("NFKC", sign)
    return "" if meant == sign or _DRAWN.match(sign) else meant


def ends_in_word(text: str) -> bool:
    """Whether its last character is a letter, a mark or a digit."""
    return bool(text) and unicodedata.category(text[-1])[0] in "LMN"

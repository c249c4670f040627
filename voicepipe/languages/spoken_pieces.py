"""Written text -> the words that are said for it, by the written forms of its language. Pure.

Each language is a table of (pattern, function); the first pattern that fits at a position is taken.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import regex

from voicepipe.base.words import UNSPACED
from voicepipe.languages.pronunciation import ENDS, NONE, Pronunciations
from voicepipe.languages.written_form import Forms

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


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of written text that begins and ends at a word, with the space after it, and what is said for it."""

    written: str
    spoken: str


def together(parts: Iterable[Piece]) -> str:
    """All that is said for the pieces, as one text."""
    return " ".join(part.spoken for part in parts if part.spoken)


def pieces_by(forms: Forms, text: str, said_so: Pronunciations = NONE) -> list[Piece]:
    """The pieces of `text`, in order; their written parts joined are `text` itself. `said_so`: the words of which the
    agent says how they are said, before any form of the language."""
    result: list[Piece] = []
    said: list[_SpokenPart] = []
    start = at = 0
    while at < len(text):
        if text[at].isspace():
            gap, at = at, _next_word(text, at)
            result.append(Piece(text[start:at], _ended(_spaced(said), text[gap:at], at < len(text))))
            start = at
            said.clear()
            continue
        at, part = _spoken(forms, said_so, text, at)
        said.append(part)
    return [*result, Piece(text[start:], _spaced(said))] if start < len(text) else result


def _next_word(text: str, at: int) -> int:
    """The position at which the space at `at` ends; `at` itself where there is none."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


@dataclass(frozen=True, slots=True)
class _SpokenPart:
    """What is said for a part of a written word. `is_form`: a form of the language's table matched it."""

    words: str
    is_form: bool


def _spaced(said: list[_SpokenPart]) -> str:
    """What is said for a form stands apart from its neighbours: "5b" is "five b"; markup in a word parts nothing."""
    text, after_form = "", False
    for part in said:
        if part.words:
            apart = (part.is_form or after_form) and ends_in_word(text) and part.words[0].isalnum()
            text += f" {part.words}" if apart else part.words
            after_form = part.is_form
    return " ".join(text.split())


def _spoken(forms: Forms, said_so: Pronunciations, text: str, at: int) -> tuple[int, _SpokenPart]:
    """The end of the form at `at` and what is said for it; else of one plain run of letters, or of one sign."""
    if own := said_so.find(text, at):
        return own[0], _SpokenPart(own[1], is_form=False)
    if found := forms.find(text, at):
        end, said = found
        # A form that takes the space after its words ("- ") would hide a word's end.
        return at + len(text[at:end].rstrip()), _SpokenPart(said, is_form=True)
    # A run of letters goes as a whole: rules for numbers and marks begin at the edge of a word.
    end, words = _plain(text, at)
    if words != text[at:end] and any(map(str.isdigit, words)):  # "㏠" is "1日", in which the number is a form.
        words = together(pieces_by(forms, words))
    return end, _SpokenPart(words, is_form=False)


def _ended(said: str, gap: str, more: bool) -> str:
    """A line's end is heard as a pause: "one\\ntwo" is said "one, two"."""
    if more and "\n" in gap and ends_in_word(said):
        return said + ("." if gap.count("\n") > 1 else ",")
    return said


def _plain(text: str, at: int) -> tuple[int, str]:
    """The end of the run of letters, the picture or the single character at `at`, and what of it is given to the
    voice: all that is written in any script, and no pictures.

    What deletes pictures must not delete what it does not know: vowel signs are marks (Unicode's category M), as are
    the selectors and the keycap of emoji. So letters, marks, digits and punctuation are what Unicode says they are, and
    only what is known to be drawn or invisible goes.
    """
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
    """Whether its last character is a letter, a mark or a digit, or ends a word of IPA."""
    return bool(text) and (unicodedata.category(text[-1])[0] in "LMN" or text[-1] == ENDS)

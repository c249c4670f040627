"""The marks that end sentences and clauses, in every script.

They are Unicode's (UAX #44): Sentence_Terminal ends a sentence, the rest of Terminal_Punctuation ends a clause.
"""

from unicodedata import name

import regex

WORD_MARKS = "\u0f0b\u1361"
"""Marks between words, as spaces are: the Tibetan tsheg and the Ethiopic wordspace."""
AMBIGUOUS = r".!?,:;\u037E\u0387\u2024\u203C\u203D\u2047\u2048\u2049\uFE52\uFF0E"
"""Marks that are also in numbers, in addresses and behind abbreviations: their meaning depends on what follows."""
CLEAR = rf"[[\p{{Terminal_Punctuation}}\uFF64]--[{AMBIGUOUS}{WORD_MARKS}]]"
"""The other marks, which end a sentence or a clause everywhere, except between two digits."""

_CLAUSE = rf"[{CLEAR}--\p{{Sentence_Terminal}}]"
_CLOSING = r"[\p{Pe}\p{Pf}\p{So}\p{Sk}\p{M}\p{Cf}\"'”’*_`]"
"""Quotation marks, brackets, signs of markdown and pictures that belong to the mark before them."""

SENTENCE_END = regex.compile(rf"(?V1)[\p{{Sentence_Terminal}}…]{_CLOSING}*+$")
CLAUSE_END = regex.compile(rf"(?V1)(?:[,;:–—]|{_CLAUSE}){_CLOSING}*+$|^[–—-]$")
CLEAR_END = regex.compile(rf"(?V1)(?<!\p{{Nd}}){CLEAR}{_CLOSING}*+$")

_MARK = regex.compile(rf"(?V1)(?:{CLEAR}|\uFF0E)")


def in_latin(text: str) -> str:
    """`text` with the Latin mark for each of another script, for models that know no others."""
    return text if text.isascii() else _MARK.sub(lambda found: f"{latin(found[0])} ", text).rstrip()


def latin(mark: str) -> str:
    """The mark of Latin script with the same pause; any other character is returned unchanged."""
    if mark.isascii() or not _MARK.fullmatch(mark):
        return mark
    called = name(mark, "")
    for part, its in (("QUESTION", "?"), ("EXCLAMATION", "!"), ("SEMICOLON", ";"), ("COLON", ":")):
        if part in called:
            return its
    return "." if SENTENCE_END.match(mark) else ","

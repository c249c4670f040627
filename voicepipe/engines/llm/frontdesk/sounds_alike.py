"""How words sound, roughly: what a recogniser mishears sounds alike. English spelling, by a table of replacements."""

import re
from functools import lru_cache

from voicepipe.languages.en.as_said import as_said

CONTRACTIONS = (
    (r"\bcan't\b|\bcannot\b", "can not"),
    (r"\bwon't\b", "will not"),
    (r"\bshan't\b", "shall not"),
    (r"n't\b", " not"),
    (r"\blet's\b", "let us"),
    (r"\b(i)'m\b", r"\1 am"),
    (r"'re\b", " are"),
    (r"'ve\b", " have"),
    (r"'ll\b", " will"),
    (r"'d\b", " would"),
    (r"\b(what|that|it|he|she|who|where|when|how|there|here)'s\b", r"\1 is"),
    (r"'s\b", ""),
    (r"\bo'clock\b", "oclock"),
)

SPELLING = (
    (r"^[kgp]n", "n"),
    (r"^wr", "r"),
    (r"^ps|^x", "s"),
    (r"mb$", "m"),
    (r"tch|ch|sh|(?<=[aeiouny])tion?|ssi|cia", "S"),
    (r"ph", "f"),
    (r"ough(?!t)", "o"),
    (r"gh(?=t|$)", ""),
    (r"dg|j|g(?=[eiy])", "S"),
    (r"ck|q|c(?![eiy])|g", "k"),
    (r"x", "ks"),
    (r"[cz]", "s"),
    (r"th|d", "t"),
    (r"b", "p"),
    (r"v", "f"),
    (r"n", "m"),
    (r"(?<=[aeiou])[wy]|h|(?<=.)e$", ""),
    (r"[aeiouy]+", "a"),
    (r"(.)\1+", r"\1"),
)
"""Voiced and unvoiced, m and n are one sound, all vowels are one: a telephone blurs them first."""

_SPELLING = tuple((re.compile(pattern), into) for pattern, into in SPELLING)
_CONTRACTIONS = tuple((re.compile(pattern), into) for pattern, into in CONTRACTIONS)


@lru_cache(maxsize=256)
def words(text: str) -> tuple[str, ...]:
    """The words of `text` as they were said, contractions written out: "I'd like 2" -> i would like two.

    Kept, because each reply reads the conversation anew, and each text several times."""
    plain = as_said(text)
    for pattern, into in _CONTRACTIONS:
        plain = pattern.sub(into, plain)
    return tuple(re.findall(r"\d+(?::\d+)?|[^\W\d_]+(?:'[^\W\d_]+)?", plain))


@lru_cache(maxsize=20_000)
def sound(word: str) -> str:
    """The sounds of a word, a capital or small letter each; vowels are all "a"."""
    key = word
    for pattern, into in _SPELLING:
        key = pattern.sub(into, key)
    return key


def alike(one: str, other: str) -> float:
    """0..1: how alike two words sound; 1 for the same sounds."""
    return likeness(sound(one), sound(other))


@lru_cache(maxsize=20_000)
def likeness(a: str, b: str) -> float:
    """0..1: how alike two strings of sounds are, by the share that need not be edited."""
    shortest, longest = sorted((len(a), len(b)))
    # A caller's "word" may have 2,000 letters; nobody takes it for one that is half as long or less.
    return 1 - distance(a, b) / longest if longest < 2 * shortest else 0.0


def distance(a: str, b: str) -> int:
    """Levenshtein's edit distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]

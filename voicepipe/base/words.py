"""What a word is, in a text of any script.

Most scripts put spaces between words. In Chinese, Japanese, Thai, Lao, Khmer, Burmese and some others a word is one
*character*, as a reader sees it (a grapheme cluster, UAX #29): longer words take a dictionary for each language.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

import regex

from voicepipe.base.punctuation import CLEAR, WORD_MARKS

UNSPACED = (
    r"[[[\p{L}\p{Nl}]&&[\p{Lb=ID}\p{Lb=CJ}\p{Lb=NS}\p{Lb=SA}\p{Lb=AK}\p{Lb=AS}\p{Lb=AP}]]--[\p{Latin}\p{Hangul}]]"
)
"""Letters of scripts without spaces, by their classes in UAX #14 (line breaking)."""
_TRAILING = r"[\p{M}[[\p{Lb=CJ}\p{Lb=NS}]&&\p{L}]\u0E2F\u0E30\u0E32\u0E45\u0E46\u0EAF\u0EB0\u0EB2\u0EC6]"
"""Letters that begin no word: small kana, iteration marks, the vowels that Thai and Lao write behind a consonant."""
_CHARACTER = rf"(?:\p{{Logical_Order_Exception}}{{1,2}}+(?={UNSPACED})\X|(?={UNSPACED})\X)(?:(?={_TRAILING})\X)*+"
"""A character, with the vowel that Thai and Lao write before their consonant."""

_OPENING = r"[\p{Ps}\p{Pi}¿¡*_`~\"']"
_BEHIND = r"[[\p{P}\p{M}\p{Cf}\p{So}\p{Sk}]--[\p{Ps}\p{Pi}¿¡#&@\-]]"
WRITTEN = regex.compile(
    rf"(?V1){_OPENING}*+{_CHARACTER}{_BEHIND}*+"
    rf"|(?:(?!{_OPENING}{{0,8}}{UNSPACED})(?:[\S--[{CLEAR}{WORD_MARKS}]]|(?<=\p{{Nd}}){CLEAR}(?=\p{{Nd}})))++"
    rf"(?:[{CLEAR}{WORD_MARKS}]{_BEHIND}*+)?+"
    rf"|\S{_BEHIND}*+"
)
"""A written word, with its brackets and marks."""
_IS_UNSPACED = regex.compile(rf"(?V1){UNSPACED}")
_IS_SYLLABLE = regex.compile(r"(?V1)[\p{Lb=ID}\p{Lb=CJ}\p{Lb=NS}]")
_ENDS_UNSPACED = regex.compile(rf"(?V1){UNSPACED}\p{{M}}*+{_BEHIND}*+$")
_BEGINS_UNSPACED = regex.compile(rf"(?V1){_OPENING}*+{UNSPACED}")
_CLUSTER = regex.compile(r"\X")
LONGEST_CHARACTER = 32
"""The longest character with its marks."""

WORD = re.compile(r"\d+(?:[.:,-]\d+)*(?:st|nd|rd|th)?\b|[\w']+")
"""A word. A time, a price, a day ("21st") or a telephone number in digits is one word."""
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}_]--{UNSPACED}]"
_WORD = regex.compile(rf"(?V1)\d+(?:[.:,-]\d+)*(?:st|nd|rd|th)?(?!{_LETTER})|[{_LETTER}']++|{_CHARACTER}")
"""A word in any script."""
_ALIKE = {ord(sign): "'" for sign in "’‘ʼʻ＇´׳"} | {0xFF01 + at: chr(0x21 + at) for at in range(94)}
"""Apostrophes, and the full-width forms of ASCII."""
_UNHEARD = regex.compile(r"\p{Cf}+")


def plain(text: str) -> str:
    """A text without case and punctuation, which a recogniser may put differently the next time: "At 7:30, Mr. O’Hara?"
    is "at 7:30 mr o'hara"."""
    if text.isascii():
        return " ".join(WORD.findall(text.lower()))
    same = unicodedata.normalize("NFC", _UNHEARD.sub("", text).translate(_ALIKE).lower())
    return " ".join(_WORD.findall(same))


def written(text: str) -> Iterator[str]:
    """The words of `text` in order, each with the space behind it; joined they are `text` itself."""
    begin = 0
    for following in islice(WRITTEN.finditer(text), 1, None):
        yield text[begin : following.start()]
        begin = following.start()
    if text:
        yield text[begin:]


def count(text: str) -> int:
    """Roughly the number of words in `text`. For long texts: ten times as fast as splitting it."""
    return len(text.split()) + (0 if text.isascii() else len(_IS_UNSPACED.findall(text)))


def is_unspaced(word: str) -> bool:
    """Whether a character is of a script that puts no spaces between words."""
    return not word.isascii() and bool(_IS_UNSPACED.search(word))


def lasts(word: str) -> float:
    """How long a text takes to say, in English words: a syllable of Chinese or Japanese counts half of one, a character
    of other scripts without spaces, which is often a consonant alone, a third."""
    if not is_unspaced(word):
        return 1.0
    return 0.5 if _IS_SYLLABLE.search(word) else 1 / 3


def running(words: Iterable[str]) -> str:
    """Words as running text, with a space behind each where its script has spaces."""
    return "".join(word if word[-1:].isspace() or is_unspaced(word) else f"{word} " for word in words)


def joined(before: str, after: str) -> str:
    """Two consecutive texts, with a space between them where their script has spaces."""
    before, after = before.rstrip(), after.lstrip()
    if not before or not after:
        return (before or after).strip()
    together = _ENDS_UNSPACED.search(before) and _BEGINS_UNSPACED.match(after)
    return f"{before}{after}" if together else f"{before} {after}"


def cut_before(text: str, at: int) -> int:
    """The last position up to `at` at which `text` can be cut without separating a letter from its marks; `at` itself
    where there are too many of these."""
    since = max(0, at - LONGEST_CHARACTER)
    ends = (found.end() for found in _CLUSTER.finditer(text, since, at + LONGEST_CHARACTER))
    return max((end for end in takewhile(lambda end: end <= at, ends)), default=at)

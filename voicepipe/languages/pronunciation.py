"""Words that an agent's file says how to say: looked up in a written text, and replaced in what a voice is given.

A spelling is text like any other. IPA stands between two characters of Unicode's private use, which no text of people
reaches a voice with: `speakable` removes them.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import regex

from voicepipe.agent import Pronunciation

BEGINS, ENDS = "\ue000", "\ue001"
"""Around a word's IPA in a text for a voice that reads it."""
MARKED = re.compile(f"{BEGINS}([^{BEGINS}{ENDS}]*){ENDS}")
"""A word of IPA; splitting by it gives text and IPA in turn."""
VOWELS = "aeiouyæøœɐɑɒɔəɘɚɛɜɝɞɤɨɪɯɵɶʉʊʌʏɿᵻ"
CONSONANTS = "bcdfghjklmnpqrstvwxzßçðħŋɕɖɟɠɡɢɣɥɦɧɫɬɭɮɰɱɲɳɴɸɹɺɻɽɾʀʁʂʃʈʋʍʎʐʑʒʔʕʙʝʟʢʡβθχʣʤʥʦʧʨ"
STRESS = "ˈˌ"
LENGTH = "ːˑ"
SMALL = "ʰʲʷˠˤⁿˡʼ\u0303\u0329\u030d\u032f\u0325\u030a\u031a\u032a\u0361\u035c"
"""Modifier letters, and marks: nasal, syllabic, not syllabic, voiceless, unreleased, dental, tied."""
KNOWN = frozenset(VOWELS + CONSONANTS + STRESS + LENGTH + SMALL)
ALIKE = str.maketrans({":": "ː", "'": "ˈ", "’": "ˈ", ",": "ˌ", "g": "ɡ", ".": "", "‿": "", "\u0361": "", "\u035c": ""})
"""What is typed for a sign of the IPA; syllables' ends and ties say nothing to a voice."""
_STRESSED = re.compile(f"([{STRESS}])([^{VOWELS}{STRESS} ]*)(?=[{VOWELS}])")
_LETTER = r"[\p{L}\p{M}\p{N}_]"
_BEFORE, _BEHIND = rf"(?<!{_LETTER}['’]?)", rf"(?!{_LETTER}|['’]\p{{L}}\p{{L}}|@|\.\p{{L}})"
"""Where a word begins and ends: not inside a longer one ("O'Brien"), nor in an address ("ann@example.com")."""
_POSSESSIVE = regex.compile(r"['’]s(?!\p{L})")
_HISSING, _VOICELESS = "szʃʒʧʤɕʑʂʐ", "ptkfθcxχç"


def ipa_words(text: str) -> str:
    """IPA with single spaces, in the one form that voices are given: each stress stands before its vowel, as espeak-ng
    writes it."""
    return " ".join(_STRESSED.sub(r"\2\1", unicodedata.normalize("NFD", text).translate(ALIKE)).split())


def unknown_ipa(text: str) -> str:
    """Signs that are none of the IPA, in order; empty: all are."""
    return "".join(dict.fromkeys(sign for sign in ipa_words(text) if sign not in KNOWN and sign != " "))


def folded(word: str) -> str:
    """A word as it is looked up: without case, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", word).casefold().replace("’", "'").split())


@dataclass(frozen=True, slots=True)
class Pronunciations:
    """What is said for which words, by one kind of voice."""

    words: tuple[tuple[str, str, bool], ...] = ()
    """A word, what is said for it, and whether that is IPA."""

    @classmethod
    def of(cls, entries: Mapping[str, str | Pronunciation], *, ipa: bool) -> "Pronunciations":
        """The entries of `Agent.pronounce`, for a voice that reads `ipa` or does not: then an entry without a spelling
        changes nothing."""
        said = ((word, Pronunciation.of(entry)) for word, entry in entries.items())
        usable = ((word, each, bool(ipa and each.ipa)) for word, each in said)
        return cls(
            tuple(
                (folded(word), ipa_words(each.ipa) if by_ipa else each.spelling, by_ipa)
                for word, each, by_ipa in usable
                if by_ipa or each.spelling
            )
        )

    def find(self, text: str, at: int) -> tuple[int, str] | None:
        """The end of the word at `at`, and what is said for it; None: it is said as it is written."""
        if not self.words:
            return None
        pattern, said = _compiled(self)
        if not (found := pattern.match(text, at)):
            return None
        words, is_ipa = said[folded(found.group())]
        if not is_ipa:
            return found.end(), words
        end = found.end()
        if possessive := _POSSESSIVE.match(text, end):
            end, words = possessive.end(), words + _ending(words)
        return end, " ".join(f"{BEGINS}{word}{ENDS}" for word in words.split())


NONE = Pronunciations()


@lru_cache(256)
def _compiled(said: Pronunciations) -> tuple["regex.Pattern[str]", dict[str, tuple[str, bool]]]:
    longest = sorted((word for word, _, _ in said.words), key=len, reverse=True)
    written = "|".join(
        regex.escape(word, literal_spaces=True).replace(" ", r"\s+").replace("'", "['’]") for word in longest
    )
    pattern = regex.compile(rf"(?iV1){_BEFORE}(?:{written}){_BEHIND}")
    return pattern, {word: (words, is_ipa) for word, words, is_ipa in said.words}


def _ending(ipa: str) -> str:
    """How English says "'s" behind these sounds."""
    last = ipa.rstrip("".join((STRESS, LENGTH, SMALL)))[-1:]
    return "ɪz" if last in _HISSING else "s" if last in _VOICELESS else "z"

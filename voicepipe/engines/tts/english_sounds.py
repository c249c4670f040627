"""IPA in the symbols of two engines that have their own: hibari's, and espeak-ng's mnemonics. English alone: for sounds
that English does not have, the nearest that it has."""

from collections.abc import Iterator, Mapping

import regex

MISAKI = {
    "eɪ": "A", "aɪ": "I", "oʊ": "O", "əʊ": "O", "aʊ": "W", "ɔɪ": "Y", "tʃ": "ʧ", "dʒ": "ʤ", "ɜː": "ɜɹ", "ɜːɹ": "ɜɹ",
    "ɝ": "ɜɹ", "ɚ": "əɹ", "ɪə": "ɪɹ", "eə": "ɛɹ", "ʊə": "ʊɹ", "r": "ɹ", "ʁ": "ɹ", "ʀ": "ɹ", "ɾ": "ɹ", "ɻ": "ɹ", "ɫ":
    "l", "ɬ": "l", "ʎ": "lj", "ɲ": "nj", "x": "k", "χ": "k", "ç": "h", "ɦ": "h", "ɕ": "ʃ", "ʂ": "ʃ", "ʑ": "ʒ", "ʐ":
    "ʒ", "β": "b", "ɣ": "ɡ", "c": "k", "q": "k", "ɟ": "ɡ", "e": "ɛ", "o": "O", "a": "ɑ", "ɒ": "ɑ", "ɐ": "ʌ", "ɘ":
    "ə", "ɵ": "ə", "ɤ": "ʌ", "ɨ": "ɪ", "ʉ": "u", "ɯ": "u", "y": "u", "ʏ": "ʊ", "ø": "ɜ", "œ": "ɜ", "ɞ": "ɜ",
    "ɑ\u0303": "ɑn", "a\u0303": "ɑn", "ɛ\u0303": "æn", "œ\u0303": "ɜn", "ɔ\u0303": "ɔn", "o\u0303": "On", "ʔ": "",
    "ː": "", "ˑ": "",
    **{sign: sign for sign in "bdfhijklmnpstuvwzæðŋɑɔəɛɜɡɪɹʃʊʌʒθʣʤʥʦʧʨᵻˈˌ "},
}  # fmt: skip
"""Misaki's, which hibari and Kokoro were trained on: https://github.com/hexgrad/misaki/blob/main/EN_PHONES.md."""
MNEMONICS = {
    "eɪ": "eI", "aɪ": "aI", "oʊ": "oU", "əʊ": "oU", "aʊ": "aU", "ɔɪ": "OI", "tʃ": "tS", "dʒ": "dZ", "ʧ": "tS", "ʤ":
    "dZ", "iː": "i:", "uː": "u:", "ɑː": "A:", "ɔː": "O:", "ɜː": "3:", "ɝ": "3:", "ɚ": "3", "ɪə": "i@", "eə": "e@",
    "ʊə": "U@", "i": "i", "u": "u:", "ɑ": "A:", "ɔ": "O:", "ɜ": "3:", "ɪ": "I", "ɛ": "E", "e": "E", "æ": "a", "a":
    "A:", "ɒ": "0", "ʊ": "U", "ʌ": "V", "ɐ": "V", "ə": "@", "o": "oU", "y": "u:", "ø": "3:", "œ": "3:", "ɨ": "I",
    "ᵻ": "I", "ʉ": "u:", "ɯ": "u:", "ɑ\u0303": "A:n", "a\u0303": "A:n", "ɛ\u0303": "an", "œ\u0303": "3:n",
    "ɔ\u0303": "O:n", "o\u0303": "oUn", "θ": "T", "ð": "D", "ʃ": "S", "ɕ": "S", "ʂ": "S", "ʒ": "Z", "ʑ": "Z", "ʐ":
    "Z", "ŋ": "N", "ɲ": "nj", "ʎ": "lj", "ɡ": "g", "ɣ": "g", "ɟ": "g", "ɹ": "r", "ʁ": "r", "ʀ": "r", "ɾ": "r", "ɻ":
    "r", "ɫ": "l", "ɬ": "l", "x": "k", "χ": "k", "c": "k", "q": "k", "ç": "h", "ɦ": "h", "β": "b", "ʔ": "", "ː": "",
    "ˑ": "", "ˈ": "'", "ˌ": ",",
    **{sign: sign for sign in "bdfhjklmnprstvwz"},
}  # fmt: skip
"""espeak-ng's for English: https://github.com/espeak-ng/espeak-ng/blob/master/docs/phonemes.md."""


def for_hibari(ipa: str) -> str:
    return "".join(_symbols(ipa, MISAKI, _MISAKI))


def for_espeak(ipa: str) -> str:
    """Mnemonics as they stand between [[ and ]], each parted from the next: "t|s" are two sounds."""
    return "|".join(_symbols(ipa, MNEMONICS, _MNEMONICS))


def _symbols(ipa: str, table: Mapping[str, str], pattern: "regex.Pattern[str]") -> Iterator[str]:
    """The table's symbols for the signs of `ipa`, of which it reads the longest first; others are left out."""
    return filter(None, (table[found] for found in pattern.findall(ipa)))


def _any(table: Mapping[str, str]) -> "regex.Pattern[str]":
    return regex.compile("|".join(map(regex.escape, sorted(table, key=len, reverse=True))))


_MISAKI, _MNEMONICS = _any(MISAKI), _any(MNEMONICS)

"""What every synthesiser's adapter does around its library: long texts in pieces, no silence before the sound, the same
level, a pause behind it that fits its last sign, and when each word ends.
"""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import regex

from voicepipe.audio import Pcm
from voicepipe.base.punctuation import latin
from voicepipe.base.words import WRITTEN, cut_before
from voicepipe.engines.base import Speech, Word
from voicepipe.languages.pronunciation import BEGINS, ENDS

AUDIBLE = 32768 * 10 ** (-45 / 20)
"""RMS of a frame of 10 ms that a caller can hear: -45 dBFS."""

PEAK = 32767 * 10 ** (-4 / 20)
"""Every phrase is brought to this peak, -4 dBFS, ..."""

MAX_GAIN = 4.0
"""... but never raised by more than this, which would only lift the breath of a near-silent phrase."""

MAX_LETTERS = 300
"""A text that lasts longer than so many letters is spoken in pieces: about 20 s of speech each."""
SYLLABLE, CONSONANT, WORD = 4, 2, 8
"""How many Latin letters last as long as: a sign for a syllable; a consonant after which a vowel may be unwritten; a
digit or another sign that is read out as a word ("%" is "percent")."""
_UNWRITTEN_VOWELS = regex.compile(
    r"(?V1)[\p{Lo}--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Ethiopic}\p{Cherokee}\p{Canadian_Aboriginal}\p{Yi}]]"
)
SILENT = frozenset(" .,;:!?'\"()-–—…’“”")
BRACKETS = frozenset(("Ps", "Pe", "Pi", "Pf"))
"""These are not read out, nor are the marks and brackets of other scripts."""

PAUSE_MS = {".": 220, "!": 220, "?": 220, ":": 160, ";": 160, ",": 110}
"""Silence after a phrase that ends in this sign, or in one of another script that asks for the same."""

PAUSE_DEFAULT_MS = 60
_INVISIBLE = regex.compile(r"(?V1)[\p{Cf}--[\u200C\u200D]]+")
_CONTROL = regex.compile(rf"(?V1)[\p{{C}}--[\p{{Cf}}{BEGINS}{ENDS}]]")
_DIGIT = regex.compile(r"(?V1)[\p{Nd}--[0-9]]")
SEPARATORS = {"．": ".", "，": ",", "：": ":", "٫": ".", "٬": ","}
_SEPARATOR = regex.compile(rf"(?<=[0-9])[{''.join(SEPARATORS)}](?=[0-9])")
_APOSTROPHE = regex.compile(r"(?<=[\p{L}\p{M}])[ʼ＇](?=\p{L})")
_CLOSING = regex.compile(r"[\s\p{Pe}\p{Pf}\"']+$")


def pieces(text: str, most: int = MAX_LETTERS) -> list[str]:
    """`text` in characters that voices read, in pieces of at most `most` letters.

    A piece without a letter or a digit is left out: there is nothing in it to say.
    """
    clean = in_known_characters(text)
    result: list[str] = []
    while (fits := _fitting(clean, most)) < len(clean):
        cut = _cut(clean, fits)
        result.append(clean[:cut].strip())
        clean = clean[cut:].strip()
    return [piece for piece in [*result, clean] if any(c.isalnum() for c in piece)]


def in_known_characters(text: str) -> str:
    """`text` with single spaces, and:

    - Letters composed (Unicode's NFC): espeak-ng reads no bare accents, and the parts of a Korean syllable one by one.
    - Digits of other scripts, and what parts them, as ASCII's: espeak-ng reads these in every language, and "２５" or
      "٢٥" in few.
    - The apostrophe that is a letter (U+02BC) as an apostrophe: espeak-ng reads its name.
    - Nothing that is invisible but the joiners. Controls are spaces: espeak-ng obeys Ctrl-A as a command.
      What stands around IPA stays.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
        text = _DIGIT.sub(lambda found: str(unicodedata.decimal(found[0], found[0])), text)
        text = _SEPARATOR.sub(lambda found: SEPARATORS[found[0]], text)
        text = _APOSTROPHE.sub("'", text)
    return " ".join(_CONTROL.sub(" ", text).split())


_SENTENCE = regex.compile(r"(?V1)[.!?]\s|[\p{Sentence_Terminal}--[.!?]][\p{Pe}\p{Pf}]*+")


def _cut(text: str, fits: int) -> int:
    """Where the first piece of `text` ends, of which so many characters fit: behind a sentence, or a word."""
    head = text[:fits]
    ends = [found.end() for found in _SENTENCE.finditer(head)]
    if ends:
        return ends[-1]
    if (space := head.rfind(" ")) > 0:
        return space
    begins = (word.start() for word in WRITTEN.finditer(text, 0, fits + 1))
    return max(begins, default=0) or cut_before(text, fits)


def letters(text: str) -> int:
    """The length of a text, in letters of English that last as long."""
    return sum(map(_letters, text))


def _letters(sign: str) -> int:
    kind = unicodedata.category(sign)
    if latin(sign) in SILENT or kind in BRACKETS:
        return 1
    if kind == "Lo":
        return CONSONANT if _UNWRITTEN_VOWELS.match(sign) else SYLLABLE
    return 1 if kind[0] in "LM" else WORD


def _fitting(text: str, most: int) -> int:
    """How many characters of `text` one piece of so many letters holds."""
    last = 0
    for at, sign in enumerate(text):
        last += _letters(sign)
        if last > most:
            return max(1, at)
    return len(text)


def word_starts(text: str, symbols: str, begins: Sequence[int]) -> list[tuple[int, int]]:
    """(character of `text`, sample) at which each word begins, for a model that tells when it says what.

    `symbols` are those that it read, a character each: letters or phonemes, words apart; `begins[i]` is the sample at
    which the i-th is said.
    """
    words = [word.start() for word in WRITTEN.finditer(text)]
    heads = [group.start() for group in re.finditer(r"\S+", symbols)]
    if heads and len(heads) != len(words):
        # Phonemizers write "of the" as one word and a number as several: go by how far the text has come.
        scale = len(symbols) / max(1, len(text))
        heads = [min(heads, key=lambda head: abs(head - word * scale)) for word in words]
    return [(word, begins[head]) for word, head in zip(words, heads, strict=False)]


def shape(pcm: Pcm, starts: Sequence[tuple[int, int]], text: str, rate: int) -> Speech:
    """Cut the silence around raw speech (int16[n] at `rate` Hz), level it, and say when each word of `text` ends.

    Begins with the first frame of 10 ms above -45 dBFS; ends with the pause that the last sign of `text` asks for.
    Without `starts`, (character of `text`, sample) of words, it has no words either.
    """
    peak = float(np.abs(pcm.astype(np.float32)).max(initial=0.0))
    gain = min(MAX_GAIN, PEAK / peak) if peak else 1.0
    if (heard := audible(pcm, rate, gain)) is None:
        return Speech(np.empty(0, np.int16))
    first, last = heard
    speech = (pcm[first:last].astype(np.float32) * gain).astype(np.int16)
    words = _words(text, starts, first, last - first) if starts else ()
    return Speech(np.concatenate((speech, pause_after(text, rate))), words)


def audible(pcm: Pcm, rate: int, gain: float = 1.0) -> tuple[int, int] | None:
    """The samples from the first frame of 10 ms to the last one that a caller can hear at this gain; None: there is
    none."""
    frame = rate // 100
    frames = pcm[: pcm.size // frame * frame].reshape(-1, frame).astype(np.float32) * gain
    heard = np.flatnonzero(np.sqrt(np.mean(frames**2, axis=1)) > AUDIBLE)
    return (int(heard[0]) * frame, (int(heard[-1]) + 1) * frame) if heard.size else None


def pause_after(text: str, rate: int) -> Pcm:
    """The silence that the last sign of `text` asks for."""
    mark = latin(_CLOSING.sub("", text)[-1:])
    return np.zeros(PAUSE_MS.get(mark, PAUSE_DEFAULT_MS) * rate // 1000, np.int16)


def _words(text: str, starts: Sequence[tuple[int, int]], first: int, size: int) -> tuple[Word, ...]:
    """One Word for each word of `text`; it ends where the next one begins.

    espeak reports some tokens not at all ("of the" is one to it) and some several times (numbers). Where no spaces are,
    the words of which nothing is known share the time between those of which it is.
    """
    words = list(WRITTEN.finditer(text))
    begins: list[float] = []
    after, told = float(size), [False] * len(words)
    for at in range(len(words) - 1, -1, -1):
        begin, end = words[at].span()
        its = [sample - first for position, sample in starts if begin <= position < end]
        told[at] = bool(its) or not at or words[at - 1].end() < begin
        after = min([after, *its])
        begins.append(max(0.0, after))
    begins = [*reversed(begins), float(size)]
    at = 0
    while at < len(words):
        until = next((later for later in range(at + 1, len(words)) if told[later]), len(words))
        step = (begins[until] - begins[at]) / (until - at)
        begins[at:until] = [begins[at] + step * number for number in range(until - at)]
        at = until
    return tuple(Word(word.group(), round(end)) for word, end in zip(words, begins[1:], strict=True))

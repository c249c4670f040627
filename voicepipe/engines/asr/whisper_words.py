"""The words that Whisper reads in one utterance: which were said, which it made up, and which will stand. Pure.

Whisper was trained on 30 s. Of a sound that is shorter it may say the words once more, in what is left of its window,
and of a sound without a voice it makes words up. Its timestamps, and how fast people can speak at all, tell them apart.
"""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import regex

from voicepipe.base.punctuation import SENTENCE_END
from voicepipe.base.words import plain
from voicepipe.turn.agreement import Agreement

LOOPS = 4
"""Nobody says the same so often in a row, except a decoder that does not find the end. Digits may be: 5 5 5 5."""
FASTEST = 18.0
"""Letters in a second of voice, at most, where somebody repeats words. Fluent English has 15."""
DIGIT_LETTERS = 4
"""A digit is said in so many letters: "7", "seven"."""
DICTATED = 5
"""Digits in a row: nobody says so many but of a telephone number or the like."""
BEHIND_A_WORD = regex.compile(r"[\p{Terminal_Punctuation}\p{Pd}\p{Pe}\p{Pf}\"'…]+$")
BEHIND_MS, AGAIN_MS = 350, 700
"""A segment was not said if it begins within BEHIND_MS of the end of the sound and could not be spoken in the rest; nor
if it begins within AGAIN_MS and repeats the first words, unless it is a number."""


@dataclass(frozen=True, slots=True)
class WhisperWord:
    """A word as Whisper writes it, with a space before it (in languages that have them) and punctuation after it."""

    text: str
    tokens: tuple[int, ...]
    at: int = field(default=0, compare=False)
    """Index of its first token in the decoder's output."""


def spelled(pieces: Iterable[tuple[str, Sequence[int]]]) -> tuple[WhisperWord, ...]:
    """Words of (text, tokens) as faster-whisper's tokenizer splits them, which sets punctuation apart."""
    words: list[WhisperWord] = []
    opening: tuple[str, tuple[int, ...]] = ("", ())
    for text, tokens in pieces:
        if words and plain(words[-1].text[-1:]) and unicodedata.category(text[:1] or " ")[0] == "M":
            last = words.pop()  # A vowel sign, which in scripts without spaces comes by itself.
            words.append(WhisperWord(last.text + text, (*last.tokens, *tokens)))
        elif plain(text):
            words.append(WhisperWord(opening[0] + text, (*opening[1], *tokens)))
            opening = ("", ())
        elif words:
            last = words.pop()
            words.append(WhisperWord(last.text + text, (*last.tokens, *tokens)))
        else:
            opening = (opening[0] + text, (*opening[1], *tokens))
    return tuple(words)


def ends_sentence(token: str) -> bool:
    """Whether a token is a mark at which a sentence ends, and no more than that. Three dots leave it open."""
    return not plain(token) and bool(SENTENCE_END.search(token)) and not token.startswith(("..", "…"))


def without_marks(text: str) -> str:
    """A word without the punctuation behind it; "%" is said."""
    return BEHIND_A_WORD.sub("", text)


@dataclass(frozen=True, slots=True)
class Segment:
    """The words between two timestamps that Whisper wrote."""

    begins_ms: float
    """When the segment begins, in the sound that was read."""
    words: tuple[WhisperWord, ...]


def said(segments: Iterable[Segment], sound_ms: float, voiced_ms: float) -> tuple[WhisperWord, ...]:
    """The words of `segments` that were said in a sound whose last voice ends at `sound_ms`, and in which there is
    voice for `voiced_ms`."""
    words: list[WhisperWord] = []
    for segment in segments:
        if words and _is_behind(segment, words, sound_ms - segment.begins_ms):
            break
        words += segment.words
    return without_loops(words, voiced_ms)


def without_loops(words: Sequence[WhisperWord], voiced_ms: float) -> tuple[WhisperWord, ...]:
    """The words, without repetitions: what is said over and over at the end is said once, and so is what nobody could
    say twice in `voiced_ms`."""
    read = [plain(word.text) for word in words]
    too_fast = _letters(read) > FASTEST * voiced_ms / 1000
    # Where the decoder was stopped at its limit, the last word is cut off.
    return _unlooped(words, read, too_fast) or _unlooped(words[:-1], read[:-1], too_fast) or tuple(words)


def _unlooped(words: Sequence[WhisperWord], read: Sequence[str], too_fast: bool) -> tuple[WhisperWord, ...]:
    """The words without the repetition at their end; empty if there is none."""
    for period in range(1, len(read)):
        again = 0
        while again + period < len(read) and read[-1 - again] == read[-1 - again - period]:
            again += 1
        unit = read[len(read) - period :]
        loops = again + period >= LOOPS * period and not any(word[:1].isnumeric() for word in unit)
        if loops or (too_fast and again >= min(period, 2)):
            return tuple(words[: len(words) - again])
    return ()


def is_dictated(text: str, is_digit: Callable[[str], bool], least: int = DICTATED) -> bool:
    """Whether `text` has `least` digits in a row, in figures or in words (`is_digit`)."""
    run = 0
    for word in plain(text).replace("-", " ").split():
        digits = len(word) if word.isdecimal() else int(is_digit(word))
        run = run + digits if digits else 0
        if run >= least:
            return True
    return False


def begins_as(words: Sequence[WhisperWord], others: Sequence[WhisperWord]) -> bool:
    """Whether one of them, or what there is of it, is the beginning of the other."""
    return [plain(word.text) for word in words[: len(others)]] == [plain(word.text) for word in others[: len(words)]]


def _is_behind(segment: Segment, before: Sequence[WhisperWord], left_ms: float) -> bool:
    """`left_ms` before the end of the sound, behind these words."""
    read = [plain(word.text) for word in segment.words]
    if left_ms < BEHIND_MS and _letters(read) > FASTEST * max(0.0, left_ms) / 1000:
        return True
    return left_ms < AGAIN_MS and begins_as(before, segment.words) and not any(map(str.isnumeric, "".join(read)))


def _letters(read: Iterable[str]) -> int:
    return sum(DIGIT_LETTERS if sign.isnumeric() else sign.isalpha() for word in read for sign in word)


class Transcript:
    """The words of one utterance, as Whisper's passes have read them so far."""

    def __init__(self) -> None:
        self._before = ""
        """Words whose sound has been dropped."""
        self._words: tuple[WhisperWord, ...] = ()
        self._agreement = Agreement()

    @property
    def text(self) -> str:
        return f"{self._before}{''.join(word.text for word in self._words)}".strip()

    @property
    def committed(self) -> int:
        """How many of the words of the sound that is kept will stand."""
        return min(len(self._words), len(self._agreement.committed))

    def push(self, words: Sequence[WhisperWord]) -> int:
        """Take the words that a pass has read; returns how many more will stand."""
        self._words = tuple(words)
        return len(self._agreement.push([word.text for word in words]))

    def drop(self, count: int) -> None:
        """Note that the sound of the first `count` words is dropped: they stand as they are."""
        self._before += "".join(word.text for word in self._words[:count])
        self._words = self._words[count:]
        self._agreement = Agreement()
        self._agreement.push([word.text for word in self._words])

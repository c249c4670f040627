"""The words that Whisper reads in one utterance: which stand, which may change, which are an echo of the decoder.

Pure. A pass reads the sound that is kept from its beginning; the words that two passes agreed on are its prefix, and
the decoder goes on from there.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from voicepipe.turn.agreement import Agreement
from voicepipe.words import plain

LOOPS = 4
"""Nobody says the same so often in a row, except a decoder that does not find the end. Digits may be: 5 5 5 5."""


@dataclass(frozen=True, slots=True)
class WhisperWord:
    """A word as Whisper writes it: a space before it (in languages that have them), punctuation after it."""

    text: str
    tokens: tuple[int, ...]
    marks: int = 0
    """How many of the tokens, at the end, are punctuation."""


def spelled(pieces: Iterable[tuple[str, Sequence[int]]]) -> tuple[WhisperWord, ...]:
    """Words of (text, tokens) as faster-whisper's tokenizer splits them, which sets punctuation apart."""
    words: list[WhisperWord] = []
    opening: tuple[str, tuple[int, ...]] = ("", ())
    for text, tokens in pieces:
        if words and not words[-1].marks and unicodedata.category(text[:1] or " ")[0] == "M":
            last = words.pop()  # A vowel sign, which in scripts without spaces comes by itself.
            words.append(WhisperWord(last.text + text, (*last.tokens, *tokens)))
        elif plain(text):
            words.append(WhisperWord(opening[0] + text, (*opening[1], *tokens)))
            opening = ("", ())
        elif words:
            last = words.pop()
            words.append(WhisperWord(last.text + text, (*last.tokens, *tokens), last.marks + len(tokens)))
        else:
            opening = (opening[0] + text, (*opening[1], *tokens))
    return tuple(words)


def without_loops(words: Sequence[WhisperWord]) -> tuple[WhisperWord, ...]:
    """What is said over and over at the end is said once."""
    said = [plain(word.text) for word in words]
    for period in range(1, len(said) // LOOPS + 1):
        again = 0
        while again + period < len(said) and said[-1 - again] == said[-1 - again - period]:
            again += 1
        unit = said[len(said) - period :]
        if again + period >= LOOPS * period and not any(word[0].isnumeric() for word in unit):
            return tuple(words[: len(words) - again])
    return tuple(words)


class Transcript:
    """What one utterance has said so far."""

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

    @property
    def prefix(self) -> tuple[int, ...]:
        """Tokens of the words that will stand. The mark behind the last depends on what follows."""
        standing = self._words[: self.committed]
        tokens = [token for word in standing for token in word.tokens]
        return tuple(tokens[: len(tokens) - standing[-1].marks]) if standing else ()

    def push(self, words: Sequence[WhisperWord]) -> int:
        """A pass has read these, the prefix among them; returns how many more will stand."""
        self._words = tuple(words)
        return len(self._agreement.push([word.text for word in words]))

    def drop(self, count: int) -> None:
        """The sound of the first `count` words is dropped: they stand as they are."""
        self._before += "".join(word.text for word in self._words[:count])
        self._words = self._words[count:]
        self._agreement = Agreement()
        self._agreement.push([word.text for word in self._words])

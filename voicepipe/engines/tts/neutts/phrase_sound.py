"""The sound of one phrase while it is being made: no silence before it, at the voice's level and the asked speed, and
when about each word ends. Pure."""

import re
from collections.abc import Sequence

import numpy as np

from voicepipe.audio import Pcm
from voicepipe.engines.base import Speech, Word
from voicepipe.engines.tts.neutts.tempo import Tempo
from voicepipe.engines.tts.neutts.windows import CodeWindow, CrossFade, Sound
from voicepipe.engines.tts.shaping import MAX_GAIN, PEAK, audible, letters, pause_after

LONGEST_PAUSE_S = 1.5
"""A phrase has no longer silence in it: what is silent for so long has been said."""
SOFTER = 0.8
"""Share of the recording's peak at which a voice speaks: other words may be louder than the recorded ones."""


def gain(recorded: Sound) -> float:
    """The factor that brings a voice, of which `recorded` is sound, to the level of all phrases."""
    peak = 32767 * float(np.abs(recorded).max(initial=0.0))
    return min(MAX_GAIN, SOFTER * PEAK / peak) if peak else 1.0


class PhraseSound:
    """Makes the speech of one phrase from the codec's windows: trimmed, at the right level and speed, with word times.

    `letter_samples`: how long a letter lasts at the voice's own speed. `gain`: factor for the codec's sound.
    """

    def __init__(self, text: str, rate: int, hop: int, gain: float, letter_samples: float, speed: float) -> None:
        self._text = text
        self._rate = rate
        self._joint = CrossFade(hop)
        self._gain = 32767 * gain
        self._tempo = Tempo(speed, rate)
        self._quiet: list[Pcm] = []
        """Silence that may be the end."""
        self._begun = False
        self._words = WordTimes(text, letter_samples / speed)

    @property
    def over(self) -> bool:
        """Whether the phrase has ended: it has been silent for too long."""
        return self._begun and sum(part.size for part in self._quiet) > LONGEST_PAUSE_S * self._rate

    def push(self, window: CodeWindow, sound: Sound) -> Speech:
        """Take a window's sound. Returns a piece of speech, perhaps an empty one; more is to come."""
        pcm = self._trimmed(self._tempo.push(self._joint.push(window, sound)))
        return Speech(pcm, self._words.until(pcm.size), more=True)

    def end(self, *, more: bool = False) -> Speech:
        """The rest, with the pause that the text's last sign asks for. `more`: another piece of the text follows."""
        pcm = self._trimmed(self._tempo.flush())
        self._quiet.clear()
        pause = pause_after(self._text, self._rate) if self._begun else np.empty(0, np.int16)
        return Speech(np.concatenate([pcm, pause]), self._words.rest(pcm.size), more=more)

    def _trimmed(self, sound: Sound) -> Pcm:
        """From the first audible frame on; silence is kept back until something audible follows."""
        pcm = np.clip(sound * self._gain, -32768, 32767).astype(np.int16)
        heard = audible(pcm, self._rate)
        if heard is None:
            if self._begun:
                self._quiet.append(pcm)
            return np.empty(0, np.int16)
        first, last = heard
        parts = [*self._quiet, pcm[:last]] if self._begun else [pcm[first:last]]
        self._quiet, self._begun = [pcm[last:]], True
        return np.concatenate(parts)


class WordTimes:
    """Estimates when each word of a text has been said, and gives it with the piece of sound in which it ends. Letters
    take the same time, which is the voice's pace until the end is known."""

    def __init__(self, text: str, letter_samples: float) -> None:
        self._tokens = re.findall(r"\S+", text)
        self._ends = np.cumsum([letters(token) + 1 for token in self._tokens]) * letter_samples
        self._timed = 0
        self._passed = 0

    def until(self, more: int) -> tuple[Word, ...]:
        """The words that end in the next `more` samples. The last one waits for the end."""
        upto = int(np.searchsorted(self._ends, self._passed + more, side="right"))
        upto = max(self._timed, min(upto, len(self._tokens) - 1))
        ends = [round(end) - self._passed for end in self._ends[self._timed : upto]]
        return self._take(upto, more, ends)

    def rest(self, more: int) -> tuple[Word, ...]:
        """All other words: they end in the last `more` samples."""
        left = self._ends[self._timed :]
        begun = float(self._ends[self._timed - 1]) if self._timed else 0.0
        share = (left - begun) / (left[-1] - begun) if left.size else left
        return self._take(len(self._tokens), more, [round(more * part) for part in share])

    def _take(self, upto: int, more: int, ends: Sequence[int]) -> tuple[Word, ...]:
        words = tuple(Word(word, end) for word, end in zip(self._tokens[self._timed : upto], ends, strict=True))
        self._timed, self._passed = upto, self._passed + more
        return words

"""The part of a caller's sound that Whisper reads: voice, and no more silence than stands between words.

Whisper invents words where there are none. The VAD front end opens utterances for voices only; here the pauses inside
one are shortened, what is quiet before and after it is left out, and a crack is not read at all.
"""

from collections import deque
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from voicepipe.audio import Pcm, ms_to_samples

FRAME = ms_to_samples(20)
FLOOR_DBFS = -55.0
"""Nothing below this is a voice that a telephone brings."""
BELOW_PEAK_DB = 35.0
"""Nothing so far below the loudest sound of the utterance is voice."""
ABOVE_NOISE_DB, NOISE_BELOW_PEAK_DB = 8.0, 12.0
"""Nothing that is hardly louder than the quietest sound of the utterance is voice, where that is clearly below it."""
MARGIN = 10
"""Frames that are kept on both sides of a pause: 200 ms, for soft beginnings and endings."""
LEAST = ms_to_samples(100)
"""Less voice than this holds no word."""


class PassWindow(NamedTuple):
    """The sound that one pass reads."""

    pcm: Pcm
    """int16[n] at 16 kHz."""
    end: int
    """Sample of `pcm` at which its last voice ends."""
    voiced: int
    """Number of samples of `pcm` in which there is voice."""


class WhisperSound:
    """The sound of one utterance that Whisper is to read, without long pauses. Positions are samples of what is kept,
    counted from its beginning, also when that is dropped."""

    def __init__(self) -> None:
        self.fed = 0
        """Samples that were fed."""
        self.end = 0
        """Position at which the last voice ends."""
        self.read = 0
        """Position up to which the sound has been read."""
        self.start = 0
        """Position of the first sample that is kept."""
        self.gap = 0
        """Samples since the last voice; 0 as long as there was none."""
        self._frames: deque[Pcm] = deque()
        self._is_voice: deque[bool] = deque()
        """Whether each of `_frames` is voice."""
        self._after: list[Pcm] = []
        """The first frames of the present pause ..."""
        self._before: deque[Pcm] = deque(maxlen=MARGIN)
        """... and its last ones."""
        self._rest = np.empty(0, np.int16)
        self._voiced = 0
        self._peak, self._noise = -96.0, 0.0

    def feed(self, pcm: Pcm) -> None:
        """Take more sound: int16[n] at 16 kHz."""
        self.fed += pcm.size
        sound = np.concatenate([self._rest, pcm])
        whole = sound.size // FRAME * FRAME
        self._rest = sound[whole:]
        frames = sound[:whole].reshape(-1, FRAME)
        power = (frames.astype(np.float32) ** 2).mean(axis=1)
        for frame, level in zip(frames, (10 * np.log10(power / 32768.0**2 + 1e-9)).tolist(), strict=True):
            self._hear(frame, level)

    @property
    def unread(self) -> int:
        """Samples with voice that no pass has covered; 0 as long as there is hardly any voice at all."""
        return self.end - self.read if self._voiced >= LEAST else 0

    def window(self, longest: int) -> PassWindow:
        """The sound to read: at most `longest` samples from `start` on, with a little of the quiet after the voice."""
        frames, size = [np.empty(0, np.int16)], 0
        for frame in chain(self._frames, self._after):  # no more of them than are wanted: minutes may wait
            frames.append(frame)
            size += frame.size
            if size >= longest:
                break
        voiced = FRAME * sum(islice(self._is_voice, len(frames) - 1))
        return PassWindow(np.concatenate(frames)[:longest], min(longest, self.end - self.start), voiced)

    def drop(self, pos: int) -> None:
        """Forget the sound before `pos`."""
        while self._frames and self.start + self._frames[0].size <= pos:
            self.start += self._frames.popleft().size
            self._is_voice.popleft()
        if self._frames and self.start < pos:
            self._frames[0] = self._frames[0][pos - self.start :]
        self.start = pos

    def _hear(self, frame: Pcm, level: float) -> None:
        self._peak, self._noise = max(self._peak, level), min(self._noise, level)
        noise = min(self._noise + ABOVE_NOISE_DB, self._peak - NOISE_BELOW_PEAK_DB)
        if level > max(FLOOR_DBFS, self._peak - BELOW_PEAK_DB, noise):
            kept = [*self._after, *self._before, frame]
            self._frames += kept
            self._is_voice += [False] * (len(kept) - 1) + [True]
            self._after.clear()
            self._before.clear()
            self._voiced += FRAME
            self.end += FRAME * len(kept)
            self.gap = 0
            return
        self.gap += FRAME if self._voiced else 0
        if self._voiced and len(self._after) < MARGIN:
            self._after.append(frame)
        else:
            self._before.append(frame)

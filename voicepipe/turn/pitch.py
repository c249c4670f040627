"""Does the voice fall? English speakers end statements, and most questions, well below the pitch of the rest.

Autocorrelation of 40 ms windows, normalised by the window's own (Boersma, 1993), every 10 ms as the sound comes.
"""

import math
from collections import deque

import numpy as np

from voicepipe.audio import RATE, Pcm

HOP, WINDOW, SIZE = RATE // 100, RATE // 25, 1024
LOWEST, HIGHEST = 65, 350
"""Hz: the voices of adults."""
VOICED = 0.5
"""Normalised autocorrelation from which on a window has a pitch."""
RANGE_DB = 30.0
"""A window is not looked at if it is further below the loudest."""
END_HOPS = 25
"""The end is the last 250 ms before the silence, ..."""
END_PITCHES = 6
"""... of which the last 60 ms that have a pitch are taken."""
KEPT_HOPS = 60 * 100
"""The last minute is compared with."""
FEWEST = 12
"""With fewer pitches than this nothing is said."""

SHAPE = np.hanning(WINDOW)
OWN = np.fft.irfft(np.abs(np.fft.rfft(SHAPE, SIZE)) ** 2)[: WINDOW // 2]
OWN /= OWN[0]

MIDDLE_OCTAVES, SLOPE, LIMIT = -0.15, -5.0, 1.5
"""A fall of 0.15 octaves says nothing; half an octave says that the sentence is over. Never more than 1.5 (log-odds): a
question that rises is over too, and some voices hardly move. Fitted by hand on synthetic speech made from two American
voices and a Scottish one; not tried on telephone calls."""


class Pitch:
    """Of one utterance: push sound as it comes, ask in the silence."""

    def __init__(self) -> None:
        self._rest: Pcm = np.empty(0, np.int16)
        self._octaves: deque[float | None] = deque(maxlen=KEPT_HOPS)
        """log2 of the pitch in Hz, every 10 ms."""
        self._loudest = 0.0

    def push(self, pcm: Pcm) -> None:
        """int16[n] at 16 kHz, in order."""
        self._rest = np.concatenate([self._rest, pcm])
        while self._rest.size >= WINDOW:
            self._octaves.append(self._of(self._rest[:WINDOW]))
            self._rest = self._rest[HOP:]

    def log_odds(self) -> float:
        """That the voice has come to an end, by its fall; 0 if there is too little to go by."""
        pitches = [pitch for pitch in self._octaves if pitch is not None]
        if len(pitches) < FEWEST:
            return 0.0
        last = max(i for i, pitch in enumerate(self._octaves) if pitch is not None)
        octaves = list(self._octaves)
        end = [pitch for pitch in octaves[max(0, last - END_HOPS) : last + 1] if pitch is not None][-END_PITCHES:]
        fall = float(np.median(end) - np.median(pitches))
        return max(-LIMIT, min(LIMIT, SLOPE * (fall - MIDDLE_OCTAVES)))

    def _of(self, window: Pcm) -> float | None:
        sound = window.astype(np.float64)
        sound -= sound.mean()
        power = float(np.dot(sound, sound))
        self._loudest = max(self._loudest, power)
        if power <= self._loudest * 10 ** (-RANGE_DB / 10):
            return None
        own = np.fft.irfft(np.abs(np.fft.rfft(sound * SHAPE, SIZE)) ** 2)[: WINDOW // 2]
        likeness = own / (own[0] + 1e-9) / OWN
        first, past = RATE // HIGHEST, RATE // LOWEST
        lag = int(np.argmax(likeness[first:past])) + first
        best = likeness[lag]
        # Twice the period fits as well as the period: the shorter one is the pitch.
        half = lag // 2
        if half - 2 >= first and likeness[half - 2 : half + 3].max() > 0.85 * best:
            lag = half - 2 + int(np.argmax(likeness[half - 2 : half + 3]))
        return math.log2(RATE / lag) if best > VOICED else None

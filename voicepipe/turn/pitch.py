"""Does the voice fall? English speakers end statements, and most questions, well below the pitch of the rest.

Autocorrelation of 40 ms windows, normalised by the window's own (Boersma, 1993), every 10 ms.
"""

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio import RATE, Pcm

HOP, WINDOW, SIZE = RATE // 100, RATE // 25, 1024
LOWEST, HIGHEST = 65, 350
"""Hz: the voices of adults."""
VOICED = 0.5
"""Normalised autocorrelation from which on a window has a pitch."""
TOGETHER = RATE // 10
"""Samples, 100 ms, that are looked at together, or fewer where the pitch is asked for."""
RANGE_DB = 30.0
"""A window is not looked at if it is further below the loudest."""
END_HOPS = 25
"""The end is the last 250 ms before the silence, ..."""
END_PITCHES = 6
"""... of which the last 60 ms that have a pitch are taken."""
KEPT_HOPS = 60 * 100
"""The last minute is compared with."""
FEWEST = 12
"""Pitches that are needed for a judgement."""

SHAPE = np.hanning(WINDOW)
OWN = np.fft.irfft(np.abs(np.fft.rfft(SHAPE, SIZE)) ** 2)[: WINDOW // 2]
OWN /= OWN[0]

MIDDLE_OCTAVES, SLOPE, LIMIT = -0.15, -5.0, 1.5
"""A fall of 0.15 octaves says nothing; half an octave says that the sentence is over. Never more than 1.5 (log-odds): a
question that rises is over too, and some voices hardly move. Fitted by hand on synthetic speech made from two American
voices and a Scottish one; not tried on telephone calls."""


class Pitch:
    """Whether the voice falls at the end of one utterance. Push its sound as it comes, and ask in the silence."""

    def __init__(self) -> None:
        self._sound: list[Pcm] = []
        """Sound that is not looked at yet."""
        self._samples = 0
        self._octaves: deque[float | None] = deque(maxlen=KEPT_HOPS)
        """log2 of the pitch in Hz, every 10 ms."""
        self._loudest = 0.0

    def push(self, pcm: Pcm) -> None:
        """Take the next int16[n] at 16 kHz."""
        self._sound.append(pcm)
        self._samples += pcm.size
        if self._samples >= TOGETHER:
            self._look()

    def log_odds(self) -> float:
        """The log-odds that the voice has come to an end, by its fall; 0 if there is too little to go by."""
        self._look()
        pitches = [pitch for pitch in self._octaves if pitch is not None]
        if len(pitches) < FEWEST:
            return 0.0
        last = max(i for i, pitch in enumerate(self._octaves) if pitch is not None)
        octaves = list(self._octaves)
        end = [pitch for pitch in octaves[max(0, last - END_HOPS) : last + 1] if pitch is not None][-END_PITCHES:]
        fall = float(np.median(end) - np.median(pitches))
        return max(-LIMIT, min(LIMIT, SLOPE * (fall - MIDDLE_OCTAVES)))

    def _look(self) -> None:
        """Look at all windows that are there: ten at once take a third of the time that they take one by one."""
        sound = np.concatenate(self._sound) if self._sound else np.empty(0, np.int16)
        count = max(0, 1 + (sound.size - WINDOW) // HOP)
        self._sound = [sound[count * HOP :]]
        self._samples = self._sound[0].size
        if count:
            step = sound.itemsize  # A view, made in a fifth of the time that sliding_window_view takes.
            windows: Pcm = np.ndarray((count, WINDOW), np.int16, sound, strides=(HOP * step, step))
            self._octaves.extend(self._pitches(windows.astype(np.float64)))

    def _pitches(self, sound: NDArray[np.float64]) -> list[float | None]:
        """log2 of the pitch in Hz of each window, float[n, WINDOW]; None where it has none."""
        sound -= sound.mean(axis=1, keepdims=True)
        power = np.einsum("ij,ij->i", sound, sound)
        loudest = np.maximum.accumulate(np.maximum(power, self._loudest))
        self._loudest = float(loudest[-1])
        loud = np.flatnonzero(power > loudest * 10 ** (-RANGE_DB / 10))
        found: list[float | None] = [None] * len(sound)
        if loud.size:
            for at, lag in zip(loud.tolist(), _periods(sound[loud]), strict=True):
                found[at] = math.log2(RATE / lag) if lag else None
        return found


def _periods(sound: NDArray[np.float64]) -> list[int]:
    """The period of each window, in samples; 0 for none."""
    spectrum = np.fft.rfft(sound * SHAPE, SIZE)
    first, past = RATE // HIGHEST, RATE // LOWEST
    own = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, SIZE)[:, :past]
    likeness = own / (own[:, :1] + 1e-9) / OWN[:past]
    rows = np.arange(len(sound))
    lag = likeness[:, first:past].argmax(axis=1) + first
    best = likeness[rows, lag]
    # Twice the period fits as well as the period: the shorter one is the pitch.
    near = np.maximum(lag[:, None] // 2 + np.arange(-2, 3), 0)
    shorter = likeness[rows[:, None], near]
    fits = (near[:, 0] >= first) & (shorter.max(axis=1) > 0.85 * best)
    lag = np.where(fits, near[rows, shorter.argmax(axis=1)], lag)
    periods: list[int] = np.where(best > VOICED, lag, 0).tolist()
    return periods

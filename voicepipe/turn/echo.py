"""Is what the microphone hears our own voice? Then it must not interrupt us."""

import math

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio import RATE, Pcm

WINDOW = RATE * 240 // 1000
"""Samples of the caller's sound that are compared: 240 ms, long enough that two voices do not match by chance."""
FAR = RATE
"""Samples of our own output that are searched: 1 s covers a client's buffer, the network and 250 ms of room."""


def likeness(near: Pcm, far: Pcm) -> float:
    """Highest normalised cross-correlation (0..1) of `near` (int16[n]) with any stretch of `far` (int16[m], m >= n).

    Both are at 16 kHz. First differences flatten the spectrum, so that two voices of like pitch do not look alike.
    """
    if near.size < WINDOW // 2 or far.size < near.size:
        return 0.0
    a, b = _steps(near), _steps(far)
    size = 1 << int(b.size - 1).bit_length()  # It wraps around at delays alone that are cut off.
    spectrum = np.conj(np.fft.rfft(a, size))
    spectrum *= np.fft.rfft(b, size)
    products = np.fft.irfft(spectrum, size)[: b.size - a.size + 1]
    energy = np.cumsum(np.multiply(b, b, dtype=np.int64))  # Whole numbers: exact, and faster than fractions.
    stretches = energy[a.size - 1 :].astype(np.float64)
    stretches[1:] -= energy[: -a.size]
    squares = stretches * np.dot(a.astype(np.float64), a)
    loud = squares > a.size**2  # Against noise of less than one step: nothing to compare.
    likeliest = np.max(products[loud] ** 2 / squares[loud], initial=0.0)
    return math.sqrt(likeliest)


def _steps(pcm: Pcm) -> NDArray[np.int32]:
    return np.subtract(pcm[1:], pcm[:-1], dtype=np.int32)

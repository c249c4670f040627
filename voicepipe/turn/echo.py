"""Is what the microphone hears our own voice? Then it must not interrupt us."""

import numpy as np

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
    a = np.diff(near.astype(np.float64))
    b = np.diff(far.astype(np.float64))
    size = 1 << int(b.size - 1).bit_length()  # It wraps around at delays alone that are cut off.
    products = np.fft.irfft(np.fft.rfft(b, size) * np.conj(np.fft.rfft(a, size)), size)[: b.size - a.size + 1]
    energy = np.concatenate(([0.0], np.cumsum(b * b)))
    norms = np.sqrt((energy[a.size :] - energy[: -a.size]) * np.dot(a, a))
    loud = norms > a.size  # Against noise of less than one step: nothing to compare.
    return float(np.max(np.abs(products[loud]) / norms[loud], initial=0.0))

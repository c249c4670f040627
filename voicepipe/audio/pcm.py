"""Mono 16-bit PCM, and the 20 ms block in which every line hands it over."""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

Pcm = NDArray[np.int16]
"""Mono samples, int16[n]."""

RATE = 16_000
"""Sample rate in Hz of everything between a line and the ASR."""

BLOCK_MS = 20
BLOCK = RATE * BLOCK_MS // 1000
"""Samples in one block: 320."""

SILENCE_DBFS = -96.0


class Block(msgspec.Struct, frozen=True):
    """A block of a caller's sound: 20 ms, int16[320] at 16 kHz mono."""

    pcm: Pcm
    pos: int
    """Position of the first sample, counted since the answer, without gaps."""
    arrived: float
    """Monotonic seconds at which the packet that completed this block reached the socket."""
    filled: bool = False
    """The line made this block up: the packet was lost, or the sender sent nothing (DTX)."""
    narrow: bool = False
    """It has a telephone's band: it was sampled at 8 kHz on its way."""


def dbfs(pcm: Pcm) -> float:
    """Level of `pcm` (int16[n]) in dBFS, RMS against full scale; -96 for silence and for no samples."""
    if pcm.size == 0:
        return SILENCE_DBFS
    samples = pcm.astype(np.float32)
    power = float(np.dot(samples, samples)) / pcm.size
    return max(SILENCE_DBFS, 10 * math.log10(power / 32768.0**2)) if power else SILENCE_DBFS


def ms_to_samples(ms: float, rate: int = RATE) -> int:
    """Samples in `ms` milliseconds at `rate` Hz, rounded to the nearest."""
    return round(ms * rate / 1000)


def samples_to_ms(samples: int, rate: int = RATE) -> float:
    """Milliseconds of `samples` at `rate` Hz."""
    return samples * 1000 / rate

"""Does the line carry sound that is no voice: hold music, a loud street? Then the caller's phone is not left alone in a
quiet room. Pure."""

import numpy as np

from voicepipe.audio import BLOCK, RATE, Pcm

LOUD_DBFS = -40.0
"""Music on hold has -30 to -12 dBFS, a street through a phone about -40, a quiet room and comfort noise below -50."""
MEAN = RATE
"""Samples, 1 s, over which power is averaged, so that notes belong together. What the caller said last, at -20 dBFS, is
forgotten after 5 s."""
_KEPT = 1 - BLOCK / MEAN
_LOUD = 32768.0**2 * 10 ** (LOUD_DBFS / 10)


class LineSound:
    """One caller's line."""

    def __init__(self) -> None:
        self._power = 0.0

    def push(self, pcm: Pcm) -> None:
        """The next 20 ms: int16[320] at 16 kHz."""
        sound = pcm.astype(np.float32)
        self._power = _KEPT * self._power + (1 - _KEPT) * float(np.dot(sound, sound)) / pcm.size

    @property
    def loud(self) -> bool:
        """It carries sound now."""
        return self._power > _LOUD

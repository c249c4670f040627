"""Is it more than a backchannel? "Mm-hm" says go on: it takes no turn, however long it lasts.

Behind closed lips a voice has next to nothing above 1 kHz: nasal murmurs lose 20 dB and more there (Fujimura, J.
Acoust. Soc. Am. 34(12), 1962). Speech has at least some open vowels and consonants: on development speech two such
blocks come within 130 ms in the median, and within half a second at the latest.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio import RATE, Pcm

OPEN_HZ, LOWEST_HZ = 1000, 150
OPEN_SHARE = 0.01
"""Share of a block's power above 1 kHz from which on the block counts as open: -20 dB."""
OPEN_BLOCKS = 2
"""Open blocks that make a burst speech."""
RANGE_DB = 17.0
"""A block further below the loudest of its burst is not looked at: around an "mm-hm" the room hisses."""


class VoiceBurst:
    """Tells speech from a backchannel ("mm-hm") in one burst of voice. Push its blocks in order."""

    def __init__(self) -> None:
        self._loudest = [0.0] * OPEN_BLOCKS
        self._open = [0.0] * OPEN_BLOCKS
        """Powers of the loudest blocks, and of the loudest open ones: of several, since one may be a thump."""

    @property
    def speech(self) -> bool:
        """Whether the burst is more than a backchannel."""
        return self._open[0] > self._loudest[0] * 10 ** (-RANGE_DB / 10)

    def push(self, pcm: Pcm) -> None:
        """Take int16[n] of voice at 16 kHz."""
        power, high = powers(pcm)
        self._loudest = sorted([*self._loudest, power])[1:]
        if high > OPEN_SHARE * power:
            self._open = sorted([*self._open, power])[1:]


@lru_cache(4)
def _shape(samples: int) -> NDArray[np.float64]:
    return np.hanning(samples).astype(np.float64)


def powers(pcm: Pcm) -> tuple[float, float]:
    """The powers of int16[n] at 16 kHz above LOWEST_HZ and above OPEN_HZ; without a unit, to be compared."""
    spectrum = np.fft.rfft(pcm * _shape(pcm.size))
    hertz = RATE / pcm.size
    return _power(spectrum[round(LOWEST_HZ / hertz) :]), _power(spectrum[round(OPEN_HZ / hertz) :])


def _power(spectrum: NDArray[np.complex128]) -> float:
    return float(np.vdot(spectrum, spectrum).real)

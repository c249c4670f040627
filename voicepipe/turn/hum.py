"""Is it more than a hum? "Mm-hm" says go on: it takes no turn, however long it lasts.

Behind closed lips a voice has next to nothing above 1 kHz: nasal murmurs lose 20 dB and more there (Fujimura, J.
Acoust. Soc. Am. 34(12), 1962). Speech has at least some open vowels and consonants: on development speech two such
blocks come within 120 ms in the median, and within half a second at the latest.
"""

import numpy as np

from voicepipe.audio import RATE, Pcm

OPEN_HZ, LOWEST_HZ = 1000, 150
OPEN_SHARE = 0.01
"""Of a block's power above 1 kHz: -20 dB."""
OPEN_BLOCKS = 2
"""So many make a burst speech."""


def is_open(pcm: Pcm) -> bool:
    """Whether int16[n] of voice at 16 kHz comes through open lips."""
    power = np.abs(np.fft.rfft(pcm * np.hanning(pcm.size))) ** 2
    hertz = RATE / pcm.size
    within = power[round(LOWEST_HZ / hertz) :].sum()
    return bool(power[round(OPEN_HZ / hertz) :].sum() > OPEN_SHARE * within)

"""G.722 (ITU-T G.722, 64 kbit/s) by libg722: sound of 16 kHz, a byte for two samples.

Either direction adapts to what went before, so each stream has an instance of its own.
"""

import G722
import numpy as np

from voicepipe.audio.pcm import RATE, Pcm

CLOCK = 8000
"""Rate in Hz of G.722's RTP timestamps: half the sound's, by a mistake that RFC 3551 keeps."""

_BITRATE = 64_000


class G722Encoder:
    """Encodes G.722, one stream."""

    def __init__(self) -> None:
        self._state = G722.G722(RATE, _BITRATE)

    def __call__(self, pcm: Pcm) -> bytes:
        """n / 2 bytes of int16[n] at 16 kHz; n is even."""
        payload: bytes = self._state.encode(np.ascontiguousarray(pcm, np.int16))
        return payload


class G722Decoder:
    """Decodes G.722, one stream."""

    def __init__(self) -> None:
        self._state = G722.G722(RATE, _BITRATE)

    def __call__(self, payload: bytes) -> Pcm:
        """int16[2 * n] at 16 kHz of n bytes: any byte is sound."""
        return np.frombuffer(self._state.decode(payload), np.int16)

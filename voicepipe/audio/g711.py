"""G.711 (ITU-T G.711, 11/1988): one byte a sample at 8 kHz, by table in both directions."""

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio.pcm import Pcm

RATE = 8000

_Table = NDArray[np.uint8]


def _ulaw_table() -> _Table:
    """mu-law of every int16, indexed by its bits: 14-bit magnitudes, biased by 33, in eight segments."""
    pcm = np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32) >> 2
    sign = np.where(pcm < 0, 0x7F, 0xFF)
    biased = np.minimum(np.abs(pcm), 8158) + 33
    segment = np.floor(np.log2(biased)).astype(np.int32) - 5
    mantissa = (biased >> (segment + 1)) & 0xF
    table: _Table = (((segment << 4) | mantissa) ^ sign).astype(np.uint8)
    return table


def _alaw_table() -> _Table:
    """A-law of every int16, indexed by its bits: 13-bit magnitudes in eight segments, even bits inverted."""
    pcm = np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32) >> 3
    mask = np.where(pcm >= 0, 0xD5, 0x55)
    magnitude = np.where(pcm >= 0, pcm, -pcm - 1)
    segment = np.maximum(np.floor(np.log2(np.maximum(magnitude, 1))).astype(np.int32) - 4, 0)
    mantissa = (magnitude >> np.maximum(segment, 1)) & 0xF
    table: _Table = (((segment << 4) | mantissa) ^ mask).astype(np.uint8)
    return table


def _ulaw_values() -> Pcm:
    code = ~np.arange(256, dtype=np.uint8)
    magnitude = ((((code & 0xF).astype(np.int32) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _alaw_values() -> Pcm:
    code = np.arange(256, dtype=np.uint8) ^ 0x55
    segment = ((code & 0x70) >> 4).astype(np.int32)
    step = ((code & 0xF).astype(np.int32) << 4) + np.where(segment > 0, 0x108, 8)
    magnitude = step << np.maximum(segment - 1, 0)
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)


_ENCODE = {"pcmu": _ulaw_table(), "pcma": _alaw_table()}
_DECODE = {"pcmu": _ulaw_values(), "pcma": _alaw_values()}


def encode(law: str, pcm: Pcm) -> bytes:
    """`law` ("pcmu" or "pcma") of int16[n]: n bytes."""
    return _ENCODE[law].take(pcm, mode="wrap").tobytes()


def decode(law: str, data: bytes) -> Pcm:
    """int16[n] of n bytes of `law` ("pcmu" or "pcma")."""
    return _DECODE[law].take(np.frombuffer(data, np.uint8))

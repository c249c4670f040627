"""Opus (RFC 6716) by libopus itself, which PyAV's wheel brings: its own binding can neither conceal nor set the mode.

A call through ctypes costs 2 us and lets go of the GIL. Sound is decoded straight to 16 kHz, without a resampler.
"""

import ctypes
import ctypes.util
import weakref
from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy as np

from voicepipe.audio.pcm import RATE, Pcm
from voicepipe.base.errors import ConfigError

CLOCK = 48_000
"""Rate in Hz of Opus' RTP timestamps, whatever the sound's own (RFC 7587)."""

BITRATE = 40_000
COMPLEXITY = 5
"""44 us for 20 ms of speech; 9 takes 62."""

_LOW_DELAY = 2051
"""OPUS_APPLICATION_RESTRICTED_LOWDELAY looks 2.5 ms ahead; "voip" looks 6.5 ms, and takes three times as long."""
_SET_BITRATE, _SET_COMPLEXITY, _SET_VBR_CONSTRAINT = 4002, 4010, 4020
_BYTES = 1275


_coders: "weakref.WeakSet[OpusEncoder | OpusDecoder]" = weakref.WeakSet()


def alive() -> int:
    """The number of encoders and decoders that exist: the library's memory for them is not among Python's objects."""
    return len(_coders)


class OpusError(ValueError):
    """A payload is no Opus."""


@cache
def load() -> Any:
    """The library; reads files the first time. Raises ConfigError."""
    wheel = Path(av.__file__).parent
    shipped = [*wheel.parent.glob("av.libs/libopus-*"), *wheel.glob(".dylibs/libopus*")]
    name = str(shipped[0]) if shipped else ctypes.util.find_library("opus")
    if name is None:
        raise ConfigError("libopus is not to be found: install PyAV from its wheel, or libopus (Debian: libopus0).")
    library = ctypes.CDLL(name)
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    library.opus_encoder_create.restype = library.opus_decoder_create.restype = pointer
    library.opus_encoder_ctl.argtypes = [pointer, integer]  # and what follows: it takes a varying number
    library.opus_encode.argtypes = [pointer, pointer, integer, ctypes.c_char_p, ctypes.c_int32]
    library.opus_decode.argtypes = [pointer, ctypes.c_char_p, ctypes.c_int32, pointer, integer, integer]
    for free in (library.opus_encoder_destroy, library.opus_decoder_destroy):
        free.argtypes, free.restype = [pointer], None
    return library


def version() -> str:
    """The library's version. Raises ConfigError."""
    library = load()
    library.opus_get_version_string.restype = ctypes.c_char_p
    return bytes(library.opus_get_version_string()).decode()


class OpusEncoder:
    """Encodes mono speech as Opus. `rate` is one of 8000, 12000, 16000, 24000, 48000 Hz."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._lib = load()
        state = self._lib.opus_encoder_create(rate, 1, _LOW_DELAY, None)
        if not state:
            raise ValueError(f"Opus has no rate of {rate} Hz")
        self._state = ctypes.c_void_p(state)
        weakref.finalize(self, self._lib.opus_encoder_destroy, self._state)
        _coders.add(self)
        self._buffer = ctypes.create_string_buffer(_BYTES)
        # Unconstrained, silence takes 3 bytes rather than as many as speech.
        for setting, value in ((_SET_BITRATE, BITRATE), (_SET_COMPLEXITY, COMPLEXITY), (_SET_VBR_CONSTRAINT, 0)):
            refused = self._lib.opus_encoder_ctl(self._state, setting, ctypes.c_int(value))
            assert not refused, f"libopus does not take setting {setting}"

    def __call__(self, pcm: Pcm) -> bytes:
        """The payload of int16[n]: 2.5, 5, 10, 20, 40 or 60 ms."""
        sound = np.asarray(pcm, np.int16).tobytes()  # A copy is cheaper than numpy's way to an address.
        size = self._lib.opus_encode(self._state, sound, pcm.size, self._buffer, _BYTES)
        if size < 0:
            raise ValueError(f"{pcm.size} samples at {self.rate} Hz are no Opus frame")
        return self._buffer.raw[:size]


class OpusDecoder:
    """Decodes Opus to mono speech at `rate` (as `OpusEncoder`'s); two channels become one."""

    def __init__(self, rate: int = RATE) -> None:
        self._lib = load()
        self._state = ctypes.c_void_p(self._lib.opus_decoder_create(rate, 1, None))
        weakref.finalize(self, self._lib.opus_decoder_destroy, self._state)
        _coders.add(self)
        self._step = rate // 400
        """Samples of 2.5 ms, the steps in which Opus conceals."""
        self._pcm: Pcm = np.empty(48 * self._step, np.int16)
        self._out = self._pcm.ctypes.data

    def __call__(self, payload: bytes) -> Pcm:
        """int16[n] of a payload. Raises OpusError."""
        if not payload:
            raise OpusError("an empty payload is no Opus packet")
        return self._decode(payload, len(payload), self._pcm.size, 0)

    def conceal(self, samples: int) -> Pcm:
        """int16[samples] that continue the last sound, fading: for a packet that is lost."""
        return self._decode(None, 0, self._whole(samples), 0)

    def recover(self, following: bytes, samples: int) -> Pcm:
        """The lost packet before `following`, of `samples`: from its copy in there (in-band FEC), or concealed."""
        return self._decode(following, len(following), self._whole(samples), 1)

    def _decode(self, payload: bytes | None, size: int, room: int, fec: int) -> Pcm:
        got = self._lib.opus_decode(self._state, payload, size, self._out, room, fec)
        if got < 0:
            raise OpusError(f"{size} bytes are no Opus packet")
        return self._pcm[:got].copy()

    def _whole(self, samples: int) -> int:
        return min(max(self._step, samples // self._step * self._step), self._pcm.size)

"""Streaming sample-rate conversion by swresample (PyAV), and of phones' 8 kHz by a filter. One instance a direction."""

import av
import numpy as np
from numpy.typing import NDArray

from voicepipe.audio.pcm import Pcm

TAPS = 32
"""Taps of the filter between two samples: it looks 2 ms ahead, and the image that 3.4 kHz leave at 4.6 kHz is 80 dB
down."""
_BETA = 6.0
"""Beta of its Kaiser window."""


class Resampler:
    """Converts mono int16 from `source` to `target` Hz, holding back 2 ms (4 from 8 kHz).

    swresample rather than soxr: soxr in HQ holds back 12-115 ms, which is a third of the whole budget.
    Equal rates pass through untouched. `in_step` gives silence for what is held back at first, so that a packet in is a
    packet out: without it the last sample of each would wait for the next packet, 20 ms.
    """

    def __init__(self, source: int, target: int, *, in_step: bool = False) -> None:
        self.source = source
        self.target = target
        self._in_step = in_step
        self._taken = 0
        self._upsampler = HalfBandUpsampler() if in_step and target == 2 * source else None
        by_swr = source != target and not self._upsampler
        self._swr = av.AudioResampler(format="s16", layout="mono", rate=target) if by_swr else None

    def __call__(self, pcm: Pcm) -> Pcm:
        """The converted samples that are ready: int16[m], m about n * target / source."""
        if self._upsampler:
            return self._upsampler(pcm)
        if self._swr is None or pcm.size == 0:
            return pcm
        frame = av.AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = self.source
        out = self._joined(self._swr.resample(frame))
        if self._in_step:
            self._taken += pcm.size
            if out.size:
                missing = max(0, self._taken * self.target // self.source - out.size)
                out, self._in_step = np.concatenate([np.zeros(missing, np.int16), out]), False
        return out

    def flush(self) -> Pcm:
        """What is still held back; the instance is spent afterwards."""
        if self._upsampler:
            return self._upsampler(np.zeros(TAPS // 2, np.int16))
        return np.empty(0, np.int16) if self._swr is None else self._joined(self._swr.resample(None))

    @staticmethod
    def _joined(frames: list[av.AudioFrame]) -> Pcm:
        parts = [frame.to_ndarray().reshape(-1) for frame in frames]
        return np.concatenate(parts).astype(np.int16, copy=False) if parts else np.empty(0, np.int16)


class SegmentResampler:
    """Converts stretches of `samples` that do not follow one another, each as a new `Resampler` would. They share one
    swresample: making one takes longer than converting a second of sound.

    `samples` and a 50th of `source` must be whole numbers of samples at `target` as well.
    """

    def __init__(self, source: int, target: int, samples: int) -> None:
        self._resample = Resampler(source, target)
        self._heard: Pcm = np.zeros(source // 50 + samples, np.int16)
        """20 ms of silence, longer than the filter, so that nothing of the previous stretch is left; then the
        stretch."""
        self.stretch: Pcm = self._heard[-samples:]
        """To be filled in place; then call this object."""
        self._ready = self._resample(self._heard).size - target // 50

    def __call__(self) -> Pcm:
        """The converted `stretch`: int16[m], without the 2 ms that are held back. Its first 2 ms are as after silence;
        a new `Resampler` makes up what came before them."""
        converted = self._resample(self._heard)[-self._ready :]
        return converted.copy() if converted.base is self._heard else converted


class HalfBandUpsampler:
    """Doubles the sample rate, in step: the samples themselves, 2 ms late at 8 kHz, and one between each two by a
    half-band filter. As late as swresample, steeper at the edge, and a third of its time for 20 ms, most of which is
    PyAV's frames."""

    def __init__(self) -> None:
        between = np.arange(TAPS) - (TAPS - 1) / 2
        weights = np.sinc(between) * np.kaiser(TAPS + 2, _BETA)[1:-1]
        self._weights: NDArray[np.float32] = (weights / weights.sum()).astype(np.float32)
        self._last: NDArray[np.float32] = np.zeros(TAPS - 1, np.float32)

    def __call__(self, pcm: Pcm) -> Pcm:
        """int16[2 * n] of int16[n]."""
        heard = np.concatenate((self._last, pcm), dtype=np.float32)
        self._last = heard[1 - TAPS :]
        between = np.correlate(heard, self._weights, "valid") if pcm.size else self._last[:0]
        between.clip(-32768, 32767, out=between)
        out = np.empty((pcm.size, 2), np.int16)
        out[:, 0] = heard[TAPS // 2 - 1 :][: pcm.size]
        out[:, 1] = between
        return out.reshape(-1)

"""Streaming sample-rate conversion by swresample (PyAV). One instance a direction."""

import av
import numpy as np

from voicepipe.audio.pcm import Pcm


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
        self._swr = None if source == target else av.AudioResampler(format="s16", layout="mono", rate=target)

    def __call__(self, pcm: Pcm) -> Pcm:
        """The converted samples that are ready: int16[m], m about n * target / source."""
        if self._swr is None or pcm.size == 0:
            return pcm
        frame = av.AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = self.source
        out = self._joined(self._swr.resample(frame))
        if self._in_step:
            self._taken += pcm.size
            if out.size:
                held = max(0, self._taken * self.target // self.source - out.size)
                out, self._in_step = np.concatenate([np.zeros(held, np.int16), out]), False
        return out

    def flush(self) -> Pcm:
        """What is still held back; the instance is spent afterwards."""
        return np.empty(0, np.int16) if self._swr is None else self._joined(self._swr.resample(None))

    @staticmethod
    def _joined(frames: list[av.AudioFrame]) -> Pcm:
        parts = [frame.to_ndarray().reshape(-1) for frame in frames]
        return np.concatenate(parts).astype(np.int16, copy=False) if parts else np.empty(0, np.int16)

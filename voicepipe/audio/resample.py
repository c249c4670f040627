"""Streaming sample-rate conversion by swresample (PyAV). One instance a direction."""

import av
import numpy as np

from voicepipe.audio.pcm import Pcm


class Resampler:
    """Converts mono int16 from `source` to `target` Hz, holding back at most 2 ms.

    swresample rather than soxr: soxr in HQ holds back 12-115 ms, which is a third of the whole budget.
    Equal rates pass through untouched.
    """

    def __init__(self, source: int, target: int) -> None:
        self.source = source
        self.target = target
        self._swr = None if source == target else av.AudioResampler(format="s16", layout="mono", rate=target)

    def __call__(self, pcm: Pcm) -> Pcm:
        """The converted samples that are ready: int16[m], m about n * target / source."""
        if self._swr is None or pcm.size == 0:
            return pcm
        frame = av.AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = self.source
        return self._joined(self._swr.resample(frame))

    def flush(self) -> Pcm:
        """What is still held back; the instance is spent afterwards."""
        return np.empty(0, np.int16) if self._swr is None else self._joined(self._swr.resample(None))

    @staticmethod
    def _joined(frames: list[av.AudioFrame]) -> Pcm:
        parts = [frame.to_ndarray().reshape(-1) for frame in frames]
        return np.concatenate(parts).astype(np.int16, copy=False) if parts else np.empty(0, np.int16)

"""One utterance's sound, cut as the model takes it: chunks of one size, each made of the samples that its frames see.

A frame of the encoder stands for eight mel frames, and the first chunk begins seven mel frames before the sound: these
are silence that the model does not hear (`encoding.py`), so that the first chunk is as long as all others. Pure.
"""

import numpy as np

from voicepipe.audio import Pcm, ms_to_samples
from voicepipe.engines.asr.nemotron.front_end import HOP, WINDOW, samples

FACTOR = 8
"""Mel frames of one frame of the encoder, which has one every 80 ms."""
LEAD = (FACTOR - 1) * HOP + WINDOW // 2 + 1
"""Samples before the sound with which the first chunk begins."""
BEHIND = ms_to_samples(80)
"""Samples that the model has to hear behind a word for the word's last token."""


def frames_of(chunk_ms: int) -> int:
    """Frames of the encoder in a chunk."""
    return chunk_ms // (FACTOR * HOP // ms_to_samples(1))


class Chunks:
    """Cuts one utterance's sound into the chunks that the model takes, of `frames` frames of the encoder each."""

    def __init__(self, frames: int) -> None:
        self.fed = 0
        """Samples that were fed."""
        self.heard = 0
        """Samples that the chunks taken so far covered."""
        self._step = frames * FACTOR * HOP
        self._size = samples(frames * FACTOR)
        self._pieces = [np.zeros(LEAD, np.int16)]
        self._waiting = LEAD

    def feed(self, pcm: Pcm) -> None:
        """Take more sound: int16[n] at 16 kHz."""
        self._pieces.append(pcm.copy())
        self._waiting += pcm.size
        self.fed += pcm.size

    @property
    def ready(self) -> bool:
        """Whether a whole chunk is there."""
        return self._waiting >= self._size

    def take(self) -> Pcm:
        """Take the next chunk, which is there: int16[size]."""
        whole = self._whole()
        self._pieces = [whole[self._step :]]
        self._waiting -= self._step
        self.heard = self.fed - (self._waiting - (self._size - self._step))
        return whole[: self._size]

    def rest(self) -> list[Pcm]:
        """The sound that is no whole chunk yet, followed by silence: one chunk or two. It is not taken."""
        count = max(1, -(-(self._waiting + BEHIND - (self._size - self._step)) // self._step))
        padded = np.zeros(self._size + (count - 1) * self._step, np.int16)
        padded[: self._waiting] = self._whole()
        return [padded[number * self._step :][: self._size] for number in range(count)]

    def _whole(self) -> Pcm:
        if len(self._pieces) > 1:
            self._pieces = [np.concatenate(self._pieces)]
        return self._pieces[0]

"""From an utterance's sound to what the model hears: chunks of one size, each made of the samples that its frames see;
and log-mel frames of 10 ms, as NVIDIA's front end makes them. Pure.

A frame of the encoder stands for eight mel frames, and the first chunk begins seven mel frames before the sound: these
are silence that the model does not hear (`encoding.py`), so that the first chunk is as long as all others.

transformers' own extractor wants librosa. Nothing here depends on what comes later or on how loud a call is, so frames
of a stream are those of the whole recording.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio import RATE, Pcm, ms_to_samples

FFT, WINDOW, HOP = 512, 400, 160
"""Samples. A frame is heard through a window of 25 ms, and they come every 10 ms."""
PRE_EMPHASIS = 0.97
GUARD = 2.0**-24
"""Added to every power, for the logarithm of silence."""
FACTOR = 8
"""Mel frames of one frame of the encoder, which has one every 80 ms."""
LEAD = (FACTOR - 1) * HOP + WINDOW // 2 + 1
"""Samples before the sound with which the first chunk begins."""
BEHIND = ms_to_samples(80)
"""Samples that the model has to hear behind a word for the word's last token."""


def window() -> NDArray[np.float32]:
    """Hann's, symmetric: float32[WINDOW]."""
    return np.hanning(WINDOW).astype(np.float32)


def mel_filters(bands: int) -> NDArray[np.float32]:
    """Triangles of equal area on Slaney's scale, which are Whisper's, too: float32[FFT // 2 + 1, bands]."""
    # Not above: it takes CTranslate2 along, one second.
    from faster_whisper.feature_extractor import FeatureExtractor

    filters: NDArray[np.float32] = FeatureExtractor.get_mel_filters(RATE, FFT, bands).T.astype(np.float32)
    return filters


def samples(frames: int) -> int:
    """The number of samples that `frames` frames are made of: from a sample before the first one's window to the last
    one's end."""
    return (frames - 1) * HOP + WINDOW + 1


def positions(frames: int) -> NDArray[np.int64]:
    """The positions of each frame's samples among those that are emphasised: int64[frames, WINDOW]."""
    return np.arange(frames)[:, None] * HOP + np.arange(WINDOW)


def log_mel(library: Any, sound: Any, at: Any, shape: Any, filters: Any) -> Any:
    """float[..., samples(n)] in -1..1 -> float[..., n, bands].

    By numpy or torch, whichever `library` is; `at`, `shape`, `filters` are its arrays of `positions(n)`, `window()` and
    `mel_filters(bands)`.
    """
    emphasised = sound[..., 1:] - PRE_EMPHASIS * sound[..., :-1]
    spectrum = library.fft.rfft(emphasised[..., at] * shape, FFT)
    power = spectrum.real**2 + spectrum.imag**2
    return library.log(power @ filters + GUARD)


def frames_of(chunk_ms: int) -> int:
    """Frames of the encoder in a chunk."""
    return chunk_ms // (FACTOR * HOP // ms_to_samples(1))


class ChunkCutter:
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

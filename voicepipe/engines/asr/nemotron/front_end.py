"""From sound to what the model hears: log-mel frames of 10 ms, as NVIDIA's front end makes them. Pure.

transformers' own extractor wants librosa. Nothing here depends on what comes later or on how loud a call is, so frames
of a stream are those of the whole recording.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio import RATE

FFT, WINDOW, HOP = 512, 400, 160
"""Samples. A frame is heard through a window of 25 ms, and they come every 10 ms."""
PRE_EMPHASIS = 0.97
GUARD = 2.0**-24
"""Added to every power, for the logarithm of silence."""


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

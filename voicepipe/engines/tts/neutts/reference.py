"""The recording of a voice: a WAV file -> what the codec hears. Blocking."""

import wave
from pathlib import Path

import numpy as np

from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.engines.tts.shaping import audible

LEAST_S, MOST_S = 2.0, 20.0
"""With less the voice is not the person's; more leaves no room for what is to be said."""

WIDEST = 4
"""Bytes of a sample."""


def read(key: str, file: Path) -> Pcm:
    """int16[n] at 16 kHz, its channels mixed. `key`: where the configuration names it. Raises EngineMissing: there is
    no such file; EngineError: it is no WAV file, too short, too long or silent."""
    try:
        with wave.open(str(file), "rb") as opened:
            rate, channels, width = opened.getframerate(), opened.getnchannels(), opened.getsampwidth()
            data = opened.readframes(opened.getnframes())
        if not rate or width > WIDEST:
            raise wave.Error(f"{rate} Hz, {8 * width} bits")
    except FileNotFoundError:
        raise EngineMissing(f"{key}: there is no {file}") from None
    except (wave.Error, EOFError, OSError) as error:
        raise EngineError(f"{key}: {file} is no WAV file of whole numbers ({error}): save it as 16-bit PCM") from None
    samples = _samples(data, width)
    mixed = samples[: samples.size // channels * channels].reshape(-1, channels).mean(axis=1)
    seconds = mixed.size / rate
    if not LEAST_S <= seconds <= MOST_S:
        raise EngineError(f"{key}: {file} lasts {seconds:.1f} s: record 3 to 15 s (2 to 20 are taken)")
    pcm = np.clip(np.round(mixed), -32768, 32767).astype(np.int16)
    resampler = Resampler(rate, RATE)
    heard = np.concatenate([resampler(pcm), resampler.flush()])
    if audible(heard, RATE) is None:
        raise EngineError(f"{key}: {file} is silent: record somebody who speaks")
    return heard


def _samples(data: bytes, width: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """In the range of 16 bits. `width`: bytes of a sample; one byte is unsigned, more are signed."""
    if width == 1:
        return (np.frombuffer(data, np.uint8).astype(np.float64) - 128) * 256
    whole = np.frombuffer(data, np.uint8)[: len(data) // width * width].reshape(-1, width)
    wide = np.zeros((len(whole), 4), np.uint8)
    wide[:, 4 - width :] = whole
    return wide.view("<i4").reshape(-1).astype(np.float64) / 65536

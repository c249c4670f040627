"""From sound to log-mel frames."""

from typing import Any

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor

from voicepipe.engines.asr.nemotron import front_end


def test_the_bands_are_slaneys() -> None:
    theirs = FeatureExtractor.get_mel_filters(16_000, front_end.FFT, 128)
    assert np.abs(front_end.mel_filters(128).T - theirs).max() < 1e-6


def mel(sound: Any) -> Any:
    frames = (sound.size - front_end.samples(1)) // front_end.HOP + 1
    at, shape, filters = front_end.positions(frames), front_end.window(), front_end.mel_filters(128)
    return front_end.log_mel(np, sound, at, shape, filters)


def test_a_tone_is_heard_in_its_band_and_silence_as_the_least() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(16_000) / 16_000)
    edges = front_end._hz(np.linspace(0, front_end._mels(8000), 130))
    assert set(mel(tone).argmax(-1)) <= {int(np.searchsorted(edges, 1000)) - shift for shift in (0, 1, 2)}
    assert np.allclose(mel(np.zeros(1600)), np.log(front_end.GUARD))

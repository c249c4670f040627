"""From sound to log-mel frames."""

from typing import Any

import numpy as np
import pytest

from voicepipe.engines.asr.nemotron import front_end


def test_the_bands_are_slaneys() -> None:
    """Linear below 1 kHz, where the middles of 128 bands are 23 Hz apart; logarithmic up to 8 kHz."""
    middles = front_end.mel_filters(128).argmax(0) * 16_000 / front_end.FFT
    assert middles[42] == pytest.approx(1000, abs=32) and middles[127] == pytest.approx(7790, abs=64)


def mel(sound: Any) -> Any:
    frames = (sound.size - front_end.samples(1)) // front_end.HOP + 1
    at, shape, filters = front_end.positions(frames), front_end.window(), front_end.mel_filters(128)
    return front_end.log_mel(np, sound, at, shape, filters)


def test_a_tone_is_heard_in_its_band_and_silence_as_the_least() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(16_000) / 16_000)
    assert set(mel(tone).argmax(-1)) <= {41, 42, 43}
    assert np.allclose(mel(np.zeros(1600)), np.log(front_end.GUARD))

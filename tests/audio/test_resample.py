"""From 8 to 16 kHz in step: as much as was given, 2 ms later, and nothing above 4 kHz that was not there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.audio import Pcm, dbfs
from voicepipe.audio.resample import Resampler, SegmentResampler

NOISE = np.random.default_rng(1).normal(0, 6000, 4000).clip(-32768, 32767).astype(np.int16)


def doubled(pcm: Pcm, sizes: list[int]) -> Pcm:
    resample, parts = Resampler(8000, 16_000, in_step=True), []
    for part in np.split(pcm, np.cumsum(sizes)):
        parts.append(resample(part))
        assert parts[-1].size == 2 * part.size and parts[-1].dtype == np.int16
    return np.concatenate([*parts, resample.flush()])


@given(st.lists(st.integers(0, 400), max_size=12))
def test_packets_of_any_size_are_one_stream(sizes: list[int]) -> None:
    assert np.array_equal(doubled(NOISE, sizes), doubled(NOISE, [160] * 25))


def test_its_own_samples_come_back_2_ms_later() -> None:
    heard = doubled(NOISE, [160] * 25)
    assert np.array_equal(heard[32::2], NOISE)
    assert heard.size == 2 * NOISE.size + 32


@pytest.mark.parametrize(("pitch", "below"), [(300, 60), (1000, 70), (2000, 70), (3000, 70), (3400, 60), (3600, 35)])
def test_a_tone_keeps_its_level_and_has_no_image(pitch: int, below: float) -> None:
    tone = (10_000 * np.sin(2 * np.pi * pitch * np.arange(16_000) / 8000)).astype(np.int16)
    heard = doubled(tone, [160] * 100)[-16_032:-32]
    assert dbfs(heard) == pytest.approx(dbfs(tone), abs=0.2)
    spectrum = 20 * np.log10(np.abs(np.fft.rfft(heard * np.blackman(heard.size))) + 1e-9)
    assert spectrum.argmax() == pytest.approx(pitch, abs=1)
    image = 8000 - pitch
    assert spectrum.max() - spectrum[image - 3 : image + 4].max() > below


def test_full_scale_is_clipped_and_does_not_wrap() -> None:
    square = np.tile(np.repeat(np.array([32_767, -32_768], np.int16), 8), 100)
    heard = doubled(square, [160] * 10)
    own, between = heard[32::2].astype(np.int32), heard[33::2].astype(np.int32)
    assert (between.max(), between.min()) == (32_767, -32_768)
    inside = own[:-1] == own[1:]
    assert (np.sign(between[:-1])[inside] == np.sign(own[:-1])[inside]).all()


def test_silence_stays_silent() -> None:
    assert not doubled(np.zeros(1600, np.int16), [160] * 10).any()


@pytest.mark.parametrize("rate", [8000, 16_000, 24_000, 48_000])
def test_stretches_know_nothing_of_one_another(rate: int) -> None:
    convert, rng = SegmentResampler(rate, 16_000, rate), np.random.default_rng(2)
    for level in (32_000, 20, 8000):
        sound = rng.integers(-level, level, rate).astype(np.int16)
        convert.stretch[:] = sound
        alone, together = Resampler(rate, 16_000)(sound), convert()
        assert together.size == alone.size
        assert np.array_equal(together[32:], alone[32:])

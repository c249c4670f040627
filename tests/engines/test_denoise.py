"""Noise is taken out of what a recogniser hears."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.audio import RATE, dbfs
from voicepipe.audio.resample import Resampler
from voicepipe.engines.denoise import FRAME, HOP, Denoiser


def test_noise_is_taken_out_and_the_tone_stays() -> None:
    noise = np.random.default_rng(0).normal(0, 300, 3 * RATE)
    tone = np.where(np.arange(3 * RATE) < RATE, 0, 6000 * np.sin(np.arange(3 * RATE) * 2 * math.pi * 440 / RATE))
    clean = Denoiser().clean((noise + tone).astype(np.int16))
    assert dbfs(clean[RATE // 2 : RATE - FRAME]) < dbfs(noise[:RATE].astype(np.int16)) - 12
    assert abs(dbfs(clean[2 * RATE :]) - dbfs(tone[2 * RATE :].astype(np.int16))) < 1


def test_a_telephone_line_is_told_from_a_full_band() -> None:
    sound = np.random.default_rng(0).normal(0, 2000, RATE).astype(np.int16)
    down, up = Resampler(RATE, 8000), Resampler(8000, RATE)
    telephone = np.concatenate([up(np.concatenate([down(sound), down.flush()])), up.flush()])
    for pcm, narrow in ((sound, False), (telephone, True), (np.zeros(RATE, np.int16), None)):
        denoiser = Denoiser()
        denoiser.clean(pcm)
        assert denoiser.narrow is narrow


@given(st.lists(st.integers(0, 3000), max_size=8))
def test_chunks_of_any_size_give_the_same_sound(sizes: list[int]) -> None:
    noise = np.random.default_rng(0).normal(0, 300, sum(sizes)).astype(np.int16)
    chunked = Denoiser()
    pieces = [chunked.clean(piece) for piece in np.split(noise, np.cumsum(sizes))]
    together = np.concatenate([*pieces, chunked.clean(np.empty(0, np.int16), last=True)])
    assert together.size == max(0, (noise.size + FRAME - HOP - FRAME) // HOP + 1) * HOP
    whole = Denoiser()
    expected = np.concatenate([whole.clean(noise), whole.clean(np.empty(0, np.int16), last=True)])
    np.testing.assert_array_equal(together, expected)

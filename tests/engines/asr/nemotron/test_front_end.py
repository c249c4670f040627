"""From sound to chunks, and to log-mel frames."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.engines.asr.nemotron import front_end
from voicepipe.engines.asr.nemotron.front_end import BEHIND, FACTOR, LEAD, ChunkCutter, frames_of


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


def sound(samples: int) -> Any:
    return (np.arange(samples) % 30_000 + 1).astype(np.int16)


@given(st.sampled_from([80, 160, 320, 560, 1120]), st.lists(st.integers(0, 5000), max_size=20))
def test_chunks_are_the_sound_however_it_comes(chunk_ms: int, sizes: list[int]) -> None:
    frames = frames_of(chunk_ms)
    chunks, whole, taken = ChunkCutter(frames), sound(sum(sizes)), []
    at = 0
    for size in sizes:
        chunks.feed(whole[at : at + size])
        at += size
        while chunks.ready:
            before = chunks.rest()
            taken.append(chunks.take())
            assert np.array_equal(before[0], taken[-1])
    assert chunks.fed == whole.size
    padded = np.concatenate([np.zeros(LEAD, np.int16), whole, np.zeros(100_000, np.int16)])
    step, size = frames * FACTOR * front_end.HOP, front_end.samples(frames * FACTOR)
    rest = chunks.rest()
    assert len(rest) in {1, 2}
    for number, chunk in enumerate([*taken, *rest]):
        assert np.array_equal(chunk, padded[number * step :][:size])
    covered = (len(taken) + len(rest) - 1) * step + size - LEAD
    assert covered >= whole.size + BEHIND, "the last word's end is heard, and what follows it"
    assert chunks.heard == (len(taken) - 1) * step + size - LEAD if taken else chunks.heard == 0

"""The fall of the voice."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.audio import RATE, Pcm
from voicepipe.turn.pitch import LIMIT, Pitch


def voice(pitches_hz: Sequence[float], ms: int = 100) -> Pcm:
    """A voiced sound that glides through `pitches_hz`, `ms` each."""
    size = ms * RATE // 1000
    course = np.interp(np.arange(size * len(pitches_hz)) / size, np.arange(len(pitches_hz)), pitches_hz)
    phase = 2 * np.pi * np.cumsum(course) / RATE
    harmonics = np.array([1, 2, 3, 4])[:, np.newaxis]
    pcm: Pcm = (3000 * (np.sin(harmonics * phase) / harmonics).sum(axis=0)).astype(np.int16)
    return pcm


def log_odds(pcm: Pcm, block: int = 320) -> float:
    pitch = Pitch()
    for start in range(0, pcm.size, block):
        pitch.push(pcm[start : start + block])
    return pitch.log_odds()


@pytest.mark.parametrize("base", [90, 130, 210, 280])
def test_a_fall_speaks_for_the_end_and_a_level_voice_against_it(base: float) -> None:
    falling = log_odds(voice([base] * 8 + [base * 0.9, base * 0.75, base * 0.68]))
    level = log_odds(voice([base] * 11))
    assert falling > 0.5
    assert level < -0.5


def test_block_sizes_make_no_difference() -> None:
    pcm = voice([120] * 8 + [95, 85])
    assert log_odds(pcm, 320) == log_odds(pcm, 77) == log_odds(pcm, pcm.size)


def test_silence_noise_and_a_short_sound_say_nothing() -> None:
    noise = np.random.default_rng(0).normal(0, 2000, RATE).astype(np.int16)
    for pcm in (np.zeros(RATE, np.int16), np.empty(0, np.int16), voice([120], 90), noise):
        assert log_odds(pcm) == 0


def test_silence_after_the_voice_changes_nothing() -> None:
    pcm = voice([120] * 8 + [95, 85])
    assert log_odds(np.concatenate([pcm, np.zeros(3200, np.int16)])) == pytest.approx(log_odds(pcm), abs=0.6)


@given(st.lists(st.integers(0, 3000), max_size=6), st.integers(0, 2**31))
def test_any_sound_has_a_bounded_opinion(sizes: list[int], seed: int) -> None:
    rng, pitch = np.random.default_rng(seed), Pitch()
    for size in sizes:
        pitch.push(rng.integers(-32768, 32767, size).astype(np.int16))
    assert -LIMIT <= pitch.log_odds() <= LIMIT

"""Levels of samples, and samples as time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.audio.pcm import BLOCK, BLOCK_MS, RATE, SILENCE_DBFS, dbfs, ms_to_samples, samples_to_ms


@pytest.mark.parametrize(
    ("pcm", "expected"),
    [
        ([], SILENCE_DBFS),
        ([0, 0], SILENCE_DBFS),
        ([-32768] * 320, 0.0),
        ([16384, -16384], -6.02),
        ([3277] * 10, -20.0),
        ([32767, 0], -3.01),
        ([1] + [0] * 10_000, SILENCE_DBFS),
    ],
)
def test_the_level_is_that_of_the_power(pcm: list[int], expected: float) -> None:
    assert dbfs(np.array(pcm, np.int16)) == pytest.approx(expected, abs=0.01)


def test_twice_as_loud_is_6_db_more() -> None:
    tone = (8000 * np.sin(np.arange(1600) / 10)).astype(np.int16)
    assert dbfs(tone) - dbfs(tone // 2) == pytest.approx(6.02, abs=0.01)


def test_a_block_is_20_ms() -> None:
    assert ms_to_samples(BLOCK_MS) == BLOCK == 320
    assert samples_to_ms(BLOCK) == BLOCK_MS


@pytest.mark.parametrize(
    ("ms", "rate", "samples"), [(20, 8000, 160), (0.03, RATE, 0), (0.04, RATE, 1), (1000, 44_100, 44_100)]
)
def test_milliseconds_are_rounded_to_whole_samples(ms: float, rate: int, samples: int) -> None:
    assert ms_to_samples(ms, rate) == samples


@given(st.integers(0, 10**9), st.sampled_from([8000, 16_000, 24_000, 48_000]))
def test_samples_come_back_from_their_time(samples: int, rate: int) -> None:
    assert ms_to_samples(samples_to_ms(samples, rate), rate) == samples

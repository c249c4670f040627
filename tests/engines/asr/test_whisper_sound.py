"""What is kept of a caller's sound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.contract import tone
from voicepipe.audio import RATE, Pcm
from voicepipe.engines.asr.whisper_sound import FRAME, MARGIN, WhisperSound

LEAD = MARGIN * FRAME


def silence(seconds: float, level: float = 5) -> Pcm:
    return np.random.default_rng(0).normal(0, level, round(seconds * RATE)).astype(np.int16)


def heard(*sounds: Pcm) -> WhisperSound:
    sound = WhisperSound()
    for pcm in sounds:
        sound.feed(pcm)
    return sound


def test_a_pause_is_shortened_and_what_is_around_the_voice_is_left_out() -> None:
    sound = heard(silence(2), tone(1.0), silence(3), tone(1.0), silence(2))
    assert sound.end == LEAD + RATE + 2 * LEAD + RATE
    assert sound.window(10 * RATE).pcm.size == sound.end + LEAD
    assert sound.fed == 9 * RATE


def test_noise_is_told_from_the_voice_above_it() -> None:
    sound = heard(tone(1.0) + silence(1, 150), silence(2, 150))
    assert sound.end == RATE


def test_a_window_tells_where_its_voice_is() -> None:
    sound = heard(silence(0.5), tone(1.0), silence(1), tone(0.5), silence(0.1))
    _, end, voiced = sound.window(10 * RATE)
    assert (end, voiced) == (sound.end, round(1.5 * RATE))
    assert sound.window(LEAD + RATE // 2)[1:] == (LEAD + RATE // 2, RATE // 2)
    sound.drop(LEAD + RATE)
    assert sound.window(10 * RATE)[1:] == (sound.end - sound.start, RATE // 2)


@pytest.mark.parametrize("noise", [5, 150])
def test_a_gap_is_counted_from_the_last_voice(noise: float) -> None:
    sound = heard(silence(0.5, noise))
    assert sound.gap == 0, "nothing was said yet"
    sound.feed(tone(1.0) + silence(1, noise))
    assert sound.gap == 0
    for frames in (1, 2, 3):
        sound.feed(silence(0.02, noise))
        assert sound.gap == frames * FRAME
    sound.feed(tone(0.02))
    assert sound.gap == 0


@pytest.mark.parametrize("pcm", [np.zeros(RATE, np.int16), silence(1, 30), tone(0.08)])
def test_there_is_nothing_to_read_in_silence_and_in_a_crack(pcm: Pcm) -> None:
    assert heard(pcm).unread == 0


def test_what_was_read_and_what_was_dropped() -> None:
    sound = heard(tone(2.0))
    assert sound.unread == sound.end == 2 * RATE
    sound.read = RATE
    sound.drop(RATE // 2)
    assert sound.unread == RATE
    assert sound.window(RATE * 9).pcm.size == 2 * RATE - RATE // 2
    assert sound.window(100).pcm.size == 100
    sound.feed(silence(1))
    sound.feed(tone(0.5))
    assert sound.window(RATE * 9).pcm.size == sound.end - sound.start == 2 * RATE + 2 * LEAD


@settings(deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=8))
def test_chunks_of_any_size_keep_the_same(sizes: list[int]) -> None:
    pcm = np.concatenate([silence(0.3), tone(0.4), silence(0.8), tone(0.2)])
    chunked = heard(*np.split(pcm, np.cumsum(sizes)))
    assert np.array_equal(chunked.window(RATE).pcm, heard(pcm).window(RATE).pcm)
    assert chunked.gap == heard(pcm).gap
    assert chunked.fed == pcm.size

"""Slower or faster, at the same pitch."""

import numpy as np
import pytest

from tests.engines.tts.neutts.test_phrase_sound import tone
from voicepipe.engines.tts.neutts.tempo import Tempo

RATE, HOP = 24_000, 480


@pytest.mark.parametrize("speed", [0.5, 0.7, 1.3, 2.0])
def test_another_speed_is_another_length_at_the_same_pitch(speed: float) -> None:
    tempo, sound = Tempo(speed, RATE), tone(2.0, hz=160)
    made = np.concatenate([*(tempo.push(sound[at : at + 3840]) for at in range(0, sound.size, 3840)), tempo.flush()])
    assert made.size == pytest.approx(sound.size / speed, rel=0.05)
    middle = made[made.size // 4 : made.size * 3 // 4]
    assert np.flatnonzero(np.diff(np.signbit(middle))).size / (middle.size / RATE) == pytest.approx(320, rel=0.05)
    assert np.abs(middle).max() == pytest.approx(0.3, rel=0.1)
    assert np.abs(np.diff(middle)).max() < 3 * np.abs(np.diff(sound)).max(), "it does not click"


def test_at_its_own_speed_nothing_is_touched() -> None:
    tempo, sound = Tempo(1.0, RATE), tone(0.5)
    assert tempo.push(sound) is sound and not tempo.flush().size


def test_pieces_of_any_size_make_the_same_sound() -> None:
    sound = np.random.default_rng(0).normal(size=20_000).astype(np.float32)
    whole, parts = Tempo(1.3, RATE), Tempo(1.3, RATE)
    expected = np.concatenate([whole.push(sound), whole.flush()])
    made = [parts.push(sound[at : at + 777]) for at in range(0, sound.size, 777)]
    assert np.array_equal(np.concatenate([*made, parts.flush()]), expected)

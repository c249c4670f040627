"""Our own sound, mixed back, is recognised; other sound is not."""

import numpy as np
import pytest

from voicepipe.audio import RATE, Pcm
from voicepipe.turn.echo import FAR, WINDOW, likeness


def voiced(seconds: float, pitch: float, seed: int) -> Pcm:
    """Something like speech: a pulse train with a wandering pitch through a noise-shaped envelope."""
    rng = np.random.default_rng(seed)
    size = int(seconds * RATE)
    wander = np.cumsum(rng.normal(0, 0.02, size)) + pitch
    phase = np.cumsum(wander / RATE)
    pulses = np.diff(np.floor(phase), prepend=0.0)
    filtered = np.convolve(pulses, np.exp(-np.arange(400) / 40) * np.cos(np.arange(400) * rng.uniform(0.2, 0.6)))[:size]
    envelope = np.repeat(rng.uniform(0.1, 1, size // 1600 + 1), 1600)[:size]
    sound = filtered * envelope + rng.normal(0, 0.003, size)
    pcm: Pcm = (sound / np.abs(sound).max() * 12000).astype(np.int16)
    return pcm


@pytest.mark.parametrize("delay_ms", [40, 120, 250])
@pytest.mark.parametrize("gain_db", [-10, -20, -30])
def test_echo_is_known_at_any_delay_and_level(delay_ms: int, gain_db: float) -> None:
    far = voiced(1.0, 120, 1)
    end = FAR - delay_ms * RATE // 1000
    near = far[end - WINDOW : end] * 10 ** (gain_db / 20) + np.random.default_rng(5).normal(0, 8, WINDOW)
    assert likeness(near.astype(np.int16), far) > 0.5


@pytest.mark.parametrize("seed", range(8))
def test_another_voice_is_not_our_echo(seed: int) -> None:
    far, near = voiced(1.0, 120, 1), voiced(0.5, 100 + 15 * seed, 50 + seed)[:WINDOW]
    assert likeness(near, far) < 0.5
    mixed = near + far[2000 : 2000 + WINDOW] * 0.1
    assert likeness(mixed.astype(np.int16), far) < 0.5


def test_silence_and_too_little_sound_are_no_echo() -> None:
    assert likeness(np.zeros(WINDOW, np.int16), voiced(1.0, 120, 1)) == 0
    assert likeness(voiced(1.0, 120, 1)[:100], voiced(1.0, 120, 1)) == 0
    assert likeness(voiced(1.0, 120, 1)[:WINDOW], np.empty(0, np.int16)) == 0


def by_definition(near: Pcm, far: Pcm) -> float:
    """The same, one delay after the other."""
    a, b = np.diff(near.astype(np.float64)), np.diff(far.astype(np.float64))
    best = 0.0
    for at in range(b.size - a.size + 1):
        stretch = b[at : at + a.size]
        norm = np.sqrt(np.dot(stretch, stretch) * np.dot(a, a))
        if norm > a.size:
            best = max(best, abs(np.dot(stretch, a)) / norm)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_highest_correlation_of_any_delay(seed: int) -> None:
    rng, far = np.random.default_rng(seed), voiced(0.5, 120, 1)
    far[: seed * 1000] = 0
    share = far[2000 : 2000 + WINDOW] * rng.uniform(0, 0.5)
    for near in (voiced(0.5, 90 + 20 * seed, seed)[:WINDOW] + share, rng.normal(0, 3000, WINDOW) + share, share):
        heard = near.clip(-32768, 32767).astype(np.int16)
        assert likeness(heard, far) == pytest.approx(by_definition(heard, far), abs=1e-9)
    loudest = np.tile(np.array([32_767, -32_768], np.int16), FAR // 2)
    assert likeness(loudest[:WINDOW], loudest) == pytest.approx(1.0)
    assert likeness(far, far) == pytest.approx(1.0)

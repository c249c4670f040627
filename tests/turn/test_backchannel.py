"""A voice behind closed lips, told from speech."""

import numpy as np
import pytest

from voicepipe.audio import BLOCK, RATE, Pcm
from voicepipe.turn.backchannel import LOWEST_HZ, OPEN_HZ, VoiceBurst, powers

AT = np.arange(BLOCK) / RATE


def voice(pitch: float, fall_db: float, noise: float = 0.0) -> Pcm:
    """A block of harmonics that fall by `fall_db` an octave."""
    tone = sum(np.sin(2 * np.pi * k * pitch * AT) * k ** (-fall_db / 6) for k in range(1, int(4000 / pitch)))
    rough = np.random.default_rng(0).normal(0, 1, BLOCK)
    return np.round(4000 * (np.asarray(tone) + noise * rough)).astype(np.int16)


@pytest.mark.parametrize("pitch", [90, 120, 180, 230])
def test_harmonics_that_fall_steeply_are_a_backchannel(pitch: float) -> None:
    assert not heard(*2 * [voice(pitch, 12)])


@pytest.mark.parametrize("pitch", [90, 120, 180, 230])
def test_an_open_vowel_and_a_consonant_are_none(pitch: float) -> None:
    assert heard(*2 * [voice(pitch, 6)])
    assert heard(*2 * [voice(pitch, 12, noise=0.3)])


def test_silence_is_no_speech() -> None:
    assert not heard(*2 * [np.zeros(BLOCK, np.int16)])


def heard(*blocks: Pcm) -> bool:
    burst = VoiceBurst()
    for block in blocks:
        burst.push(block)
    return burst.speech


def hiss(below_db: float) -> Pcm:
    """A block of noise, that much weaker than a backchannel."""
    loud = np.sqrt(np.mean(voice(120, 12).astype(np.float64) ** 2))
    return np.random.default_rng(1).normal(0, loud * 10 ** (-below_db / 20), BLOCK).astype(np.int16)


def test_the_hiss_of_the_room_around_a_backchannel_is_no_speech_and_a_consonant_is() -> None:
    murmur = voice(120, 12)
    assert heard(hiss(25), hiss(25)), "by itself it might be one"
    assert not heard(hiss(25), hiss(25), murmur, hiss(25), murmur, murmur, hiss(25))
    assert heard(hiss(12), murmur, murmur, hiss(12), murmur)
    assert heard(murmur, murmur, voice(120, 6), voice(120, 6))


def test_one_thump_does_not_make_what_follows_a_backchannel() -> None:
    thump = np.clip(voice(90, 12).astype(np.int32) * 8, -32768, 32767).astype(np.int16)
    quiet = (voice(180, 6) * 0.1).astype(np.int16)
    assert heard(thump, quiet, quiet, quiet)


def test_powers_are_those_of_the_spectrum() -> None:
    block = voice(130, 6, noise=0.1)
    spectrum = np.abs(np.fft.rfft(block * np.hanning(BLOCK))) ** 2
    hertz = np.fft.rfftfreq(BLOCK, 1 / RATE)
    assert powers(block) == pytest.approx((spectrum[hertz >= LOWEST_HZ].sum(), spectrum[hertz >= OPEN_HZ].sum()))

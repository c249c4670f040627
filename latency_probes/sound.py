"""What surrounds a caller's voice: noise beds, and the sounds laid over a reply. Equal seeds give equal samples.

Everything is int16[n] at 24 kHz.
"""

import zlib
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from latency_probes.timeline import BLOCK, WIRE_RATE
from voicepipe.audio import Pcm, ms_to_samples

Floats = NDArray[np.float64]

SPEECH_DBFS = -23.0
"""Level of the speech in every clip, which the signal-to-noise ratios refer to."""
ROOM_DBFS = -66.0
BED_BLOCKS = 400
"""A bed lasts 8 s and repeats without a seam."""


def rng_for(seed: int, name: str) -> np.random.Generator:
    """Random numbers that depend on the run's seed and on this name alone, so that no draw moves another."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


@lru_cache(32)
def bed(noise: str, seed: int) -> Pcm:
    """The noise of a caller's room, int16[400 * 480], periodic.

    `noise` is "quiet", or "pink_N" or "babble_N" with the ratio of speech to noise in dB.
    """
    rng = rng_for(seed, noise)
    samples = BED_BLOCKS * BLOCK
    room = at_level(coloured(samples, rng, pink), ROOM_DBFS)
    kind, _, ratio = noise.partition("_")
    if kind == "quiet":
        return to_pcm(room)
    loud: Floats = babble(samples, rng) if kind == "babble" else coloured(samples, rng, pink)
    return to_pcm(room + at_level(loud, SPEECH_DBFS - float(ratio)))


def mixed(pcm: Pcm, noise: Pcm, phase: int) -> Pcm:
    """`pcm` over `noise`, which repeats and starts at sample `phase`; clipped to int16."""
    under = np.take(noise, np.arange(phase, phase + pcm.size), mode="wrap")
    return to_pcm(pcm.astype(np.float64) + under)


def pink(hertz: Floats) -> Floats:
    """Amplitude of pink noise: 3 dB less an octave, nothing below 50 Hz."""
    return np.asarray(np.where(hertz < 50, 0, 1 / np.sqrt(np.maximum(hertz, 50))), np.float64)


def speech_shaped(hertz: Floats) -> Floats:
    """Amplitude of the long-term spectrum of speech: flat up to 500 Hz, then 9 dB less an octave."""
    return np.asarray(np.where(hertz < 100, 0, (np.maximum(hertz, 500) / 500) ** -1.5), np.float64)


def coloured(samples: int, rng: np.random.Generator, amplitude: Callable[[Floats], Floats]) -> Floats:
    """Periodic noise with this spectrum (Hz to amplitude), float[samples], RMS 1."""
    hertz = np.asarray(np.fft.rfftfreq(samples, 1 / WIRE_RATE), np.float64)
    spectrum = np.exp(2j * np.pi * rng.random(hertz.size)) * amplitude(hertz)
    noise = np.asarray(np.fft.irfft(spectrum, samples), np.float64)
    return at_level(noise, 0.0) / 32768


def babble(samples: int, rng: np.random.Generator, talkers: int = 6) -> Floats:
    """Several talkers nobody can understand: speech-shaped noise, each talker with syllables of 2-6 a second."""
    total = np.zeros(samples)
    for _ in range(talkers):
        envelope = coloured(samples, rng, lambda hertz: ((hertz >= 2) & (hertz <= 6)).astype(np.float64))
        total += coloured(samples, rng, speech_shaped) * np.clip(1 + envelope, 0, None)
    return total


def at_level(sound: Floats, level: float) -> Floats:
    """`sound` scaled to an RMS of `level` dBFS."""
    return sound * float(32768 * 10 ** (level / 20) / np.sqrt(np.mean(sound**2)))


def to_pcm(sound: Floats) -> Pcm:
    """`sound` in units of one sample step, rounded and clipped."""
    pcm: Pcm = np.clip(np.round(sound), -32768, 32767).astype(np.int16)
    return pcm


# -- sounds laid over a reply ------------------------------------------------------------------------------------------


def hum(rng: np.random.Generator) -> Pcm:
    """An "mm-hm": two bursts of a low voice through closed lips, the second higher; 350-550 ms."""
    pitch, syllable = rng.uniform(90, 190), rng.uniform(0.14, 0.22)
    bursts = [voiced_burst(pitch * step, syllable, rng) for step in (1.0, rng.uniform(1.1, 1.3))]
    gap = np.zeros(ms_to_samples(rng.uniform(20, 80), WIRE_RATE))
    return to_pcm(at_level(np.concatenate([bursts[0], gap, bursts[1]]), rng.uniform(-30, -24)))


def voiced_burst(pitch: float, seconds: float, rng: np.random.Generator) -> Floats:
    """Harmonics of `pitch` Hz that fall by 12 dB an octave, as behind closed lips, with a little jitter."""
    time = np.arange(int(seconds * WIRE_RATE)) / WIRE_RATE
    jitter = np.cumsum(rng.normal(0, 0.002, time.size))
    phase = 2 * np.pi * pitch * time + jitter
    tone = sum((np.sin(k * phase) / k**2 for k in range(1, 12)), np.zeros(time.size))
    edge = np.minimum(1, np.minimum(time, time[::-1]) / 0.03)
    faded: NDArray[np.float64] = tone * edge
    return faded


def cough(rng: np.random.Generator) -> Pcm:
    """One to three bursts of noise that start hard and die away within 100-200 ms."""
    bursts: list[Floats] = []
    for _ in range(rng.integers(1, 4)):
        time = np.arange(ms_to_samples(rng.uniform(150, 280), WIRE_RATE)) / WIRE_RATE
        noise = coloured(time.size, rng, lambda hertz: np.where(hertz < 200, 0, (np.maximum(hertz, 900) / 900) ** -0.7))
        bursts.append(noise * np.exp(-time / rng.uniform(0.04, 0.08)) * np.minimum(1, time / 0.004))
        bursts.append(np.zeros(ms_to_samples(rng.uniform(30, 120), WIRE_RATE)))
    return to_pcm(at_level(np.concatenate(bursts), rng.uniform(-28, -20)))


def door(rng: np.random.Generator) -> Pcm:
    """A door that falls shut: a low thud and the click of the latch; 400 ms."""
    time = np.arange(ms_to_samples(400, WIRE_RATE)) / WIRE_RATE
    thud = np.sin(2 * np.pi * rng.uniform(50, 90) * time) * np.exp(-time / 0.08)
    rattle = coloured(time.size, rng, pink) * np.exp(-time / 0.03) * 0.5
    latch = np.roll(coloured(time.size, rng, np.ones_like) * np.exp(-time / 0.006), ms_to_samples(150, WIRE_RATE))
    return to_pcm(at_level(thud + rattle + latch * 0.4, rng.uniform(-28, -22)))


def keyboard(rng: np.random.Generator) -> Pcm:
    """Typing for about a second: clicks of 5-10 ms, 6-10 a second."""
    sound = np.zeros(ms_to_samples(1000, WIRE_RATE))
    at = 0
    while True:
        at += ms_to_samples(rng.uniform(90, 180), WIRE_RATE)
        length = ms_to_samples(30, WIRE_RATE)
        if at + length > sound.size:
            return to_pcm(at_level(sound, rng.uniform(-38, -32)))
        decay = np.exp(-np.arange(length) / ms_to_samples(rng.uniform(3, 6), WIRE_RATE))
        click = coloured(length, rng, lambda hertz: (hertz > 1000).astype(np.float64))
        sound[at : at + length] += click * decay * rng.uniform(0.5, 1)


def steady(rng: np.random.Generator) -> Pcm:
    """A fan or a passing car: pink noise for 1-2 s that comes and goes over 200 ms."""
    noise = coloured(ms_to_samples(rng.uniform(1000, 2000), WIRE_RATE), rng, pink)
    time = np.arange(noise.size) / WIRE_RATE
    return to_pcm(at_level(noise, rng.uniform(-40, -32)) * np.minimum(1, np.minimum(time, time[::-1]) / 0.2))


SOUNDS: dict[str, Callable[[np.random.Generator], Pcm]] = {
    "hum": hum,
    "cough": cough,
    "door": door,
    "keyboard": keyboard,
    "steady": steady,
}
ECHO_GAIN = 0.1
"""Own echo comes back at -20 dB,"""
ECHO_DELAY_MS = (40, 250)
"""this many milliseconds after it was played."""

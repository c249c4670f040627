"""How a natural voice says a sentence, and how it pauses in it. Knows nothing of which network speaks.

A network gives each phoneme's length, so it is known where words end, and a word can be held. People who pause in the
middle of a phrase hold their last syllable and let its pitch neither fall nor rise; after words that could stand alone
they speak as before a comma. A network that is told of a comma, a dash or three dots inside a phrase lets the voice
fall nearly as far as before a full stop (joe), or rise (heart): figures in `latency_probes/README.md`.
"""

import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from latency_probes.sound import rng_for
from latency_probes.timeline import WIRE_RATE
from latency_probes.voices import Take
from voicepipe.audio import Pcm, dbfs, ms_to_samples
from voicepipe.audio.resample import Resampler

Floats = NDArray[np.float32]

SPEED = (0.9, 1.15)
"""Of the network's own; drawn for each clip."""
HELD = (1.6, 2.0)
"""A last syllable before a pause inside a phrase lasts so many times as long."""
VOWELS = frozenset("aeiouæɐɑɒɔəɚɛɜɪʊʌᵻᵊɨAIOQWY")
REACH_MS = 30
"""A cut moves so far at most to where the voice is weakest."""
DECAY_MS = 30
"""A voice that is held does not end from one sample to the next."""
SILENT_DB = 32
"""Below the level of the whole, a voice is silent."""
KEPT_MS = 20
"""Of the silence that a network makes of a comma, on either side of the cut: probes put the pause in."""
QUESTION = re.compile(
    r"(?:(?:and|hello|good evening|thank you|i have a question) )?"
    r"(?:what|when|where|whereabouts|who|how|which|until what|is|are|do|does|can|could|will|would|have)\b"
)
NAMES = re.compile(r"\b(?:i|monday|tuesday|wednesday|thursday|friday|saturday|sunday)(?=\b|')")


class Network(Protocol):
    """A text-to-speech network, cut in two: lengths first, then sound. Equal inputs give equal samples."""

    name: str
    rate: int
    """Of its sound, in Hz."""
    hop: int
    """Samples in a unit of length."""

    def phonemes(self, text: str) -> str:
        """What is to be said, in the network's alphabet, punctuation included."""

    def inputs(self, phonemes: str) -> list[tuple[int, int]]:
        """The network's numbers, each with the index of the phoneme that it belongs to; -1 before the first."""

    def lengths(self, numbers: Sequence[int], speed: float, rng: np.random.Generator) -> Floats:
        """Of each number, in units."""

    def sound(self, numbers: Sequence[int], lengths: Floats, rng: np.random.Generator) -> Floats:
        """In -1..1, at `rate`."""


def speak(network: Network, text: str, name: str, before: str = "", *, held: bool = False) -> Take:
    """`text`, with the cut behind its words `before`, which are `held` or as before a comma. Chance is by `name`."""
    rng = rng_for(0, f"{name}-{network.name}")
    speed, factor = rng.uniform(*SPEED), rng.uniform(*HELD)
    end = "?" if QUESTION.match(text) else "."
    first = network.phonemes(written(before)) if before else ""
    rest = network.phonemes(written(text.removeprefix(before).strip(), begins=not before) + end)
    phonemes = first + ("" if not before else " " if held else ", ") + rest
    inputs = network.inputs(phonemes)
    numbers, owners = [number for number, _ in inputs], np.array([owner for _, owner in inputs])
    lengths = network.lengths(numbers, speed, rng)
    if held:
        syllable = (owners >= last_vowel(first)) & (owners < len(first))
        lengths = np.where(syllable, np.ceil(lengths * factor), lengths).astype(np.float32)
    pcm = at_wire_rate(network.sound(numbers, lengths, rng), network.rate)
    if not before:
        return Take(pcm, WIRE_RATE)
    samples = np.cumsum(lengths) * network.hop * WIRE_RATE / network.rate
    ends, begins = (round(float(samples[owners < index][-1])) for index in (len(first), len(phonemes) - len(rest)))
    return held_at(pcm, ends) if held else without_silence(pcm, ends, begins)


def written(text: str, *, begins: bool = True) -> str:
    """As people write: networks read "i" as a letter."""
    text = NAMES.sub(lambda found: found[0].capitalize(), text)
    return text[:1].upper() + text[1:] if begins else text


def last_vowel(phonemes: str) -> int:
    """Where the last syllable's vowel begins, which may be two letters."""
    vowels = [index for index, letter in enumerate(phonemes) if letter in VOWELS]
    return vowels[-2] if len(vowels) > 1 and vowels[-2] == vowels[-1] - 1 else vowels[-1]


def at_wire_rate(sound: Floats, rate: int) -> Pcm:
    """int16[m] at 24 kHz."""
    resampler = Resampler(rate, WIRE_RATE)
    pcm = np.round(np.clip(sound, -1, 1) * 32767).astype(np.int16)
    return np.concatenate([resampler(pcm), resampler.flush()])


def held_at(pcm: Pcm, nominal: int) -> Take:
    """Cut near `nominal`, with a voice that dies away before."""
    cut = weakest(pcm, nominal)
    decay = ms_to_samples(DECAY_MS, WIRE_RATE)
    faded = pcm.copy()
    faded[cut - decay : cut] = np.round(pcm[cut - decay : cut] * np.linspace(1, 0.1, decay)).astype(np.int16)
    return Take(faded, WIRE_RATE, cut)


def without_silence(pcm: Pcm, ends: int, begins: int) -> Take:
    """Cut in the silence between the end of a word and the beginning of the next one, of which little is left."""
    step, reach = ms_to_samples(5, WIRE_RATE), ms_to_samples(60, WIRE_RATE)
    limit = dbfs(pcm) - SILENT_DB
    marks = range(max(0, ends - reach), begins + reach, step)
    silent = [at for at in marks if dbfs(pcm[at : at + step]) < limit]
    runs = np.split(np.array(silent, int), np.flatnonzero(np.diff(silent) > step) + 1)
    longest = max(runs, key=len)
    kept = ms_to_samples(KEPT_MS, WIRE_RATE)
    if longest.size * step <= 2 * kept:
        return held_at(pcm, ends)
    start, end = int(longest[0]) + kept, int(longest[-1]) + step - kept
    return Take(np.concatenate([pcm[:start], pcm[end:]]), WIRE_RATE, start)


def weakest(pcm: Pcm, nominal: int) -> int:
    """The sample near `nominal` where the voice is weakest."""
    reach, half, step = (ms_to_samples(ms, WIRE_RATE) for ms in (REACH_MS, 2.5, 1))
    candidates = range(nominal - reach, min(nominal + reach, pcm.size - half) + 1, step)
    return min(candidates, key=lambda at: (dbfs(pcm[at - half : at + half]), abs(at - nominal)))

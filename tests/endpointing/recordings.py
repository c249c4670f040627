"""What is played to the ear: the development sentences, spoken by flite, or the probes' clips, which are none of them.

A recording ends in silence, though not for as long as the longest wait: rules are judged by what they would wait for.
What it says is complete, or ends where a caller pauses and goes on.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from latency_probes import clips, generate, sound
from latency_probes.timeline import WIRE_RATE, voiced_span
from latency_probes.voices import flite
from voicepipe.audio import RATE, Pcm, ms_to_samples, samples_to_ms
from voicepipe.audio.resample import Resampler

SENTENCES = Path(__file__).parents[1] / "turn" / "endpoint_sentences.json"
LEAD_MS, REST_MS = 400, 1300
"""Silence before and after what is said."""
NOISES = ("pink_20", "babble_20", "pink_15", "babble_15")


@dataclass(frozen=True, slots=True)
class Recording:
    id: str
    text: str
    """What is said."""
    kind: str
    """See `heard.Heard`."""
    own: bool
    """It is heard in the room that the probes' plan gives it."""
    noise: str
    pcm: Pcm
    """int16[n] at 16 kHz."""
    end_ms: float
    """Where the last voiced sample is."""


def development(part: str = "development") -> Iterator[Recording]:
    """The sentences of tests/turn, in three voices, half of them in noise. Needs flite."""
    sentences: list[tuple[str, bool]] = json.loads(SENTENCES.read_text())[part]
    begun: list[str] = []
    number = count()
    for text, complete in sentences:
        if not complete:
            begun.append(text)
            continue
        for voice in flite.VOICES:
            pcm, phones = flite.spoken(text, voice)
            pcm = _at_wire_rate(generate.levelled(pcm, *generate.voiced_span(pcm, RATE)))
            for before in begun:
                if text.startswith(f"{before} "):
                    cut = flite.boundary(_at(pcm), phones, len(flite.phones_of(before, voice)))
                    at = cut * WIRE_RATE // RATE
                    yield _recording(f"{part}-{next(number)}-{voice}", before, "pause_inside", "", pcm, at)
            yield _recording(f"{part}-{next(number)}-{voice}", text, "finished", "", pcm, 0)
        begun = []


def people() -> Iterator[Recording]:
    """Prompts spoken by people, also up to where a pause is put in. Raises ProbeError: they are not installed."""
    for kind, probed in {clips.HUMAN: "finished", clips.HUMAN_PAUSE: "pause_inside"}.items():
        for utterance in clips.load((kind,)):
            clip, cut = clips.decode(Path(utterance.file)), ms_to_samples(utterance.cut_ms, WIRE_RATE)
            yield _recording(utterance.id, utterance.before or utterance.text, probed, "quiet", clip, cut)


def probes(rooms: int) -> Iterator[Recording]:
    """The probes' clips up to their pause, in their own room or in so many."""
    for utterance in clips.load(("finished", "pause_inside", "unfinished")):
        clip = clips.decode(clips.FOLDER / utterance.file)
        cut = ms_to_samples(utterance.cut_ms, WIRE_RATE)
        own = [utterance.noise, *(noise for noise in ("quiet", *NOISES) if noise != utterance.noise)]
        for noise in own[:rooms]:
            text = utterance.before or utterance.text
            is_own = noise == utterance.noise
            yield _recording(f"{utterance.id}-{noise}", text, utterance.kind, noise, clip, cut, own=is_own)


def _recording(name: str, text: str, kind: str, noise: str, clip: Pcm, cut: int, own: bool = True) -> Recording:
    noise = noise or str(sound.rng_for(0, name).choice(("quiet",) * len(NOISES) + NOISES))
    if cut:
        clip = clips.with_pause(clip, cut, 0).pcm[:cut]
    end = voiced_span(clip)[1]
    lead, rest = (np.zeros(ms_to_samples(ms, WIRE_RATE), np.int16) for ms in (LEAD_MS, REST_MS))
    loud = np.concatenate([lead, clip[:end], rest])
    rng = sound.rng_for(1, name)
    bed = sound.bed(noise, 1)
    mixed = sound.mixed(loud, bed, int(rng.integers(bed.size)))
    down = Resampler(WIRE_RATE, RATE)
    pcm = np.concatenate([down(mixed), down.flush()])
    return Recording(name, text, kind, own, noise, pcm, samples_to_ms(lead.size + end, WIRE_RATE))


def _at_wire_rate(pcm: Pcm) -> Pcm:
    up = Resampler(RATE, WIRE_RATE)
    return np.concatenate([up(pcm), up.flush()])


def _at(pcm: Pcm) -> Pcm:
    down = Resampler(WIRE_RATE, RATE)
    return np.concatenate([down(pcm), down.flush()])

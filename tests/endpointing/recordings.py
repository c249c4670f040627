"""What is played to the ear: the development sentences, or the probes' clips, which are none of them.

A recording ends in silence, though not for as long as the longest wait: rules are judged by what they would wait for.
What it says is complete, or ends where a caller pauses and goes on.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np

from latency_probes import clips, generate, sound
from latency_probes.timeline import WIRE_RATE, voiced_span
from voicepipe.audio import RATE, Pcm, ms_to_samples, samples_to_ms
from voicepipe.audio.resample import Resampler
from voicepipe.engines.weights import hub

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
    language: str = "en"


def development(part: str = "development") -> Iterator[Recording]:
    """The sentences of tests/turn by the probes' natural voices, half of them in noise; who is to go on holds the last
    syllable. Raises EngineMissing: the voice joe is not on this machine (`voicepipe models pull piper-joe`)."""
    voices = generate.by_network(hub.local(generate.JOE) / generate.JOE_FILE)
    for sentence in said(part):
        for voice, say in voices.items():
            take = say(sentence)
            pcm = generate.levelled(take.pcm, *generate.voiced_span(take.pcm, take.rate))
            name, text = f"{part}-{sentence.number}-{voice}", sentence.before or sentence.text
            yield _recording(name, text, sentence.kind, "", pcm, take.cut)


def said(part: str) -> Iterator[generate.Sentence]:
    """Each sentence, behind its beginnings up to a pause."""
    sentences: list[tuple[str, bool]] = json.loads(SENTENCES.read_text())[part]
    begun: list[str] = []
    number = count()
    for text, complete in sentences:
        if not complete:
            begun.append(text)
            continue
        for before in begun:
            if text.startswith(f"{before} "):
                yield generate.Sentence(next(number), "pause_inside", "", "", text, before)
        yield generate.Sentence(next(number), "finished", "", "", text, "")
        begun = []


def people(language: str = "en") -> Iterator[Recording]:
    """Prompts spoken by people, also up to where a pause is put in; in German what espeak-ng says in their place.
    Raises ProbeError: they are not installed."""
    for kind in (kind for kind, its in ({clips.HUMAN: "en"} | clips.LANGUAGES).items() if its == language):
        for utterance in clips.load((kind,)):
            clip, cut = clips.decode(clips.FOLDER / utterance.file), ms_to_samples(utterance.cut_ms, WIRE_RATE)
            probed = "pause_inside" if utterance.before else "finished"
            said = utterance.before or utterance.text
            yield replace(
                _recording(utterance.id, said, probed, "quiet", clip, cut, own=language == "en"), language=language
            )


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

"""The utterance set: the manifest, the intents, and clips as the caller says them (pauses put in, no noise yet)."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import av
import msgspec
import numpy as np

from latency_probes.sound import rng_for
from latency_probes.timeline import WIRE_RATE, voiced_span
from voicepipe.audio import Pcm, ms_to_samples
from voicepipe.errors import ProbeError

FOLDER = Path(__file__).parent / "utterances"
MANIFEST = FOLDER / "manifest.json"
VOICES = ("slt", "rms", "awb")
KINDS = ("finished", "unfinished", "pause_inside", "pause_between", "barge_in")
"""Sets of clips that are said one by one."""
HESITATION = "hesitation"
"""The clips of `pause_inside` once more, with pauses as long as people's in place of 300 to 700 ms."""
GUEST_KINDS = ("guest", "short_answer", "goes_on")
"""What guests of the front desk say (`guests.py`); `goes_on`: "yes, but ..." with the voice's own pause."""
PAUSE_MS = (300, 700)
HESITATION_MS, HESITATION_SPREAD, HESITATION_MOST_MS = 450, 0.6, 3000
"""Median, and standard deviation of the natural logarithm: silent pauses in speech are spread log-normally (Campione
and Veronis, Speech Prosody 2002). One in eleven is longer than a second."""
FADE_MS = 5


class Utterance(msgspec.Struct, frozen=True):
    """One line of the manifest."""

    id: str
    kind: str
    voice: str
    text: str
    intent: str
    noise: str
    file: str
    before: str = ""
    """The words before the pause; empty without one."""
    cut_ms: int = 0
    """Where in the clip the pause is put in."""
    place: str = ""
    """The kind of word after which a pause inside a phrase comes."""


class Intent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What counts as the right answer; see utterances/intents.toml."""

    expect: list[str]
    closing: bool = False
    long_reply: bool = False


@dataclass(frozen=True, slots=True)
class Speech:
    """A clip as it is said: int16[n] at 24 kHz, without noise. Positions are samples within it."""

    pcm: Pcm
    voiced: tuple[int, int]
    """First voiced sample, and the one after the last (a 10 ms frame above -45 dBFS)."""
    resumed: int = 0
    """First voiced sample after the pause; 0 without one."""


def load(kinds: Sequence[str] = KINDS + GUEST_KINDS) -> list[Utterance]:
    """The utterances of these kinds, in the order of the manifest."""
    everything = msgspec.json.decode(MANIFEST.read_bytes(), type=list[Utterance])
    if HESITATION in kinds:
        everything += [_hesitating(utterance) for utterance in everything if utterance.kind == "pause_inside"]
    return [utterance for utterance in everything if utterance.kind in kinds]


def _hesitating(utterance: Utterance) -> Utterance:
    name = utterance.id.replace(utterance.kind, HESITATION)
    return msgspec.structs.replace(utterance, id=name, kind=HESITATION)


@lru_cache(1)
def intents() -> dict[str, Intent]:
    """Every intent by name."""
    return msgspec.convert(tomllib.loads((FOLDER / "intents.toml").read_text()), dict[str, Intent])


def speech(utterance: Utterance, seed: int) -> Speech:
    """The clip with its pause, drawn by seed. Raises ProbeError where the clip is missing."""
    clip = decode(FOLDER / utterance.file)
    if not utterance.cut_ms:
        return Speech(clip, voiced_span(clip))
    pause = ms_to_samples(pause_ms(utterance.kind, rng_for(seed, utterance.id)), WIRE_RATE)
    return with_pause(clip, ms_to_samples(utterance.cut_ms, WIRE_RATE), pause)


def pause_ms(kind: str, rng: np.random.Generator) -> int:
    """How long a caller pauses inside an utterance of this kind."""
    if kind == HESITATION:
        return min(HESITATION_MOST_MS, round(float(rng.lognormal(np.log(HESITATION_MS), HESITATION_SPREAD))))
    return int(rng.integers(*PAUSE_MS, endpoint=True))


def with_pause(clip: Pcm, cut: int, pause: int) -> Speech:
    """`clip` cut at sample `cut`, with `pause` samples of silence put in and 5 ms fades at both edges."""
    fade = np.linspace(1, 0, ms_to_samples(FADE_MS, WIRE_RATE))
    before, after = clip[:cut].astype(np.float64), clip[cut:].astype(np.float64)
    before[-fade.size :] *= fade
    after[: fade.size] *= fade[::-1]
    pcm = np.concatenate([before, np.zeros(pause), after]).round().astype(np.int16)
    return Speech(pcm, voiced_span(pcm), cut + pause + voiced_span(pcm[cut + pause :])[0])


def decode(path: Path) -> Pcm:
    """An Ogg/Opus file as int16[n] at 24 kHz mono."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=WIRE_RATE)
    try:
        with av.open(str(path)) as container:
            frames = [out for frame in container.decode(audio=0) for out in resampler.resample(frame)]
    except (OSError, av.FFmpegError) as error:
        raise ProbeError(f"the clip {path} cannot be read ({error}); reinstall voicepipe") from error
    frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames]).astype(np.int16, copy=False)

"""The utterance set: the manifest, the intents, and clips as the caller says them (pauses put in, no noise yet)."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import av
import msgspec
import numpy as np

from latency_probes import prompts
from latency_probes.sound import rng_for
from latency_probes.timeline import WIRE_RATE, frame_levels, voiced_span
from voicepipe.audio import Pcm, ms_to_samples
from voicepipe.base.errors import ProbeError

FOLDER = Path(__file__).parent / "utterances"
MANIFEST = FOLDER / "manifest.json"
VOICES = ("heart", "joe")
"""Natural ones, a woman's and a man's."""
KINDS = ("finished", "unfinished", "pause_inside", "pause_between", "barge_in")
"""Sets of clips that are said one by one."""
HESITATION = "hesitation"
"""The clips of `pause_inside` once more, with pauses as long as people's in place of 300 to 700 ms."""
HARD = {"hard": "finished", "hard_pause": "pause_inside"}
"""Synthetic voices, hard to understand: their clips, and the set whose texts they say."""
HARD_VOICES = ("slt", "rms")
"""Of flite."""
GERMAN, GERMAN_PAUSE = "hard_de", "hard_de_pause"
"""Callers in German, with a pause and without: by espeak-ng, as there are no recordings of people."""
GERMAN_VOICES = {"espeak": "de", "espeak_m3": "de+m3"}
"""Each voice's name at espeak-ng."""
GUEST_KINDS = ("guest", "short_answer", "goes_on")
"""What guests of the front desk say (`guests.py`); `goes_on`: "yes, but ..." with the voice's own pause."""
HUMAN, HUMAN_PAUSE = "human", "human_pause"
"""Prompts spoken by people, from packages of Debian (`prompts.py`): as they are, and with a pause put in."""
OTHER_LANGUAGES = [language for language in prompts.LANGUAGES if language != "en"]
"""Languages in which people speak, besides English."""
WITH_PAUSE = {HUMAN_PAUSE: "en"} | {f"{HUMAN_PAUSE}_{language}": language for language in OTHER_LANGUAGES}
PEOPLE = (HUMAN, HUMAN_PAUSE, *(f"{kind}_{language}" for language in OTHER_LANGUAGES for kind in (HUMAN, HUMAN_PAUSE)))
FOREIGN = {f"{HUMAN}_{language}": language for language in OTHER_LANGUAGES} | {GERMAN: "de"}
"""What is said without a pause in other languages than English: by people, and in German by espeak-ng."""
LANGUAGES = FOREIGN | WITH_PAUSE | {GERMAN_PAUSE: "de"}
"""Of every set that is not only in English, its language."""
PAUSE_MS = (300, 700)
HESITATION_MS, HESITATION_SPREAD, HESITATION_MOST_MS = 450, 0.6, 3000
"""Median, and standard deviation of the natural logarithm: silent pauses in speech are spread log-normally (Campione
and Veronis, Speech Prosody 2002). One in eleven is longer than a second."""
FADE_MS = 5
ROOM_MS = 100
"""The quietest so many of a person's recording fill the pause that is put into it."""


class Utterance(msgspec.Struct, frozen=True):
    """One line of the manifest, or a prompt spoken by a person."""

    id: str
    kind: str
    voice: str
    text: str
    intent: str
    noise: str
    file: str
    """Below FOLDER, or an absolute path."""
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
    """The utterances of these kinds, in the order of the manifest. Raises ProbeError: people's are not installed."""
    everything = msgspec.json.decode(MANIFEST.read_bytes(), type=list[Utterance])
    if HESITATION in kinds:
        everything += [_hesitating(utterance) for utterance in everything if utterance.kind == "pause_inside"]
    found = [utterance for utterance in everything if utterance.kind in kinds]
    return found + [utterance for kind in PEOPLE if kind in kinds for utterance in people(kind)]


def people(kind: str) -> list[Utterance]:
    """Prompts spoken by people. Raises ProbeError: their package is not installed."""
    if kind not in WITH_PAUSE:
        return [_spoken_by_people(prompt, kind) for prompt in prompts.read(FOREIGN.get(kind, "en"))]
    return [
        msgspec.structs.replace(
            _spoken_by_people(prompt, kind), before=" ".join(prompt.words[: pause.words]), cut_ms=pause.cut_ms
        )
        for prompt, pause in prompts.pauses(WITH_PAUSE[kind]).items()
    ]


def _spoken_by_people(prompt: prompts.Prompt, kind: str) -> Utterance:
    return Utterance(f"{kind}-{prompt.name}", kind, "a person", prompt.text, "prompt", "quiet", str(prompt.file))


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
    room = quietest(clip) if utterance.kind in WITH_PAUSE else None
    return with_pause(clip, ms_to_samples(utterance.cut_ms, WIRE_RATE), pause, room)


def pause_ms(kind: str, rng: np.random.Generator) -> int:
    """How long a caller pauses inside an utterance of this kind."""
    if kind == HESITATION:
        return min(HESITATION_MOST_MS, round(float(rng.lognormal(np.log(HESITATION_MS), HESITATION_SPREAD))))
    return int(rng.integers(*PAUSE_MS, endpoint=True))


def with_pause(clip: Pcm, cut: int, pause: int, room: Pcm | None = None) -> Speech:
    """`clip` cut at sample `cut`, with `pause` samples put in and 5 ms fades at both edges.

    `room`: the noise that fills the pause, again and again; None: silence.
    """
    fade = np.linspace(1, 0, ms_to_samples(FADE_MS, WIRE_RATE))
    before, after = clip[:cut].astype(np.float64), clip[cut:].astype(np.float64)
    before[-fade.size :] *= fade
    after[: fade.size] *= fade[::-1]
    filled = np.zeros(pause) if room is None else np.resize(room, pause)
    pcm = np.concatenate([before, filled, after]).round().astype(np.int16)
    return Speech(pcm, voiced_span(pcm), cut + pause + voiced_span(pcm[cut + pause :])[0])


def quietest(clip: Pcm) -> Pcm:
    """The 100 ms of `clip` with the least sound."""
    power = 10 ** (frame_levels(clip) / 10)
    frames = ROOM_MS // 10
    start = int(np.argmin(np.convolve(power, np.ones(frames), "valid"))) * ms_to_samples(10, WIRE_RATE)
    return clip[start : start + ms_to_samples(ROOM_MS, WIRE_RATE)]


@lru_cache(64)  # Probes that run for days say the same again and again.
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

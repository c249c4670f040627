"""Which caller says what in which call. Drawn by seed: equal seeds give equal plans."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from latency_probes import clips
from latency_probes.clips import VOICES, Utterance
from latency_probes.guest_file import Guest, guests
from latency_probes.sound import SOUNDS, rng_for

TURNS = 6
"""Most turns of one call."""
OVERLAYS = {"hum": 30, "cough": 24, "door": 12, "keyboard": 12, "steady": 18, "echo": 24}
SINGLE = (*clips.KINDS, clips.HESITATION, "overlay")
"""Sets whose turns stand by themselves."""
OWN = (*SINGLE, "guests", *clips.HARD)
"""Sets whose sounds are part of this package, or made, in English."""
SETS = (*OWN, clips.GERMAN, clips.GERMAN_PAUSE, *clips.PEOPLE)
SPOKEN = tuple(kind for kind in SETS if kind not in ("barge_in", "overlay", "guests"))


@dataclass(frozen=True, slots=True)
class Over:
    """What comes over the reply: a clip, a sound that is made, or the reply's own echo."""

    id: str
    clip: Utterance | None = None
    sound: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing to say, and what comes over the reply to it. `kind` is the row of the report it belongs to."""

    kind: str
    utterance: Utterance
    over: Over | None = None

    @property
    def id(self) -> str:
        """Unique within a plan."""
        return self.over.id if self.over else self.utterance.id


@dataclass(frozen=True, slots=True)
class CallPlan:
    """One call: one caller in one room."""

    number: int
    noise: str
    turns: tuple[Turn, ...]
    guest: Guest | None = None
    """Decides by what it hears what to say, in place of `turns`."""
    voice: str = ""
    """The guest's."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run. `references` come first: questions whose replies are heard out, for later calls that interrupt them."""

    references: tuple[CallPlan, ...]
    calls: tuple[CallPlan, ...]


def make_plan(kinds: Sequence[str], seed: int, calls: int | None = None) -> Plan:
    """Every utterance of `kinds` once, or exactly `calls` calls: fewer drawn from that, or it said again.

    Raises ProbeError: recordings of people are not installed.
    """
    rounds = []
    for number in count():
        rng = rng_for(seed, f"plan {number}")
        drawn = [CallPlan(0, *call) for call in (*conversations(kinds, rng), *interruptions(kinds, rng))]
        drawn += [CallPlan(0, "quiet", (), guest, voice) for voice in VOICES for guest in guests() if "guests" in kinds]
        rounds += [drawn[int(index)] for index in rng.permutation(len(drawn))]
        if calls is None or len(rounds) >= calls or not drawn:
            break
    chosen = rounds[:calls]
    asked = {turn.utterance.id: turn.utterance for call in chosen for turn in call.turns if turn.over}
    references = [CallPlan(0, question.noise, (Turn("reference", question),)) for question in asked.values()]
    numbers = count(1)
    return Plan(*(tuple(replace(call, number=next(numbers)) for call in calls) for calls in (references, chosen)))


def conversations(kinds: Sequence[str], rng: np.random.Generator) -> list[tuple[str, tuple[Turn, ...]]]:
    """Calls of up to six turns by the same voice in the same room; what may end a call is said last, once."""
    groups: dict[tuple[str, str], list[Turn]] = defaultdict(list)
    for utterance in clips.load([kind for kind in kinds if kind in SPOKEN]):
        groups[utterance.voice, utterance.noise].append(Turn(utterance.kind, utterance))
    drawn = []
    for (_, noise), turns in groups.items():
        shuffled = [turns[int(index)] for index in rng.permutation(len(turns))]
        last = [turn for turn in shuffled if clips.intents()[turn.utterance.intent].closing]
        calls = [last[index : index + 1] for index in range(max(len(last), math.ceil(len(turns) / TURNS)))]
        for turn in shuffled:
            if turn not in last:
                min(calls, key=len).insert(0, turn)
        drawn += [(noise, tuple(call)) for call in calls]
    return drawn


def interruptions(kinds: Sequence[str], rng: np.random.Generator) -> list[tuple[str, tuple[Turn, ...]]]:
    """Calls of one question, with something over the reply; a later turn could not be compared with its reference."""
    everything = clips.load(["finished"])
    questions = [item for item in everything if clips.intents()[item.intent].long_reply and item.noise == "quiet"]
    asked = {voice: [item for item in questions if item.voice == voice][::4] for voice in VOICES}
    anything = [item for own in asked.values() for item in own]
    overs = [Over(clip.id, clip) for clip in clips.load(["barge_in"]) if "barge_in" in kinds]
    for sound, number in OVERLAYS.items() if "overlay" in kinds else ():
        overs += [Over(f"overlay-{sound}-{index:03}", None, sound) for index in range(1, number + 1)]
    drawn = [
        Turn("barge_in", one_of(asked[over.clip.voice], rng), over)
        if over.clip
        else Turn("overlay", one_of(anything, rng), over)
        for over in overs
    ]
    return [(turn.utterance.noise, (turn,)) for turn in drawn]


def one_of(utterances: Sequence[Utterance], rng: np.random.Generator) -> Utterance:
    """Drawn by `rng`."""
    return utterances[int(rng.integers(len(utterances)))]


def size(kind: str) -> int:
    """How many utterances or guests are in this set. Raises ProbeError: it is not installed."""
    made = {"overlay": sum(OVERLAYS.values()), "guests": len(guests()) * len(VOICES)}
    return made[kind] if kind in made else len(clips.load([kind]))


assert set(OVERLAYS) == {*SOUNDS, "echo"}

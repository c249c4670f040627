"""What calls ask of the engines, and when. Pure: seconds since the start, no clock."""

import heapq
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from voicepipe.sizing.traffic import LATER_PHRASE_S, Traffic

TRAFFIC = Traffic()
"""What `voicepipe plan` reckons with."""
JITTER = 0.2
"""Share by which turns and the speech in them are longer or shorter."""
BEFORE = 0.3
"""Share of a turn that the first call is in when the load begins: so that short runs, too, see a turn end."""

CACHED_TOKENS = TRAFFIC.context_tokens
"""Of a prompt: the agent's instructions and what was said before, which the prefix cache holds."""
LATER = round((TRAFFIC.spoken * TRAFFIC.turn_s - TRAFFIC.phrase_s) / LATER_PHRASE_S)
"""Phrases of a reply behind its first."""
PHRASES = (
    TRAFFIC.phrase_tokens,
    *(TRAFFIC.phrase_tokens + (TRAFFIC.reply_tokens - TRAFFIC.phrase_tokens) * n // LATER for n in range(1, LATER + 1)),
)
"""Tokens of the reply after which each phrase is whole and goes to synthesis."""

PASSES_A_SECOND = TRAFFIC.speaking / TRAFFIC.partial_s + TRAFFIC.silences / TRAFFIC.turn_s
"""Readings of ASR that one call asks for, partial and final."""


@dataclass(frozen=True, order=True, slots=True)
class LoadEvent:
    """ASR is to read `heard_s` seconds of an utterance: while the caller speaks, or (`final`) as a silence begins, upon
    which the turn is answered if it `ends` there, or else a reply is begun for nothing."""

    at: float
    call: int
    heard_s: float
    final: bool
    ends: bool


def schedule(calls: int, seed: int) -> Iterator[LoadEvent]:
    """The events of `calls` calls at a time, in order, without end."""
    return heapq.merge(*(_call(number, calls, seed) for number in range(calls)))


def _call(number: int, calls: int, seed: int) -> Iterator[LoadEvent]:
    rng = random.Random(f"{seed}/{number}")
    begun = TRAFFIC.turn_s * (number / calls - BEFORE)
    while True:
        spoken = TRAFFIC.speaking * TRAFFIC.turn_s * rng.uniform(1 - JITTER, 1 + JITTER)
        partials = range(1, math.ceil(spoken / TRAFFIC.partial_s))
        heard = [(n * TRAFFIC.partial_s, False, False) for n in partials] + [(spoken, True, True)]
        if rng.random() < TRAFFIC.silences - 1:
            heard.append(((rng.choice(partials[:-1]) + 0.5) * TRAFFIC.partial_s, True, False))
        yield from (LoadEvent(begun + at, number, at, *kind) for at, *kind in sorted(heard) if begun + at >= 0)
        begun += TRAFFIC.turn_s * rng.uniform(1 - JITTER, 1 + JITTER)

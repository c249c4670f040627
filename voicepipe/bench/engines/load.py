"""What calls ask of the engines, and when. Pure: seconds since the start, no clock."""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

TURN_S = 8.0
"""From one turn of a call to its next, in the mean: the caller speaks for half of it."""
JITTER = 0.2
"""Share by which turns and the speech in them are longer or shorter."""
PARTIAL_S = 0.5
"""An utterance's words are read again after so much more of it."""

CACHED_TOKENS = 500
"""Of a prompt: the agent's instructions and what was said before, which the prefix cache holds."""
NEW_TOKENS = 40
"""Of a prompt: the caller's words of this turn, with the chat template's around them."""
REPLY_TOKENS = 60
PHRASES = (8, 25, 42, 60)
"""Tokens of the reply after which each phrase is whole and goes to synthesis."""
FIRST_PHRASE_S = 1.2
"""Speech of the first phrase; 0.15 s a token."""
LATER_PHRASE_S = 2.6

PASSES_A_SECOND = 0.5 / PARTIAL_S + 1 / TURN_S
"""Readings of ASR that one call asks for, partial and final."""


@dataclass(frozen=True, order=True, slots=True)
class Event:
    """ASR is to read `heard_s` seconds of an utterance: while the caller speaks, or (`final`) as a silence begins, upon
    which the turn is answered."""

    at: float
    call: int
    heard_s: float
    final: bool


def schedule(calls: int, seed: int) -> Iterator[Event]:
    """The events of `calls` calls at a time, in order, without end."""
    return heapq.merge(*(_call(number, calls, seed) for number in range(calls)))


def _call(number: int, calls: int, seed: int) -> Iterator[Event]:
    rng = random.Random(f"{seed}/{number}")
    begun = TURN_S * number / calls
    while True:
        spoken = TURN_S / 2 * rng.uniform(1 - JITTER, 1 + JITTER)
        for n in count(1):
            if n * PARTIAL_S >= spoken:
                break
            yield Event(begun + n * PARTIAL_S, number, n * PARTIAL_S, final=False)
        yield Event(begun + spoken, number, spoken, final=True)
        begun += TURN_S * rng.uniform(1 - JITTER, 1 + JITTER)

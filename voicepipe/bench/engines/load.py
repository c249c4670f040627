"""What calls ask of the engines, and when. Pure: seconds since the start, no clock."""

import heapq
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from voicepipe.sizing.host import Traffic

TRAFFIC = Traffic()
"""What `voicepipe plan` reckons with."""
JITTER = 0.2
"""Share by which turns and the speech in them are longer or shorter."""
BEFORE = 0.3
"""Share of a turn that the first call is in when the load begins: so that short runs, too, see a turn end."""

CACHED_TOKENS = TRAFFIC.context_tokens
"""Of a prompt: the agent's instructions and what was said before, which the prefix cache holds."""
PHRASES = (TRAFFIC.phrase_tokens, 25, 42, TRAFFIC.reply_tokens)
"""Tokens of the reply after which each phrase is whole and goes to synthesis."""
LATER_PHRASE_S = 2.6
"""Of speech, of each phrase but the first: 0.15 s a token."""

PASSES_A_SECOND = TRAFFIC.speaking / TRAFFIC.partial_s + 1 / TRAFFIC.turn_s
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
    begun = TRAFFIC.turn_s * (number / calls - BEFORE)
    while True:
        spoken = TRAFFIC.speaking * TRAFFIC.turn_s * rng.uniform(1 - JITTER, 1 + JITTER)
        partials = range(1, math.ceil(spoken / TRAFFIC.partial_s))
        heard = [(n * TRAFFIC.partial_s, False) for n in partials] + [(spoken, True)]
        yield from (Event(begun + heard_s, number, heard_s, final) for heard_s, final in heard if begun + heard_s >= 0)
        begun += TRAFFIC.turn_s * rng.uniform(1 - JITTER, 1 + JITTER)

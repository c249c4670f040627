"""The work that calls make for the engines, and when. Pure: seconds since the start, no clock."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from voicepipe.conversation.phrases import PhraseLengths
from voicepipe.sizing.traffic import LATER_PHRASE_S, Traffic

TRAFFIC = Traffic()
"""The traffic that `voicepipe plan` assumes. There is no ladder here: a first phrase that is late is not cut short."""
JITTER = 0.2
"""Part by which turns and the speech in them are longer or shorter."""

CACHED_TOKENS = TRAFFIC.context_tokens
"""Tokens of a prompt that the prefix cache has: the agent's instructions and earlier turns."""
LATER = round((TRAFFIC.spoken * TRAFFIC.turn_s - TRAFFIC.phrase.speech_s) / LATER_PHRASE_S)
"""Phrases of a reply after its first, whole ones."""
LATER_WORDS = -(-(TRAFFIC.reply_tokens - TRAFFIC.phrase.tokens) // LATER)
BY_LENGTH = PhraseLengths(
    first_words=TRAFFIC.phrase.tokens, first_limit=TRAFFIC.phrase.tokens, clause_words=LATER_WORDS, limit=LATER_WORDS
)
"""Phrasing for words without meaning, a token each: phrases are as long as in real replies, and as many."""


@dataclass(frozen=True, slots=True)
class CallTurn:
    """A turn in which a caller speaks from `at` on for `spoken_s` seconds, and is to be answered then."""

    at: float
    spoken_s: float
    guess_s: float | None
    """Seconds of it after which there is a silence that might be the end: a reply is begun and wasted."""


def turns(call: int, seed: int) -> Iterator[CallTurn]:
    """The turns of one call, in order, without end; whether the engines keep up or not. Its phase is random, as
    callers' are; but the first call is speaking when the load begins, so that short runs, too, see a turn end."""
    rng = random.Random(f"{seed}/{call}")
    at = TRAFFIC.turn_s * (rng.uniform(-TRAFFIC.speaking, 1 - TRAFFIC.speaking) if call else -0.65 * TRAFFIC.speaking)
    while True:
        spoken = TRAFFIC.speaking * TRAFFIC.turn_s * rng.uniform(1 - JITTER, 1 + JITTER)
        guess = spoken * rng.uniform(0.2, 0.8) if rng.random() < TRAFFIC.silences - 1 else None
        if at >= 0:
            yield CallTurn(at, spoken, guess)
        elif at + spoken > 0:  # it has begun to speak before
            yield CallTurn(0.0, at + spoken, None)
        at += TRAFFIC.turn_s * rng.uniform(1 - JITTER, 1 + JITTER)

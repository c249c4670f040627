"""Words that callers are expected to say, as Whisper is told of them: as a text that was said before.

So it was trained: with what came before the 30 s that it reads (Radford et al., 2022, section 2.3). What that brings,
and what it costs: D142.
"""

from collections.abc import Sequence
from typing import Any

MOST_TOKENS = 200
"""Whisper's decoder takes 223 tokens of what was said before."""


def said_before(vocabulary: Sequence[str], tokenizer: Any) -> list[int]:
    """The tokens that come before an utterance in which these words are expected, as many words as fit; none for
    none."""
    words = list(vocabulary)
    while words:
        # A list and nothing else: with "Okay." behind it, which keeps Whisper from lists, it heard "Okay." in noise.
        said: list[int] = tokenizer.encode(f" {', '.join(words)}.")
        if len(said) <= MOST_TOKENS:
            return [tokenizer.sot_prev, *said]
        words.pop()
    return []

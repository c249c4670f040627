"""How likely a turn ends after its last words, counted in what callers say (`caller_sentences.py`). Pure."""

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile

from voicepipe.conversation import english
from voicepipe.turn.caller_sentences import ordinary, sentences
from voicepipe.turn.completeness import COMPLETE_ENDS, DIGITS, PHONE_DIGITS, RULES

ORDER = 5
"""Longest history, in words, by which the end of a sentence is judged."""
TRUST = 20.0
"""How often a history must have been seen to count as much as all shorter ones together."""
OPEN = 0.55
"""Probability that a turn ends after words of which nothing is known."""
CLOSED = 0.8
"""Probability that a turn ends where it may: at "please", "tomorrow", "at seven", after a telephone number."""
LAST_WORDS = frozenset(
    "please thanks today tomorrow tonight yesterday here again later people persons guests adults children kids "
    "o'clock pm monday tuesday wednesday thursday friday saturday sunday morning evening afternoon noon midnight "
    "goodbye bye yes yeah yep no nope okay sure right correct exactly perfect great hello hi sorry maybe".split()
)
BEFORE_NUMBERS = frozenset("at for of around about to till until past are with be by between after before and".split())
IN_NUMBERS = frozenset((*english.NUMBERS, "hundred"))
LONG_NUMBER = 3
"""Words: "twenty twenty six", "seven hundred five"."""


class SentenceEnds:
    """Counts after which words `sentences` end, and gives the probability that a turn ends after others.

    Longer histories are backed by shorter ones, in the manner of Witten and Bell (IEEE Trans. Information Theory 37(4),
    1991), and the shortest by English grammar.
    """

    def __init__(self, sentences: Iterable[str]) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._ended: Counter[tuple[str, ...]] = Counter()
        for sentence in sentences:
            words = ("<s>", *sentence.split())
            for end in range(2, len(words) + 1):
                for start in range(max(0, end - ORDER), end):
                    self._seen[words[start:end]] += 1
                    self._ended[words[start:end]] += end == len(words)

    def probability(self, text: str) -> float:
        """The probability (0..1) that a turn ends after `text`, as it was said (`as_said`)."""
        words = text.split()
        if not words:
            return 0.0
        p = OPEN
        against = sum(rule.log_odds for rule in RULES if rule.holds(words))
        closed = not against and _closed(words)
        if against:
            p /= p + (1 - p) * math.exp(-against)
        elif closed:
            p = CLOSED
        history = ("<s>", *words)
        longest = min(ORDER, len(history))
        # Only the sentence as a whole is evidence against grammar.
        for length in range(longest if against else 1, longest + 1):
            last = history[-length:]
            p = (self._ended[last] + TRUST * p) / (self._seen[last] + TRUST)
        return max(p, CLOSED) if closed else p


@functools.cache
def callers_ends() -> SentenceEnds:
    """The counts of what all callers say. Takes some 0.3 s the first time."""
    return SentenceEnds([*ordinary(), *sentences()])


def _closed(words: Sequence[str]) -> bool:
    last = words[-1]
    if last in LAST_WORDS or any(" ".join(words[-most:]) in COMPLETE_ENDS for most in (2, 3)):
        return True
    number = sum(1 for _ in takewhile(IN_NUMBERS.__contains__, reversed(words)))
    at_seven = 0 < number < len(words) and words[-1 - number] in BEFORE_NUMBERS
    return (
        at_seven or number >= LONG_NUMBER or (len(words) >= PHONE_DIGITS and DIGITS.issuperset(words[-PHONE_DIGITS:]))
    )

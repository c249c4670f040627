"""How likely a turn ends after its last words, counted in what callers say (`caller_sentences.py`). Pure."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from voicepipe.languages.language import CompletenessRule

ORDER = 5
"""Longest history, in words, by which the end of a sentence is judged."""
TRUST = 20.0
"""How often a history must have been seen to count as much as all shorter ones together."""
OPEN = 0.55
"""Probability that a turn ends after words of which nothing is known."""
CLOSED = 0.8
"""Probability that a turn ends where it may: at "please", "tomorrow", "at seven", after a telephone number."""


class SentenceEnds:
    """Counts after which words `sentences` end, and gives the probability that a turn ends after others.

    Longer histories are backed by shorter ones, in the manner of Witten and Bell (IEEE Trans. Information Theory 37(4),
    1991), and the shortest by grammar.

    `rules`: those by which a sentence does not end; `closed`: whether one may well end after these words.
    """

    def __init__(
        self, sentences: Iterable[str], rules: Sequence[CompletenessRule], closed: Callable[[Sequence[str]], bool]
    ) -> None:
        self._rules, self._closed = rules, closed
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
        against = sum(rule.log_odds for rule in self._rules if rule.holds(words))
        closed = not against and self._closed(words)
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

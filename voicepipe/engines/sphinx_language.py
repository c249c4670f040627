"""What callers say, as a language model: words for the decoder, and whether a sentence ends here. Pure."""

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from voicepipe.engines.sphinx_numbers import dictated
from voicepipe.turn.completeness import RULES

PHRASES_COUNT = 3
"""The agent's phrases count so many times as much as the sentences that everybody says."""
ENDS_ORDER = 5
"""Longest history, in words, by which the end of a sentence is judged."""
ENDS_TRUST = 5.0
"""How often a history must have been seen to count as much as all shorter ones together."""
MODEL_MIDDLE, MODEL_SLOPE, MODEL_LEAST = -0.9, 3.0, 0.1
"""A general model's log10 probability at which half of all pauses end a turn, how fast that changes, and its least."""
CLOSED = 0.8
"""Probability that a turn ends where it may: at "please", "tomorrow", "at seven"."""
LAST_WORDS = frozenset(
    "please thanks today tomorrow tonight yesterday here again later people persons guests adults children kids "
    "o'clock pm monday tuesday wednesday thursday friday saturday sunday morning evening afternoon noon midnight "
    "goodbye bye yes yeah yep no nope okay ok sure right correct exactly perfect great hello hi sorry maybe".split()
)
NUMBERS = frozenset("one two three four five six seven eight nine ten eleven twelve".split())
BEFORE_NUMBERS = frozenset("at for of around about to till until past are with be by between after before and".split())


class SphinxLanguage:
    """What callers of a PoP are likely to say: everybody's sentences and the agents' `phrases`. For all decoders."""

    def __init__(self, phrases: Sequence[str] = ()) -> None:
        said = as_heard(phrases)
        self.arpa = arpa([*ordinary(), *said * PHRASES_COUNT])
        self.ends = SentenceEnds([*ordinary(), *said])


class SentenceEnds:
    """How likely a turn ends after its last words, counted in sentences that callers are likely to say.

    Longer histories are backed by shorter ones, in the manner of Witten and Bell (IEEE Trans. Information Theory 37(4),
    1991), and the shortest by English grammar and a general language model.
    """

    def __init__(self, sentences: Iterable[str]) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._ended: Counter[tuple[str, ...]] = Counter()
        for sentence in sentences:
            words = ("<s>", *sentence.split())
            for end in range(2, len(words) + 1):
                for start in range(max(0, end - ENDS_ORDER), end):
                    self._seen[words[start:end]] += 1
                    self._ended[words[start:end]] += end == len(words)

    def probability(self, text: str, model: float = MODEL_MIDDLE) -> float:
        """That a turn ends after `text`; `model`: log10 of what a general language model says."""
        words = text.split()
        if not words:
            return 0.0
        history = ("<s>", *words)
        longest = min(ENDS_ORDER, len(history))
        p = MODEL_LEAST + (1 - MODEL_LEAST) / (1 + math.exp(-MODEL_SLOPE * (model - MODEL_MIDDLE)))
        against = sum(rule.log_odds for rule in RULES if rule.holds(words))
        closed = not against and _closed(words)
        if against:
            p /= p + (1 - p) * math.exp(-against)
        elif closed:
            p = CLOSED
        # Only the sentence as a whole is evidence against grammar.
        for length in range(longest if against else 1, longest + 1):
            seen = history[-length:]
            p = (self._ended[seen] + ENDS_TRUST * p) / (self._seen[seen] + ENDS_TRUST)
        return max(p, CLOSED) if closed else p


def _closed(words: Sequence[str]) -> bool:
    return words[-1] in LAST_WORDS or (len(words) > 1 and words[-1] in NUMBERS and words[-2] in BEFORE_NUMBERS)


def as_heard(phrases: Iterable[str]) -> list[str]:
    """Phrases as the recogniser writes words: lower case, no punctuation; empty ones are left out."""
    plain = (" ".join(re.findall(r"[a-z']+", phrase.lower())) for phrase in phrases)
    return [phrase for phrase in plain if phrase]


@functools.cache
def ordinary() -> tuple[str, ...]:
    """What everybody says on the phone and newspapers do not: times, dates, phone numbers, yes and no."""
    hours = "one two three four five six seven eight nine ten eleven twelve".split()
    days = "monday tuesday wednesday thursday friday saturday sunday".split()
    months = "january february march april may june july august september october november december".split()
    ordinals = (
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth thirtieth"
    ).split()
    digits = ["zero", "oh", *hours[:9]]
    said = [
        "yes", "no", "yes please", "no thanks", "no thank you", "hello", "hi", "good morning", "good evening", "okay",
        "thank you very much", "goodbye", "thanks goodbye", "that's right", "that's all", "um", "uh", "well",
    ]  # fmt: skip
    for hour in hours:
        said += [
            f"at {hour}",
            f"for {hour}",
            f"{hour} people",
            f"{hour} o'clock",
            f"{hour} thirty",
            f"half past {hour}",
        ]
        said += [f"{hour} fifteen", f"{hour} p m"]
    for day in days:
        said += [f"on {day}", day, f"next {day}", f"{day} evening"]
    for month, ordinal in itertools.product(months, ordinals):
        said += [f"the {ordinal} of {month}", f"{month} {ordinal}"]
    # Every digit after every other, in numbers of the usual length.
    for first, step in itertools.product(range(len(digits)), range(len(digits))):
        said.append("my number is " + " ".join(digits[(first + step * i) % len(digits)] for i in range(9)))
    return tuple(said)


@functools.cache
def numbers_arpa() -> str:
    """The model of numbers that are dictated."""
    return arpa(dictated())


def arpa(sentences: Sequence[str], seen: float = 0.5) -> str:
    """A trigram model of `sentences` in the ARPA format. `seen`: of the mass after a history, for the words that stand
    there; the rest is left to shorter histories."""
    counts: list[dict[tuple[str, ...], int]] = [{}, {}, {}]
    for sentence in sentences:
        words = ("<s>", *sentence.split(), "</s>")
        for order, grams in enumerate(counts, 1):
            for i in range(len(words) - order + 1):
                gram = words[i : i + order]
                grams[gram] = grams.get(gram, 0) + 1
    total = sum(counts[0].values())
    probability = [{gram: n / total for gram, n in counts[0].items()}]
    for shorter, more in itertools.pairwise(counts):
        probability.append({gram: seen * n / shorter[gram[:-1]] for gram, n in more.items()})
    lines = ["\\data\\", *(f"ngram {order}={len(grams)}" for order, grams in enumerate(counts, 1))]
    for order, known in enumerate(probability, 1):
        lines += ["", f"\\{order}-grams:"]
        without: dict[tuple[str, ...], float] = {}
        """By history: what the words that were seen after it have without it."""
        if order < len(probability):
            for gram in probability[order]:
                without[gram[:-1]] = without.get(gram[:-1], 0.0) + known[gram[1:]]
        for gram, p in sorted(known.items()):
            backoff = f"\t{math.log10((1 - seen) / max(1e-6, 1 - without.get(gram, 0.0))):.4f}" if order < 3 else ""
            lines.append(f"{math.log10(p):.4f}\t{' '.join(gram)}{backoff}")
    return "\n".join([*lines, "", "\\end\\", ""])

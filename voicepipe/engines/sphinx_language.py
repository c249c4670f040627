"""What callers say, as a language model for the decoder. Pure."""

import functools
import itertools
import math
import re
from collections.abc import Iterable, Sequence

from voicepipe.engines.sphinx_numbers import dictated
from voicepipe.turn import callers
from voicepipe.turn.ends import SentenceEnds, callers_ends

PHRASES_COUNT = 20
"""The agent's phrases count so many times as much as a sentence that anybody says."""


class SphinxLanguage:
    """What callers of a PoP are likely to say: everybody's sentences and the agents' `phrases`. For all decoders."""

    def __init__(self, phrases: Sequence[str] = ()) -> None:
        said = as_heard(phrases)
        self.arpa = arpa([*callers.ordinary(), *callers.sentences(), *said * PHRASES_COUNT])
        self.ends = SentenceEnds(said, callers_ends())


def as_heard(phrases: Iterable[str]) -> list[str]:
    """Phrases as the recogniser writes words: lower case, no punctuation; empty ones are left out."""
    plain = (" ".join(re.findall(r"[a-z']+", phrase.lower())) for phrase in phrases)
    return [phrase for phrase in plain if phrase]


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

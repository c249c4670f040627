"""Whether a turn ends after its last words, learned from sentences of callers. Pure.

A language's `sentences.txt` has a sentence a line, with a bar wherever its caller might pause and would be waited for:

    ich hätte gern einen tisch für | vier personen

What stands before a bar is begun, and the line is whole, unless it ends in a bar. From these a logistic regression
learns what the last words, and the words before them, say of the end. It is learned when it is first needed, within
0.3 s, so who adds a sentence need not do anything else.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

BAR, COMMENT = "|", "#"
SHRINK = 0.5
"""L2 penalty of the weights. With 0.1 or 2 sentences that were not learned from are told apart as well."""
STEPS = 60
"""Of Nesterov's gradient method; the weights change little behind them."""
MOST_WORDS = 12
"""Longer sentences count as long as this."""


class LearnedEnds:
    """What `lines` of a language's `sentences.txt` teach."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._weights: dict[str, float] = {}
        known = dict(examples(lines))
        if len({*known.values()}) == 2:
            self._weights = _learned([features(text.split()) for text in known], np.array([*known.values()], float))

    def log_odds(self, words: Sequence[str]) -> float:
        """The log-odds that a turn ends after these words, as they were said (`TurnWords.as_said`), where as many
        sentences were whole as begun; 0: nothing is known."""
        return sum(self._weights.get(feature, 0.0) for feature in features(words)) if words else 0.0


def examples(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """(text, whole?) of each beginning and of each whole sentence."""
    for line in lines:
        if line.startswith(COMMENT):
            continue
        *begun, whole = (" ".join(part.split()) for part in line.split(BAR))
        said = ""
        for part in begun:
            said = f"{said} {part}".strip()
            if said:
                yield said, False
        if whole:
            yield f"{said} {whole}".strip(), True


def features(words: Sequence[str]) -> set[str]:
    """What is seen of the words: the last ones and their endings, the first ones, which there are, and how many."""
    third, before, last = ("", "", *words)[-3:]
    seen = {f"last {last}", f"before {before}", f"third {third}", f"two {before} {last}"}
    seen |= {f"three {third} {before} {last}", f"endings {before[-3:]} {last[-3:]}"}
    seen |= {f"{name} -{word[-size:]}" for size in (2, 3, 4) for name, word in (("last", last), ("before", before))}
    seen |= {f"has {word}" for word in words}
    seen |= {f"first {words[0]}", f"first two {' '.join(words[:2])}"}
    return seen | {f"words {min(MOST_WORDS, len(words))}", f"about {len(words) // 3}"}


def _learned(seen: Sequence[set[str]], whole: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> dict[str, float]:
    """The weight of each feature: least logistic loss, where each feature has steps of its own size. Whole sentences
    and begun ones count alike, however many there are of each."""
    index = {feature: place for place, feature in enumerate(sorted(set().union(*seen)))}
    sentence = np.repeat(np.arange(len(seen)), [len(each) for each in seen])
    feature = np.array([index[each] for features_ in seen for each in sorted(features_)])
    balance = np.where(whole, 0.5 / whole.mean(), 0.5 / (1 - whole).mean())
    step = 1 / (0.25 * np.bincount(feature, balance[sentence]) * (feature.size / len(seen)) + SHRINK)
    weights = ahead = np.zeros(len(index))
    for at in range(STEPS):
        odds = np.bincount(sentence, ahead[feature], len(seen))
        errors = balance * (1 / (1 + np.exp(-odds)) - whole)
        slope = np.bincount(feature, errors[sentence], len(index)) + SHRINK * ahead
        before, weights = weights, ahead - step * slope
        ahead = weights + at / (at + 3) * (weights - before)
    return dict(zip(index, weights.tolist(), strict=True))

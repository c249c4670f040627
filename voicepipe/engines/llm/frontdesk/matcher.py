"""Which intent a text means: a linear classifier over words, pairs of words and strings of sounds.

The features are weighted by how few intents share them (idf), the classifier is ridge regression of "is this intent" on
the examples, solved in closed form when an agent is loaded. Sounds run across word boundaries, so "of which is" is
still near "vouchers" where the words have nothing in common.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voicepipe.agent import Intent
from voicepipe.engines.llm.frontdesk.sounds_alike import sound, words

RIDGE = 1.0
"""Regularisation: higher trusts single words less."""

WEIGHTS = {"w": 1.0, "c": 0.8, "b": 0.6, "s": 0.8}
"""Weights of a word, of the concept that it stands for, of a pair of words, and of a string of sounds."""

SYNONYMS = """
price cost costs charge expensive pricey cheap dear
food eat meal dish dishes cuisine
child children kid kids baby son daughter toddler
restaurant place house
find reach located location
book reserve reservation booking
open hours opening
close closed shut
meat beef steak chicken pork
drink drinks wine wines beer beers cocktail cocktails
day monday tuesday wednesday thursday friday saturday sunday weekend today tomorrow tonight evening
number two three four five six seven eight nine ten twelve
person human someone somebody colleague manager staff boss
robot machine computer bot
voucher vouchers certificate card
big large huge
outside outdoor outdoors terrace patio garden
car cars park parking drive
repeat again pardon
"""
"""English words that callers use for the same thing, a line each."""

SOUNDS = (4, 5)
"""Lengths of the strings of sounds."""

MANY = 500
"""From so many examples on, pairs and sounds that only one of them has are left out: they teach little and cost time.
From twice as many on, those of two, and so on."""

UNKNOWN = 0.5
"""Weight of a feature that no example has, against the rarest that one has: unknown words speak against all intents."""


Rows = Sequence[tuple[int, Mapping[str, float]]]
"""(number of the intent, features), for every example."""


@dataclass(frozen=True, slots=True)
class Match:
    """The intent that fits a text best."""

    name: str = ""
    score: float = 0.0
    """About 1 for an example's own words, 0 for a text that has nothing to do with any."""
    margin: float = 0.0
    """How far the second best intent is behind."""


def stem(word: str) -> str:
    """The word without the endings that make no difference here."""
    for ending in ("ing", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if word[-1] in "ey" and len(word) > 3 else word.removesuffix("i") if len(word) > 3 else word


def features(text: str) -> Counter[str]:
    """The features by which the classifier sees a text."""
    heard = words(text)
    tokens = [stem(word) for word in heard]
    spoken = "".join(sound(word) for word in heard)
    found = Counter(f"w {token}" for token in tokens)
    found.update(f"c {CONCEPTS[token]}" for token in tokens if token in CONCEPTS)
    found.update(f"b {a} {b}" for a, b in zip(["^", *tokens], [*tokens, "$"], strict=True))
    found.update(f"s {spoken[i : i + size]}" for size in SOUNDS for i in range(len(spoken) - size + 1))
    return found


CONCEPTS = {
    stem(word): group[0] for group in (line.split() for line in SYNONYMS.strip().splitlines()) for word in group
}
"""Stem -> what it is a word for."""


class Matcher:
    """Classifies texts by one agent's intents. Building it takes about 0.7 s for 2,000 examples, asking it 0.3 ms."""

    def __init__(self, intents: Sequence[Intent]) -> None:
        self._names = [intent.name for intent in intents]
        rows: Rows = [(index, features(example)) for index, intent in enumerate(intents) for example in intent.examples]
        rows = _without_rare(rows, least=1 + len(rows) // MANY)
        self._idf = _idf(rows)
        self._columns = {feature: column for column, feature in enumerate(self._idf)}
        self._rarest = math.log(1 + len(intents))
        self._weights = self._solve(rows)

    def _solve(self, rows: Rows) -> NDArray[np.float32]:
        """float32[features, intents]: how much each feature speaks for each intent."""
        matrix = np.zeros((len(rows), len(self._columns)), np.float32)
        truth = np.zeros((len(rows), len(self._names)), np.float32)
        for row, (intent, found) in enumerate(rows):
            columns, values = self._vector(found)
            matrix[row, columns] = values
            truth[row, intent] = 1
        gram = matrix @ matrix.T
        gram[np.diag_indices_from(gram)] += RIDGE
        return (matrix.T @ np.linalg.solve(gram, truth)).astype(np.float32) * (1 + RIDGE)

    def _vector(self, found: Mapping[str, float]) -> tuple[list[int], NDArray[np.float32]]:
        """The columns of the features that are known, and their values in a vector of length 1."""
        columns: list[int] = []
        values: list[float] = []
        square = 0.0
        for feature, count in found.items():
            known = self._idf.get(feature)
            value = WEIGHTS[feature[0]] * math.sqrt(count) * (self._rarest * UNKNOWN if known is None else known)
            square += value * value
            if known is not None:
                columns.append(self._columns[feature])
                values.append(value)
        return columns, np.array(values, np.float32) / (math.sqrt(square) or 1.0)

    def scores(self, text: str) -> dict[str, float]:
        """The score of every intent."""
        columns, values = self._vector(features(text))
        result = values @ self._weights[columns] if columns else np.zeros(len(self._names))
        return dict(zip(self._names, result.tolist(), strict=True))

    def match(self, text: str) -> Match:
        """The best intent; an empty Match without words or intents."""
        ranked = sorted(self.scores(text).items(), key=lambda entry: -entry[1])
        if not ranked or not text.strip():
            return Match()
        second = ranked[1][1] if len(ranked) > 1 else 0.0
        return Match(*ranked[0], ranked[0][1] - second)


class KeptMatches:
    """The intents that texts match best. Kept, because every turn is heard again in each later one's fold."""

    def __init__(self, intents: Sequence[Intent]) -> None:
        self._matcher = Matcher(intents)
        self._matches: dict[str, Match] = {}

    def match(self, text: str) -> Match:
        """The best intent for `text`."""
        if text not in self._matches:
            if len(self._matches) >= 4096:
                self._matches.clear()
            self._matches[text] = self._matcher.match(text)
        return self._matches[text]


def _idf(rows: Rows) -> dict[str, float]:
    """log(1 + intents / intents that have the feature), for every feature."""
    owners: dict[str, set[int]] = {}
    for intent, found in rows:
        for feature in found:
            owners.setdefault(feature, set()).add(intent)
    total = len({intent for intent, _ in rows})
    return {feature: math.log(1 + total / len(having)) - math.log(2) + 0.05 for feature, having in owners.items()}


def _without_rare(rows: Rows, least: int) -> Rows:
    """`rows` without the pairs and sounds that fewer than `least` of them have."""
    counts = Counter(feature for _, found in rows for feature in found)
    return [
        (intent, {feature: value for feature, value in found.items() if counts[feature] >= least or feature[0] == "w"})
        for intent, found in rows
    ]

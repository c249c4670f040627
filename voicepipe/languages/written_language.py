"""Tells the language of a text, among a few that are possible. By py3langid (Lui and Baldwin, langid.py, 2012): byte
n-grams of some 140 languages, 0.2 ms a sentence."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from voicepipe.languages.tags import primary


class LikelyLanguage(NamedTuple):
    """A language, and how probable it is."""

    tag: str = ""
    """As it was asked for. Empty: nothing tells."""
    probability: float = 0.0


STANDS_OUT = 0.6
"""Share of the probability from which on another language than before is believed."""


def likeliest(odds: Mapping[str, float], before: str = "") -> LikelyLanguage:
    """The likeliest language by the odds of all that are possible, by their tags. Where none stands out it is the one
    `before`, if that is among them; nothing where all odds are 0."""
    whole = sum(odds.values())
    if not whole:
        return LikelyLanguage()
    tag = max(odds, key=lambda each: odds[each])
    if odds[tag] < STANDS_OUT * whole and before in odds:
        tag = before
    return LikelyLanguage(tag, odds[tag] / whole)


def written_language(text: str, among: Sequence[str]) -> LikelyLanguage:
    """The likeliest of the languages `among` (tags) for this text. Nothing is told of one that the model does not
    know."""
    names: dict[str, str] = {}
    for tag in among:
        names.setdefault(primary(tag), tag)
    odds = {names[name]: odds for name, odds in _identifier().rank(text.lower()) if name in names}
    return likeliest(odds) if len(odds) > 1 else LikelyLanguage()


def warm() -> None:
    """Load the model, which takes some 0.6 s the first time."""
    _identifier()


@functools.cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

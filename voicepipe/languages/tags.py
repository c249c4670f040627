"""Languages by their tags (BCP 47): which are the same, and what they are called."""

import functools
from collections.abc import Iterable, Mapping

from babel import Locale


def primary(tag: str) -> str:
    """The language of a tag, without its country: "de" of "de-AT"."""
    return tag.lower().partition("-")[0]


def named_in(tags: Iterable[str], tag: str) -> str:
    """The one of `tags` that is the language `tag`, whatever the country of either; empty: none is."""
    tags = tuple(tags)
    exact = (each for each in tags if each.lower() == tag.lower())
    return next(exact, next((each for each in tags if primary(each) == primary(tag)), "")) if tag else ""


def english_name(tag: str) -> str:
    """What a language is called in English, "French" of "fr-CA"; empty: there is no such language."""
    return _names().get(primary(tag), "")


@functools.cache
def _names() -> Mapping[str, str]:
    return dict(Locale("en").languages)

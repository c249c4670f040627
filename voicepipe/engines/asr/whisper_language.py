"""The language of a passage of sound, by the probabilities that Whisper gives to all that it knows. Pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from voicepipe.languages.tags import primary
from voicepipe.languages.written_language import LikelyLanguage, likeliest

NAMED_OTHERWISE = {"jv": "jw"}
"""Languages that Whisper alone calls otherwise."""


class PassageLanguage(NamedTuple):
    """The language in which a passage is read."""

    name: str
    """As Whisper calls it."""
    sure: bool
    likely: LikelyLanguage = LikelyLanguage()
    """The one of the passage's languages that was heard; nothing where none were named."""


def whisper_name(tag: str, has: Callable[[str], bool]) -> str:
    """Whisper's name of a language (BCP 47); empty: the model does not know it. `has`: whether it knows one of its
    names."""
    name = NAMED_OTHERWISE.get(primary(tag), primary(tag))
    return name if tag and has(name) else ""


def language_heard(
    among: Sequence[str], before: str, found: Sequence[tuple[str, float]], has: Callable[[str], bool]
) -> PassageLanguage:
    """The language that was heard: of `among` (BCP 47), with `before` as the one before; of all where `among` names
    none that Whisper knows. `found`: all of Whisper's marks of languages with their probabilities, the likeliest
    first."""
    names = {tag: name for tag in among if (name := whisper_name(tag, has))}
    odds = {mark.strip("<|>"): probability for mark, probability in found}
    likely = likeliest({tag: odds.get(name, 0.0) for tag, name in names.items()}, before)
    if likely.tag:
        return PassageLanguage(names[likely.tag], sure=True, likely=likely)
    mark, probability = found[0]
    return PassageLanguage(mark.strip("<|>"), probability > 0.5)

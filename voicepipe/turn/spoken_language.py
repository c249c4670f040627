"""Which language the caller speaks, by what each utterance tells. Pure.

One sure utterance in another of the agent's languages changes it, or two unsure ones in a row. Words that are said in
many languages ("okay"), names, numbers and answers in the present language tell nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from voicepipe.base.words import plain, written
from voicepipe.languages.known import language_of
from voicepipe.languages.written_language import LikelyLanguage, written_language

SURE, LIKELY = 0.8, 0.6
"""Probabilities from which on a language is sure, and from which on it counts at all."""
LEAST_MS = 1000
LEAST_WORDS = 3
"""Less sound or fewer words are never sure."""
LONGEST = 500
"""Characters that are looked at: a client may type more, and these tell as much."""
EVERYWHERE = frozenset(
    "okay ok oke okey hallo hello hola halo hallå allo allô hi hey salut ciao taxi super stop sorry no mm mhm hm hmm "
    "um uh ah oh eh pizza hotel restaurant bar internet email telefon".split()
)
"""Words that are said in many languages."""


@dataclass(frozen=True, slots=True)
class ToldUtterance:
    """An utterance, with what is known of its language."""

    text: str
    ms: float | None = None
    """Milliseconds of sound; None: it was typed."""
    told: LikelyLanguage = LikelyLanguage()
    """By the recogniser, one of the agent's languages."""
    asked: str = ""
    """What the agent had said before it."""


@dataclass(frozen=True, slots=True)
class SpokenLanguage:
    """The language that the caller speaks, as far as is known."""

    languages: tuple[str, ...]
    """Those that the agent speaks, by their tags."""
    now: str
    """The present one, of `languages`."""
    unsure: str = ""
    """Another one in which the last utterance seemed to be."""

    def after(self, heard: ToldUtterance) -> "SpokenLanguage":
        """What is known after another utterance."""
        found = self._evidence(replace(heard, text=heard.text[:LONGEST]))
        if found.tag == self.now:
            return replace(self, unsure="")
        if not found.tag:
            return self
        if found.probability >= SURE or found.tag == self.unsure:
            return replace(self, now=found.tag, unsure="")
        return replace(self, unsure=found.tag)

    def spoken(self, tag: str) -> "SpokenLanguage":
        """The language is `tag` from here on, whatever was heard."""
        return replace(self, now=tag, unsure="")

    def _evidence(self, heard: ToldUtterance) -> LikelyLanguage:
        """The language of an utterance: sure where the probability is `SURE` or more. Without a tag: nothing tells."""
        if len(self.languages) < 2 or (heard.ms is not None and not heard.told.tag):
            return LikelyLanguage()
        words = telling_words(heard.text, self.languages)
        if not words or language_of(self.now).turn.answers(heard.text, heard.asked):
            return LikelyLanguage()
        told = self._told(heard)
        if told.probability < LIKELY:
            return LikelyLanguage()
        if len(words) < LEAST_WORDS:
            return LikelyLanguage(told.tag, LIKELY) if self._knows(told.tag, heard.text) else LikelyLanguage()
        if heard.ms is not None and heard.ms < LEAST_MS:
            return LikelyLanguage(told.tag, min(told.probability, LIKELY))
        return told

    def _told(self, heard: ToldUtterance) -> LikelyLanguage:
        """What the recogniser and the words say together; the words alone where it was typed."""
        by_words = written_language(heard.text, self.languages)
        if heard.ms is None:
            return by_words
        told = heard.told
        if by_words.tag == told.tag or by_words.probability < SURE:
            return told
        # Recognisers write what they take for the language, so words in another one speak against it.
        return LikelyLanguage(told.tag, min(told.probability, LIKELY) if told.probability >= SURE else 0.0)

    def _knows(self, tag: str, text: str) -> bool:
        """Whether these few words are a yes, a no or the like in the language `tag` and not in the present one."""
        return _is_known(tag, text) and not _is_known(self.now, text)


def telling_words(text: str, languages: Sequence[str]) -> list[str]:
    """The words of `text` that may tell its language: no name, no number, and none that is said everywhere."""
    spelled = list(written(text))
    if len(spelled) > 1 and all(word[:1].isupper() for word in spelled):
        return []  # A name.
    turns = [language_of(tag).turn for tag in languages]
    return [
        word
        for word in plain(text).split()
        if word not in EVERYWHERE
        and not any(letter.isdigit() for letter in word)
        and not any(turn.is_digit(word) for turn in turns)
    ]


def _is_known(tag: str, text: str) -> bool:
    turn = language_of(tag).turn
    return turn.asks_to_wait(text) or any(turn.is_lone(word) for word in plain(text).split())

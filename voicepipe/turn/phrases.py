"""The model's tokens -> phrases to speak. The first is short, so that the reply starts early; later ones are sentences.

A phrase ends at a *boundary*: a whitespace between two words that may be parted. Since nothing but a whitespace ever is
a boundary, prices, times, URLs and numbers with a point stay whole; what holds words together across a whitespace
(abbreviations, phone numbers, open brackets and markdown spans) is in the tables below.
"""

import re
from dataclasses import dataclass

SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]*_`]*$")
CLAUSE_END = re.compile(r"[,;:–—][\"'”’)\]*_`]*$|^[–—-]$")

HOLDING = frozenset(
    "dr. mr. mrs. ms. prof. st. sr. jr. gen. col. sgt. capt. rev. hon. mt. e.g. i.e. vs. cf. ca. approx. tel.".split()
)
"""After one of these the sentence goes on, whatever follows."""

NUMBERED = frozenset("no. nr. fig. vol. p. pp. jan. feb. mar. apr. jun. jul. aug. sep. sept. oct. nov. dec.".split())
"""After one of these it goes on if a number follows. Any other point is an abbreviation's if a small letter follows."""

INITIAL = re.compile(r"^[(\"'“‘]*[A-Za-z]\.$")
"""The "J." of a name."""

DIGITS = re.compile(r"^[+(]*\d[\d()./-]*$")
"""A group of a phone number, or a number that a unit may follow."""

LIST_MARK = re.compile(r"^(?:[-*+•]|#{1,6}|\d{1,2}[.)])$")
"""What stands before a list's entry or a heading is not a phrase of its own."""

DANGLING = frozenset(
    "a an the my your our his her its their this that to of for in on at by from with as is are was be will can and or "
    "but if than no not i we you it very".split()
)
"""A phrase does not end after one of these unless it must."""

CONJUNCTIONS = frozenset("and but so or because while which that if when then with until from".split())
"""A clause can end before one of these, without a comma."""

SPANS = ("**", "__", "```", "`", "~~")
"""Markdown signs that come in pairs."""

BRACKETS = {"(": ")", "[": "]"}


@dataclass(frozen=True, slots=True)
class PhraseConfig:
    """Lengths in words, and in characters where no word ends."""

    first_words: int = 4
    """A first phrase may end at a clause once it has this many words."""
    first_limit: int = 10
    """A first phrase that found no clause ends here."""
    hurry_words: int = 2
    """The same two when there is no time."""
    hurry_limit: int = 5
    clause_words: int = 12
    """A later phrase without a sentence end may end at a clause from here on."""
    limit: int = 30
    """No phrase has more words than this, whatever holds them together."""
    limit_chars: int = 280
    """A word is not waited for longer than this (a model that writes no spaces)."""


SENTENCES = PhraseConfig(first_words=30, first_limit=60, clause_words=30, limit=60)
"""For a text that is there as a whole: nobody waits for its words, so only a very long sentence is cut, at a clause."""


class Phraser:
    """Cuts one reply. `"".join` of all phrases is the reply itself: each keeps the space that followed it."""

    def __init__(self, config: PhraseConfig | None = None, *, hurry: bool = False) -> None:
        self._config = config or PhraseConfig()
        self._text = ""
        self._first = True
        self.hurry = hurry
        """Make the first phrase shorter still; may be set until it has come out."""

    def push(self, text: str) -> list[str]:
        """More of the reply; returns the phrases that are certain now, in order."""
        self._text += text
        phrases: list[str] = []
        while (cut := self._cut()) is not None:
            phrases.append(self._text[:cut])
            self._text = self._text[cut:]
            self._first = False
        return phrases

    def flush(self) -> list[str]:
        """The reply is over: the rest as a last phrase, or nothing."""
        rest, self._text = self._text, ""
        # Space alone after the last phrase is nothing to speak, but it belongs to the text.
        return [rest] if rest else []

    def _cut(self) -> int | None:
        """Where the next phrase ends in the text so far; None if that cannot be known yet."""
        held = _Held()
        word = None
        # A boundary needs the beginning of the next word: the one after the last is not known yet.
        for count, following in enumerate(re.finditer(r"\S+", self._text)):
            if word is not None:
                held.take(word.group())
                gap = self._text[word.end() : following.start()]
                if self._ends(count, word.group(), following.group(), gap, held):
                    return following.start()
            word = following
        if word is not None and word.end() - word.start() > self._config.limit_chars:
            return word.start() + self._config.limit_chars
        return None

    def _ends(self, count: int, word: str, following: str, gap: str, held: "_Held") -> bool:
        """Whether a phrase of `count` words may end between `word` and `following`."""
        config = self._config
        if count >= config.limit:
            return True
        if held.open or LIST_MARK.match(word):
            return False
        if gap.count("\n") > 1 or (SENTENCE_END.search(word) and not _abbreviates(word, following)):
            return True
        if _joined(word, following):
            return False
        clause = bool(CLAUSE_END.search(word)) or "\n" in gap
        if not self._first:
            return clause and count >= config.clause_words
        least, most = (
            (config.hurry_words, config.hurry_limit) if self.hurry else (config.first_words, config.first_limit)
        )
        if clause:
            return count >= least
        return word.lower() not in DANGLING and count >= (least if following.lower() in CONJUNCTIONS else most)


class _Held:
    """Brackets and markdown spans that the words so far have opened and not closed."""

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}

    def take(self, word: str) -> None:
        rest = word
        for span in SPANS:
            if rest.count(span) % 2:
                self._marks[span] = 1 - self._marks.get(span, 0)
            rest = rest.replace(span, "")
        for opening, closing in BRACKETS.items():
            depth = self._marks.get(opening, 0) + rest.count(opening) - rest.count(closing)
            self._marks[opening] = max(0, depth)

    @property
    def open(self) -> bool:
        return any(self._marks.values())


def _abbreviates(word: str, following: str) -> bool:
    """Whether the point at the end of `word` is an abbreviation's, so that the sentence may go on."""
    if not word.endswith("."):
        return False
    bare = word.lower().lstrip("(\"'“‘*_")
    initial = bool(INITIAL.match(word)) and bare != "i."
    return bare in HOLDING or initial or following[:1].islower() or (bare in NUMBERED and following[:1].isdigit())


def _joined(word: str, following: str) -> bool:
    """Whether the two are spoken as one thing: groups of a phone number, a number and its unit, "at" and "7"."""
    if CLAUSE_END.search(word):
        return False
    return bool(DIGITS.match(word) or DIGITS.match(following)) or _abbreviates(word, following)

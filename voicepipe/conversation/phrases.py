"""The model's tokens -> phrases to speak. The first is short, so that the reply starts early; later ones are sentences.

A phrase ends at a *boundary*, between two words (`base/words.py`) that may be parted. Where a script has spaces nothing
but a whitespace is a boundary, so prices, times, URLs and numbers with a point stay whole; what holds words together
across a whitespace (abbreviations, phone numbers, open brackets and markdown spans) is in the tables below. Where it
has none, a phrase ends behind the marks of its sentences and clauses.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import regex

from voicepipe.base.punctuation import CLAUSE_END, CLEAR_END, SENTENCE_END
from voicepipe.base.words import WRITTEN, cut_before, is_unspaced, lasts
from voicepipe.languages.written_form import CURRENCY, HYPHENS

SPACE = re.compile(r"\s*")

HOLDING = frozenset(
    "dr. mr. mrs. ms. prof. st. sr. jr. gen. col. sgt. capt. rev. hon. mt. e.g. i.e. vs. cf. ca. approx. tel. "
    "bzw. inkl. zzgl. ggf. evtl. vgl. mio. mrd. sra. srta. dra. ee. avda. dott. sig. avv. ing. geom. rag.".split()
)
"""After one of these the sentence goes on, whatever follows."""

NUMBERED = frozenset(
    "no. nr. ext. fig. vol. p. pp. jan. feb. mar. apr. jun. jul. aug. sep. sept. oct. nov. dec. "
    "art. kap. abs. pág. núm. hab. pag. pagg. cap.".split()
)
"""After one of these it goes on if a number follows. Any other point is an abbreviation's if a small letter follows."""

INITIAL = re.compile(r"^[(\"'“‘]*[A-Za-z]\.$")
"""The "J." of a name."""

DIGITS = re.compile(rf"^[+(~-]*(?:[A-Z]{{0,2}}[{CURRENCY}])?\d[\d().,:/{HYPHENS}]*$")
"""A group of a phone number, or a number that a unit may follow: "$2" trillion, "3:05" p.m."""

DASHES = ("-", "–")
"""Alone before a number these are between the ends of a range."""

BEFORE_DIGITS = re.compile(rf"[+(~{CURRENCY}]+")
"""Signs with which a group of digits may begin."""

LIST_MARK = re.compile(r"^(?:[-*+•・]|#{1,6}|\d{1,2}[.)．）、])$")
"""Marks before a list's entry or a heading, which are no phrases of their own."""

DANGLING = frozenset(
    "a an the my your our his her its their this that to of for in on at by from with as is are was be will can and or "
    "but if than no not i we you it very".split()
)
"""A phrase does not end after one of these unless it must."""

CONJUNCTIONS = frozenset("and but so or because while which that if when then with until from".split())
"""A clause can end before one of these, without a comma."""

BETWEEN_NUMBERS = frozenset("and or on to till until".split())
"""Behind a number or a time one of these mostly goes on with it: "5 and 6", "7:30 p.m. on Friday"."""

HALVES_OF_A_DAY = frozenset(("a.m.", "p.m."))

SPANS = ("**", "__", "```", "`", "~~")
"""Markdown signs that come in pairs."""

BRACKETS = {"(": ")", "[": "]", "（": "）", "［": "］", "【": "】"}

QUOTES = {"「": "」", "『": "』", "《": "》", "〈": "〉", "“": "”", "«": "»"}
"""Quotation marks: a closing one may still follow a mark that came last, so that the phrase does not end there yet."""


@dataclass(frozen=True, slots=True)
class PhraseLengths:
    """How long phrases may be: lengths in words, as long as they take in English (`words.lasts`), and in characters
    where no word ends."""

    first_words: int = 4
    """A first phrase may end at a clause once it has this many words."""
    first_limit: int = 10
    """A first phrase that found no clause ends here."""
    hurry_words: int = 2
    """Instead of `first_words` and `first_limit`, when there is no time."""
    hurry_limit: int = 5
    clause_words: int = 12
    """A later phrase without a sentence end may end at a clause from here on."""
    limit: int = 30
    """No phrase has more words than this, whatever holds them together."""
    limit_chars: int = 280
    """A word is not waited for longer than this, nor is the end of a gap."""
    most_chars: int = 500
    """A phrase that is longer ends before its next word, whatever holds them together."""


SENTENCES = PhraseLengths(first_words=30, first_limit=60, clause_words=30, limit=60)
"""Lengths for a text that is there as a whole: nobody waits for its words, so only very long sentences are cut."""


class Phraser:
    """Cuts one reply into phrases, as it comes.

    `"".join` of all phrases is the reply itself: each keeps the space that followed it, or, behind a mark that ends it
    at once, the next one has it. Each word is looked at once, and a phrase is looked for when the one before it was
    taken: a long text costs no more than its length, and not all of that at once.
    """

    def __init__(self, lengths: PhraseLengths | None = None, *, hurry: bool = False) -> None:
        self._lengths = lengths or PhraseLengths()
        self._text = ""
        self._first = True
        self._hurry = hurry
        self._start = self._last_end = 0
        """Index at which the phrase begins, and at which its last complete word ends."""
        self._words = _PhraseWords()
        """The phrase's complete words."""
        self._quotes = NO_QUOTES
        """The quotation marks of the reply up to `_last_end`."""

    def hurry(self) -> None:
        """Make the first phrase shorter still, if it has not come out yet."""
        if self._first and not self._hurry:
            self._hurry = True
            # It might have ended in what was looked at before.
            self._last_end, self._words, self._quotes = self._start, _PhraseWords(), NO_QUOTES

    def push(self, text: str) -> Iterator[str]:
        """More of the reply; gives the phrases that are certain now, in order. Take them all before you push more."""
        self._text = self._text[self._start :] + text
        self._last_end -= self._start
        self._start = 0
        return self._certain()

    def flush(self) -> list[str]:
        """The reply is over: the rest as a last phrase, or nothing."""
        rest, self._text = self._text[self._start :], ""
        self._start = self._last_end = 0
        self._words = _PhraseWords()
        # Space alone after the last phrase is nothing to speak, but it belongs to the text.
        return [rest] if rest else []

    def _certain(self) -> Iterator[str]:
        while (cut := self._cut()) is not None:
            phrase = self._text[self._start : cut]
            self._start = self._last_end = cut
            self._words = _PhraseWords()
            self._first = False
            yield phrase

    def _cut(self) -> int | None:
        """The index at which the next phrase ends in the text so far; None if that cannot be known yet."""
        text, longest = self._text, self._lengths.limit_chars
        while True:
            gap = SPACE.match(text, self._last_end, self._last_end + longest + 1)
            assert gap  # It matches nothing, too.
            begins = gap.end()
            if begins - self._last_end > longest:
                return self._last_end + longest
            # A boundary needs the beginning of the next word: the one after the last is not known yet.
            following = WRITTEN.match(text, begins, begins + longest + 1)
            if following is None:
                return None
            if self._words.count and all(
                self._ends(self._words, word, gap.group(), begins - self._start) for word in _may_be(following)
            ):
                return begins
            if following.end() - begins > longest:
                return cut_before(text, begins + longest)
            words, quotes = self._words.and_(following.group()), self._quotes.and_(following.group())
            at_once = CLEAR_END.search(words.last) and self._ends(words, "", "", following.end() - self._start)
            if following.end() == len(text) and not (at_once and not quotes.any):
                return None
            self._last_end, self._words, self._quotes = following.end(), words, quotes
            if at_once:
                return self._last_end

    def _ends(self, words: "_PhraseWords", following: str, gap: str, chars: int) -> bool:
        """Whether the phrase of `words`, of `chars` characters, may end before `following`."""
        lengths, count, word = self._lengths, words.count, words.last
        if count >= lengths.limit or chars > lengths.most_chars:
            return True
        if words.held.any or LIST_MARK.match(word):
            return False
        if gap.count("\n") > 1 or ends_sentence(word, following):
            return True
        if _joined(word, following):
            return False
        # Scripts without spaces between words have some between clauses.
        clause = CLAUSE_END.search(word) or "\n" in gap or (gap and is_unspaced(word) and is_unspaced(following))
        if not self._first:
            return bool(clause) and count >= lengths.clause_words
        least, most = (
            (lengths.hurry_words, lengths.hurry_limit) if self._hurry else (lengths.first_words, lengths.first_limit)
        )
        if clause:
            return count >= least
        return word.lower() not in DANGLING and count >= (least if following.lower() in CONJUNCTIONS else most)


def _may_be(following: regex.Match[str]) -> tuple[str, ...]:
    """The next word, in the forms that it may yet have. The "or" of "orchestra" is taken for a word: models seldom part
    one there, and if that were waited for, each first phrase would come a token later."""
    word = following.group()
    unknown = following.end() == len(following.string) and BEFORE_DIGITS.fullmatch(word)
    return (word, f"{word}0") if unknown else (word,)


def ends_sentence(word: str, following: str = "") -> bool:
    """Whether a sentence ends with `word`; `following` is the word after it, if that is known."""
    return bool(SENTENCE_END.search(word)) and not _abbreviates(word, following)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text that is there as a whole."""
    cutter = Phraser(SENTENCES)
    yield from cutter.push(text)
    yield from cutter.flush()


@dataclass(frozen=True, slots=True)
class _Open:
    """Paired signs (brackets, quotes) that the words so far have opened and not closed."""

    pairs: Mapping[str, str]
    spans: Sequence[str]
    """Signs that both open and close."""
    depths: Mapping[str, int] = field(default_factory=dict)

    def and_(self, word: str) -> "_Open":
        """The state after one more word."""
        if word.isalnum():
            return self
        depths, rest = dict(self.depths), word
        for span in self.spans:
            if rest.count(span) % 2:
                depths[span] = 1 - depths.get(span, 0)
            rest = rest.replace(span, "")
        for opening, closing in self.pairs.items():
            depths[opening] = max(0, depths.get(opening, 0) + rest.count(opening) - rest.count(closing))
        return replace(self, depths=depths)

    @property
    def any(self) -> bool:
        return any(self.depths.values())


@dataclass(frozen=True, slots=True)
class _PhraseWords:
    """The words of a phrase so far, as far as its end depends on them."""

    count: float = 0.0
    """Their length, in English words."""
    last: str = ""
    held: _Open = _Open(BRACKETS, SPANS)

    def and_(self, word: str) -> "_PhraseWords":
        """The state after one more word."""
        return _PhraseWords(self.count + lasts(word), word, self.held.and_(word))


NO_QUOTES = _Open(QUOTES, spans=('"',))


def _abbreviates(word: str, following: str) -> bool:
    """Whether the point at the end of `word` is an abbreviation's, so that the sentence may go on."""
    if not word.endswith("."):
        return False
    bare = word.lower().lstrip("(\"'“‘*_")
    initial = bool(INITIAL.match(word)) and bare != "i."
    return (
        bare in HOLDING
        or initial
        or following[:1].islower()
        or following in DASHES
        or (bare in NUMBERED and following[:1].isdigit())
    )


def _joined(word: str, following: str) -> bool:
    """Whether the two are spoken as one thing: groups of a phone number, a number and its unit, "at" and "7"."""
    if CLAUSE_END.search(word) and not (word in DASHES and DIGITS.match(following)):
        return False
    if not DIGITS.match(following) and following.lower() not in (*BETWEEN_NUMBERS, *DASHES):
        if following.lower() in CONJUNCTIONS or word.lower() in HALVES_OF_A_DAY:
            return False
    return bool(DIGITS.match(word) or DIGITS.match(following)) or _abbreviates(word, following)

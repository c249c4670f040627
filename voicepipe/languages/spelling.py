"""What callers spell, letter by letter or by an alphabet of words ("M wie Martha", "alpha bravo"): whether the row of
letters at the end of a turn is whole. Pure.

A row is whole where it spells a word that was said before ("Müller, M Ü L L E R"), by the caller or in the agent's
question, or where a closing word stands behind it. Any other may go on: nothing in it tells how long the name is.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources

import msgspec

from voicepipe.base.words import plain
from voicepipe.languages.language import CompletenessRule

LETTER, NAMED, NAMED_VAGUELY, WORD = 3, 6, 4, 2
"""How much shows that something is spelled: a letter that is no other word; one with "as in" and a word, which may be
another word, too ("a como"); a word of the alphabet."""
SPELLED = 6
"""So much shows it: two letters, one "as in", three words of the alphabet. One letter does if nothing else was said."""
SHORTEST = 3
"""Letters of a name that is compared."""
UNMARKED = {"ä": "ae", "ö": "oe", "ü": "ue"}
"""How letters are spelled where there are none of them."""
WITHOUT_MARK = {"ß": "ss", "ı": "i", "ø": "o", "ł": "l"}
"""Letters whose mark is no character of its own in any form."""


class SpellingFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a language spells, `spelling.toml` in its folder. All in small letters; lists of words have blanks between
    them."""

    letters: dict[str, str] = {}
    """Names of letters, of one or more words, and words of the alphabet that stand for more than their first letter:
    "doble uve" = "w", "schule" = "sch". A letter needs no name here."""
    alphabet: str
    """Words that stand for their first letter: "anton berta"."""
    as_in: tuple[str, ...]
    """Between a letter and a word that begins with it: "as in"."""
    doubles: str = ""
    """The next letter counts twice: "double"."""
    doubles_inside: str = ""
    """The same, but only behind another letter: "zwei" is the number of a house in "zwei a"."""
    between: str
    """May stand between letters: hesitations, "and", "hyphen", "capital", names of accents."""
    vague: str
    """Letters and their names that are other words, too: they alone do not show that something is spelled."""
    closing: str
    """Behind the last letter: "please", "that's it"."""
    whole_behind: str = ""
    """Letters behind one of these are whole: of an address ("dot c h"), or of a remark on a name ("with double l")."""
    initials: str = ""
    """What is said by its letters and is spelled for nobody: "pm"."""


@dataclass(frozen=True, slots=True)
class SpelledRow:
    """The letters at the end of what was said."""

    letters: str = ""
    shown: int = 0
    """How much shows that they are spelled; see `SPELLED`."""
    before: int = 0
    """Words before them."""


class Spelling:
    """Reads a language's spelled rows. All methods take words as they were said (`TurnWords.as_said`). `is_number`:
    whether a word is one of a number: letters behind one end a code, such as a car's plate, which may be whole."""

    def __init__(self, file: SpellingFile, is_number: Callable[[str], bool]) -> None:
        self._is_number = is_number
        self._letters = {tuple(name.split()): letters for name, letters in file.letters.items()}
        self._longest = max(map(len, self._letters), default=1)
        self._alphabet, self._vague = frozenset(file.alphabet.split()), frozenset(file.vague.split())
        self._as_in = tuple(tuple(each.split()) for each in file.as_in)
        self._doubles = frozenset(file.doubles.split())
        self._doubles_inside = self._doubles | frozenset(file.doubles_inside.split())
        self._between, self._whole_behind = frozenset(file.between.split()), frozenset(file.whole_behind.split())
        self._closing, self._initials = frozenset(file.closing.split()), frozenset(file.initials.split())
        self.rule = CompletenessRule("a name is being spelled", self._goes_on, -3.0)

    def ends_in_letters(self, words: Sequence[str]) -> bool:
        """Whether the last of these words is a letter that is spelled, or "double" behind one, and no "as in"."""
        if self._wants_a_letter(words):
            return True
        as_in = any(tuple(words[-len(each) :]) == each for each in self._as_in)
        return not as_in and self._is_spelled(self._row(words))

    def is_whole(self, words: Sequence[str]) -> bool:
        """Whether a word that was said before is spelled to its end."""
        row = self._row(words)
        return self._is_spelled(row) and _spells(row, words[: row.before])

    def answers(self, words: Sequence[str], asked: str) -> bool:
        """Whether these words spell a name to its end, after a question for that: one of `asked`, the agent's words, or
        of the caller's own, or one behind which a closing word stands."""
        end = len(words)
        while end and words[end - 1] in self._closing:
            end -= 1
        row = self._row(words[:end])
        if not self._is_spelled(row):
            return False
        return end < len(words) or _spells(row, [*words[: row.before], *plain(asked).split()])

    def _goes_on(self, words: list[str]) -> bool:
        if self._wants_a_letter(words):
            return True
        row = self._row(words)
        before = words[row.before - 1] if row.before else ""
        ends = before in self._whole_behind or self._is_number(before) or _spells(row, words[: row.before])
        return self._is_spelled(row) and not ends

    def _wants_a_letter(self, words: Sequence[str]) -> bool:
        """Whether the last word is a "double" behind letters."""
        return words[-1] in self._doubles and self._is_spelled(self._row(words[:-1]))

    def _is_spelled(self, row: SpelledRow) -> bool:
        alone = not row.before and len(row.letters) == 1 and row.shown >= LETTER
        return (alone or row.shown >= SPELLED) and row.letters not in self._initials

    def _row(self, words: Sequence[str]) -> SpelledRow:
        letters, shown, begin, at = "", 0, 0, 0
        while at < len(words):
            if found := self._item(words, at, inside=bool(letters)):
                item, evidence, length = found
                letters, shown, at = letters + item, shown + evidence, at + length
            elif words[at] in self._between:
                at += 1
                begin = begin if letters else at
            else:
                letters, shown, begin, at = "", 0, at + 1, at + 1
        return SpelledRow(letters, shown, begin)

    def _item(self, words: Sequence[str], at: int, *, inside: bool) -> tuple[str, int, int] | None:
        """The letters that are spelled by the words from `at` on, how much shows it, and by how many words. `inside`:
        letters stand before."""
        doubles = self._doubles_inside if inside else self._doubles
        times = 2 if words[at] in doubles and at + 1 < len(words) else 1
        first = at + times - 1
        letter, length = self._letter(words, first)
        if not length:
            return (words[at][0], WORD, 1) if words[at] in self._alphabet else None
        behind = first + length
        vague = " ".join(words[first:behind]) in self._vague
        for as_in in self._as_in:
            named = behind + len(as_in)
            if tuple(words[behind:named]) == as_in and named < len(words) and _begins(words[named], letter):
                shown = NAMED_VAGUELY + WORD * (words[named] in self._alphabet) if vague else NAMED
                return letter * times, shown, named + 1 - at
        return letter * times, 0 if vague else LETTER * times, behind - at

    def _letter(self, words: Sequence[str], at: int) -> tuple[str, int]:
        """The letter whose name stands there, and the words of the name; ("", 0): there is none."""
        for length in range(min(self._longest, len(words) - at), 0, -1):
            if letter := self._letters.get(tuple(words[at : at + length])):
                return letter, length
        if len(words[at]) == 1 and words[at].isalpha() and _folded(words[at]).isascii():
            return words[at], 1  # Not of a script in which it is a word.
        return "", 0


def spelling_file(tag: str) -> SpellingFile:
    """The file of a language that has rules. Raises msgspec.ValidationError: it is not right."""
    text = resources.files("voicepipe.languages").joinpath(tag, "spelling.toml").read_text("utf-8")
    return msgspec.toml.decode(text, type=SpellingFile)


def _begins(word: str, letters: str) -> bool:
    return _folded(word)[:1] == _folded(letters)[:1]


def _spells(row: SpelledRow, said: Sequence[str]) -> bool:
    spelled = _folded(row.letters)
    if len(spelled) < SHORTEST:
        return False
    return any(spelled in (_folded(word), _folded(_unmarked(word))) for word in said)


def _unmarked(word: str) -> str:
    return "".join(UNMARKED.get(letter, letter) for letter in word)


def _folded(word: str) -> str:
    """`word` without marks on its letters."""
    bare = (letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
    return "".join(WITHOUT_MARK.get(letter, letter) for letter in bare)

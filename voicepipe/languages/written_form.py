"""A written form: how it looks and what is said for it; and a table of forms, of which one is found at a position.

A form is recognised as a whole. Whoever writes one ends its pattern with `END`, so that it never takes a part of a
longer one ("2.4" of "2.4.1"), and may return None from `say` to leave the text to the forms after it.
"""

import re
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property

DIGITS = string.digits
LETTERS = string.ascii_letters
GAP = "[ \u00a0\u2009\u202f]?"
"""One space, a breaking one or not, or none. Never the end of a line."""
HYPHENS = "‐‑–-"
"""What parts the groups of a number, U+2010 to U+2013 as well: for the end of a class of signs."""
HYPHEN = f"[{HYPHENS}]"
END = rf"(?![\w½¼¾]|[.:/{HYPHENS}][0-9]|,[0-9]{{3}}(?![0-9]))"
"""Where a number may end: nothing that belongs to it follows."""
DASH = "(?:--?|[‐‑–−~]| [-–−] )"
"""Between the two ends of a range."""
CURRENCY = "$€£¥\u20a0-\u20cf"
"""Signs of money, for a class of signs."""
COUNTRY = re.compile("[17]|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|[0-9]{3}")
"""The country codes of E.164."""


@dataclass(frozen=True, slots=True)
class WrittenForm:
    """A form of writing, such as a date or a price, with the function that says it."""

    name: str
    """The form's usual name, for whoever reads the table."""
    begins: str
    """The characters that the form can begin with."""
    pattern: re.Pattern[str]
    say: Callable[[re.Match[str]], str | None]
    """Returns what is said for a match; None: it is not this form after all."""


def form(name: str, begins: str, pattern: str, say: Callable[[re.Match[str]], str | None]) -> WrittenForm:
    return WrittenForm(name, begins, re.compile(pattern), say)


def constant(name: str, begins: str, pattern: str, said: str) -> WrittenForm:
    """A form for which the same is said each time."""
    return form(name, begins, pattern, lambda found: said)


class Forms:
    """The written forms of one language. The first that fits at a position is taken, so longer and more special ones
    stand first. The table is made when it is first used: a language's patterns take some 50 ms."""

    def __init__(self, forms: Iterable[WrittenForm]) -> None:
        self._forms = forms

    @cached_property
    def _at(self) -> dict[str, tuple[WrittenForm, ...]]:
        every = tuple(self._forms)
        characters = {character for each in every for character in each.begins}
        return {character: tuple(each for each in every if character in each.begins) for character in characters}

    @cached_property
    def _some(self) -> dict[str, re.Pattern[str]]:
        return {letter: _any(self._at[letter]) for letter in set(self._at).intersection(string.ascii_lowercase)}

    def begins(self) -> list[str]:
        """All characters that a form can begin with."""
        return sorted(self._at)

    def find(self, text: str, at: int) -> tuple[int, str] | None:
        """The end of the form at `at`, and what is said for it; None: there is none."""
        # Most words are in small letters and no form fits, which one pattern finds out faster than each in turn.
        if (some := self._some.get(text[at])) and not some.match(text, at):
            return None
        for each in self._at.get(text[at], ()):
            found = each.pattern.match(text, at)
            if found and found.end() > at and (said := each.say(found)) is not None:
                return found.end(), said
        return None


@cache
def _any(forms: tuple[WrittenForm, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{unnamed(each.pattern.pattern)})" for each in forms))


def unnamed(pattern: str) -> str:
    """Without names, so that it can stand in a pattern more than once."""
    return re.sub(r"[(][?]P<[a-z]+>", "(?:", pattern)


def before(found: re.Match[str], most: int = 40) -> str:
    """The text before the form, as far as it may show what the form is."""
    return found.string[max(0, found.start() - most) : found.start()]

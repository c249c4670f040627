"""A written form: how it looks and what is said for it; and a table of forms, of which one is found at a place.

A form is recognised as a whole. Whoever writes one ends its pattern with `END`, so that it never takes a part of a
longer one ("2.4" of "2.4.1"), and may return None from `say` to leave the place to the forms after it.
"""

import re
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass

DIGITS = string.digits
LETTERS = string.ascii_letters
GAP = "[ \u00a0\u2009\u202f]?"
"""One space, a breaking one or not, or none. Never the end of a line."""
END = r"(?![\w½¼¾]|[.:/–-][0-9]|,[0-9]{3}(?![0-9]))"
"""Where a number may end: nothing that belongs to it follows."""
DASH = "(?:[-‐‑–−]| [-–−] )"  # noqa: RUF001
"""Between the two ends of a range."""


@dataclass(frozen=True, slots=True)
class Form:
    name: str
    """In the field's terms, for whoever reads the table."""
    begins: str
    """The characters that it can begin with."""
    pattern: re.Pattern[str]
    say: Callable[[re.Match[str]], str | None]
    """What is said for it; None: it is not this form after all."""


def form(name: str, begins: str, pattern: str, say: Callable[[re.Match[str]], str | None]) -> Form:
    return Form(name, begins, re.compile(pattern), say)


def constant(name: str, begins: str, pattern: str, said: str) -> Form:
    """A form for which the same is said each time."""
    return form(name, begins, pattern, lambda found: said)


class Forms:
    """A language's forms. The first that fits at a place is taken: what is longer or more special stands first."""

    def __init__(self, forms: Iterable[Form]) -> None:
        self._forms = tuple(forms)
        self._at: dict[str, tuple[re.Pattern[str], tuple[Form, ...]]] = {}
        for character in {character for each in self._forms for character in each.begins}:
            here = tuple(each for each in self._forms if character in each.begins)
            self._at[character] = (_any(here), here)

    def find(self, text: str, at: int) -> tuple[int, str] | None:
        """Where the form at `at` ends and what is said for it; None: there is none."""
        some, forms = self._at.get(text[at], (None, ()))
        # At most words no form fits, which one pattern finds out faster than each in turn.
        if not some or not some.match(text, at):
            return None
        for each in forms:
            found = each.pattern.match(text, at)
            if found and found.end() > at and (said := each.say(found)) is not None:
                return found.end(), said
        return None


def _any(forms: tuple[Form, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{re.sub(r'[(][?]P<[a-z]+>', '(?:', each.pattern.pattern)})" for each in forms))


def before(found: re.Match[str], most: int = 40) -> str:
    """What stands before the form, as far as it may tell what it is."""
    return found.string[max(0, found.start() - most) : found.start()]

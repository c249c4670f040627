"""The table of written forms of a language that has `NumberForms`: what is shared, and what its own `forms.py` adds.

Whatever contains another form stands before it: a range before its ends, a date before the numbers of which it is made.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from voicepipe.languages.markup import LINK, MARKDOWN
from voicepipe.languages.number_forms import NumberForms
from voicepipe.languages.spoken_amounts import addresses, measures, money, numbers, signs, telephones
from voicepipe.languages.spoken_times import dates, times
from voicepipe.languages.written_form import GAP, Forms, WrittenForm, form


def forms_of(
    language: NumberForms, own: Callable[[], Iterable[WrittenForm]], own_times: Iterable[WrittenForm] = ()
) -> Forms:
    """All forms of a language. `own`: what it has for itself, behind dates and money and before plain numbers."""
    return Forms(_Table(language, own, own_times))


@dataclass(frozen=True, slots=True)
class _Table:
    """The forms in their order, made anew each time they are gone through."""

    language: NumberForms
    own: Callable[[], Iterable[WrittenForm]]
    own_times: Iterable[WrittenForm]

    def __iter__(self) -> Iterator[WrittenForm]:
        yield from (*MARKDOWN, LINK)
        yield from addresses(self.language)
        yield from dates(self.language)
        yield from self.own_times
        yield from times(self.language)
        yield from telephones(self.language)
        yield from money(self.language)
        yield from self.own()
        yield from measures(self.language)
        yield from numbers(self.language)
        yield from signs(self.language)


_AND = ("et ", "und ", "y ", "e ")
"""Between two titles: "M. et Mme"."""


def abbreviations(
    always: Mapping[str, str],
    *,
    titles: Mapping[str, str] = {},
    numbered: Mapping[str, str] = {},
    ending: Iterable[str] = (),
) -> tuple[WrittenForm, ...]:
    """What abbreviations stand for: `titles` before a name, `numbered` before a number alone. Where two letters have a
    point each there may be a space between them or none: "z. B." is "z.B.", too. A sentence may end with `ending`: then
    their point stays."""
    every = {**always, **titles, **numbered}
    said = {key.replace(" ", ""): words for key, words in every.items()}
    may_end, before_names, before_numbers = (
        frozenset(key.replace(" ", "") for key in keys) for keys in (ending, titles, numbered)
    )

    def expanded(found: re.Match[str]) -> str | None:
        key = re.sub(r"\s", "", found.group())
        rest = found.string[found.end() : found.end() + 6].lstrip()
        words = said.get(key) or said[key[0].lower() + key[1:]]
        if key in before_numbers and not rest[:1].isdigit():
            return None
        if key in before_names and rest and not rest[0].isupper() and not rest.startswith(_AND):
            return None
        if key[0].isupper() and key not in said:
            words = words[0].upper() + words[1:]
        ends = key.endswith(".") and key not in before_names and (not rest or (key in may_end and rest[0].isupper()))
        return f"{words}." if ends else words

    both = {*every, *(key[0].upper() + key[1:] for key in always)}
    pattern = "|".join(re.escape(key).replace(r"\ ", GAP) for key in sorted(both, key=len, reverse=True))
    begins = "".join(sorted({key[0] for key in both}))
    return (form("abbreviation", begins, rf"(?:{pattern})(?![^\W\d_])", expanded),)

"""The guests of utterances/guests.toml: what they want, and what they say."""

import tomllib
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from latency_probes.clips import FOLDER

BETTER_YES = ("yes please", "yes", "yes that's right")
"""Said in turn to a read-back that is right, and to one that the guest gives in to."""


class Aside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Said in place of an answer; the reply must match `expect`."""

    text: str
    expect: str


class Act(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that a guest wants; see utterances/guests.toml."""

    opens: str
    tool: str
    wants: dict[str, str | int]
    says: dict[str, list[str]]
    never: dict[str, str] = {}
    aside: dict[str, Aside] = {}
    over: str = ""
    goes_on: str = ""
    corrects: dict[str, str] = {}

    def texts(self) -> Iterator[tuple[str, str]]:
        """Everything that is said, each with its kind."""
        yield "guest", self.opens
        for answers in self.says.values():
            for text in answers:
                yield ("short_answer" if len(text.split()) <= 3 else "guest"), text
        yield from (("short_answer", text) for text in BETTER_YES)
        yield from (("guest", aside.text) for aside in self.aside.values())
        yield from (("guest", text) for text in filter(None, (self.over, *self.corrects.values())))
        if self.goes_on:
            yield "goes_on", self.goes_on


class Guest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who calls."""

    name: str
    acts: list[Act]


@lru_cache(1)
def guests() -> tuple[Guest, ...]:
    """All of utterances/guests.toml."""
    tables = tomllib.loads((FOLDER / "guests.toml").read_text())
    return tuple(msgspec.convert(tables["guest"], list[Guest]))

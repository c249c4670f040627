"""One text with its numbers, and how it reads with some of them masked. JSON stays JSON. Pure."""

import json
import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from voicepipe.config.pop_config import LONGEST
from voicepipe.redaction.numbers_read import Gap, Number

TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")(?P<is_key>\s*:)?|(?P<number>-?\d[\d.eE+-]*)|(?P<mark>[\[\]{},])', re.DOTALL
)

PRESSES = re.compile(r"[0-9*#A-D](?:[wW]*[0-9*#A-D]){2,}")
"""Three keys or more that an agent has pressed, with the pauses among them: a PIN, an account's number. One or two are
a menu's choice."""


@dataclass(slots=True, eq=False)
class TextPart:
    """A part of a text in which numbers are found: a whole text, or one string or number of its JSON."""

    text: str
    before: str = ""
    """The text between the part before and this one."""
    raw: str = ""
    """Its JSON; empty: it is no JSON."""
    name: str = ""
    """Its names in JSON, with a dot between them."""
    follows: bool = False
    """It is in the same list of JSON as the part before."""
    numbers: list[Number] = field(default_factory=list)
    replaced: list[tuple[int, int, str]] = field(default_factory=list)
    """Other parts to replace: begin, end, and the replacement."""

    def __post_init__(self) -> None:
        self.text = unicodedata.normalize("NFC", self.text)  # "três", an operator's pattern: with one accent alone

    def reads(self) -> str:
        """The part with its masks, and the text before it."""
        spans = [*self.replaced, *_masked(self.numbers)]
        if not spans:
            return self.before + (self.raw or self.text)
        parts: list[str] = []
        at = 0
        for begin, end, instead in sorted(spans):
            if begin >= at:
                parts += [self.text[at:begin], instead]
            elif end > at and instead != parts[-1]:
                parts.append(instead)
            at = max(at, end)
        said = "".join([*parts, self.text[at:]])
        return self.before + (json.dumps(said, ensure_ascii=False) if self.raw else said)


@dataclass(slots=True, eq=False)
class MaskableText:
    """One text as it was said or written, with its numbers, some of which may be masked: only what `reads` returns may
    be kept. JSON stays JSON."""

    key: Hashable
    parts: list[TextPart]
    after: str = ""
    """The text behind the last part."""
    cut: bool = False
    kept: str = ""
    """The text, masked, as the redactor last returned it."""

    @property
    def is_json(self) -> bool:
        return not self.parts or bool(self.parts[0].raw)

    def reads(self) -> str:
        """The text with its masks."""
        return "".join([part.reads() for part in self.parts]) + self.after

    def numbers(self) -> list[Number]:
        return [number for part in self.parts for number in part.numbers]


def split(numbers: Iterable[Number], at: Gap) -> Iterator[list[Number]]:
    """Sequences of numbers with smaller gaps inside."""
    stretch: list[Number] = []
    for number in numbers:
        if stretch and number.gap >= at:
            yield stretch
            stretch = []
        stretch.append(number)
    if stretch:
        yield stretch


def plain(key: Hashable, text: str) -> MaskableText:
    return MaskableText(key, [TextPart(text[:LONGEST])], cut=len(text) > LONGEST)


def json_or_plain(key: Hashable, text: str) -> MaskableText:
    if len(text) <= LONGEST and text.lstrip()[:1] in '{["-0123456789':
        try:
            json.loads(text)
            return _json(key, text)
        except (ValueError, RecursionError):
            pass
    return plain(key, text)


def _json(key: Hashable, text: str) -> MaskableText:
    parts: list[TextPart] = []
    path: list[str] = []
    """The name at each depth."""
    firsts: list[bool | None] = []
    """At each depth: the list has had no part yet; None: this is no list."""
    at = 0
    for found in TOKEN.finditer(text):
        mark = found["mark"]
        if mark in ("{", "["):
            path.append("")
            firsts.append(True if mark == "[" else None)
        elif mark in ("}", "]"):
            path.pop()
            firsts.pop()
        elif not mark:
            raw = found["text"] or found["number"]
            said = json.loads(raw) if found["text"] else raw
            if found["is_key"]:
                path[-1] = said
                if sum(map(str.isdigit, said)) < 7:  # "line2" is no number; one that is a name is seldom.
                    continue
            begin, end = found.start(), found.start() + len(raw)
            follows = bool(firsts) and firsts[-1] is False
            parts.append(TextPart(said, text[at:begin], raw, ".".join(filter(None, path[-3:])), follows))
            if firsts and firsts[-1]:
                firsts[-1] = False
            at = end
    return MaskableText(key, parts, text[at:])


def _masked(numbers: Sequence[Number]) -> Iterator[tuple[int, int, str]]:
    """The masks; the parts of one number have one."""
    begin = end = 0
    mask = ""
    for number in numbers:
        if mask and not (number.mask == mask and number.gap is Gap.CLOSE):
            yield begin, end, mask
            mask = ""
        if number.mask:
            begin = begin if mask else number.start
            mask, end = number.mask, number.end
    if mask:
        yield begin, end, mask


def presses(text: str) -> Iterator[tuple[int, int, str]]:
    """Where an agent's keys stand that may be a secret: begin, end, and the digits among them."""
    for match in PRESSES.finditer(text):
        yield *match.span(), "".join(filter(str.isdigit, match[0]))

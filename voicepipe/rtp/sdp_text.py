"""SDP (RFC 8866) as text, taken apart. Any text is a description or an SdpError; what an attribute means is for others
to say, and what is echoed of it in an answer is plain ASCII."""

import re
from dataclasses import dataclass

LONGEST = 20_000
"""Characters. A browser's offer of sound has three to five thousand; some parsers take the square of what they get."""
MOST_MEDIA = 32
_LINE = re.compile(r"([a-z])=(.*)")
_MEDIA = re.compile(
    r"([A-Za-z0-9.+-]{1,40}) ([0-9]{1,5})(?:/[0-9]{1,5})? ([A-Za-z0-9/.+-]{1,60})((?: +[!-~]{1,100})+) *"
)


class SdpError(ValueError):
    """A description that we cannot have a call with; the text says why."""


@dataclass(frozen=True, slots=True)
class Media:
    """One m= line and what belongs to it."""

    kind: str
    port: int
    proto: str
    formats: tuple[str, ...]
    connection: str
    """c= line, its own or the session's; empty: there is none."""
    attributes: tuple[tuple[str, str], ...]
    """Names and values, its own before the session's."""

    def all(self, name: str) -> list[str]:
        """The values of every attribute of this name; a bare one's is empty."""
        return [value for key, value in self.attributes if key == name]


def parse(text: str) -> tuple[Media, ...]:
    """The media of a description, in order. Raises SdpError."""
    if len(text) > LONGEST:
        raise SdpError(f"This SDP has {len(text)} characters; at most {LONGEST} are read.")
    lines = [line for line in re.split(r"\r\n|\r|\n", text) if line.strip()]
    if not lines or lines[0].strip() != "v=0":
        raise SdpError('This is no SDP: it does not begin with "v=0".')
    sections: list[list[tuple[str, str]]] = [[]]
    for number, line in enumerate(lines, 1):
        found = _LINE.fullmatch(line)
        if not found:
            raise SdpError(f'Line {number} of this SDP is not of the form "letter=value".')
        if found[1] == "m":
            sections.append([])
        sections[-1].append((found[1], found[2]))
    if len(sections) > MOST_MEDIA + 1:
        raise SdpError(f"This SDP has {len(sections) - 1} media; at most {MOST_MEDIA} are read.")
    return tuple(_media(section, sections[0]) for section in sections[1:])


def _media(lines: list[tuple[str, str]], session: list[tuple[str, str]]) -> Media:
    found = _MEDIA.fullmatch(lines[0][1])
    if not found or int(found[2]) > 65535:
        raise SdpError('An m= line of this SDP is not of the form "m=kind port protocol formats".')
    everything = [*lines, *session]
    attributes = (value.partition(":") for letter, value in everything if letter == "a")
    return Media(
        found[1], int(found[2]), found[3], tuple(found[4].split()),
        next((value for letter, value in everything if letter == "c"), ""),
        tuple((name, value.strip()) for name, _, value in attributes),
    )  # fmt: skip

"""SDP (RFC 8866) as text, taken apart. Any text is a description or an SdpError; what an attribute means is for others
to say, and what is echoed of it in an answer is plain ASCII."""

import re
from dataclasses import dataclass, field

LONGEST = 20_000
"""Characters of the longest description. A browser's offer of sound has three to five thousand; some parsers take the
square of the length."""
MOST_MEDIA = 32
MOST_FORMATS = 128
"""Payload types of one medium: they have seven bits (RFC 3550, 5.1). A browser offers 60 for video, ten for sound."""
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_MEDIA = re.compile(
    r"([A-Za-z0-9.+-]{1,40}) ([0-9]{1,5})(?:/[0-9]{1,5})? ([A-Za-z0-9/.+-]{1,60})((?: +[!-~]{1,100})+) *"
)
Attributes = dict[str, list[str]]
"""Values by name, both in order; a bare attribute's value is empty."""


class SdpError(ValueError):
    """No call is possible with this description; the text says why."""


@dataclass(frozen=True, slots=True)
class MediaDescription:
    """An m= line and the lines that belong to it."""

    kind: str
    port: int
    proto: str
    formats: tuple[str, ...]
    connection: str
    """The c= line, its own or the session's; empty: there is none."""
    attributes: Attributes
    """Its own attributes."""
    session: Attributes
    """The description's attributes, which hold for every medium that has no others. All media share them: going through
    them for each medium takes the square of the text's length."""

    def all(self, name: str) -> list[str]:
        """The values of its own attributes of this name: attributes about how a medium is sent are never the
        session's."""
        return self.attributes.get(name, [])


@dataclass(slots=True)
class _MediaSection:
    """The lines behind an m= line, or before the first."""

    media: str = ""
    connection: str = ""
    attributes: Attributes = field(default_factory=dict)


def check_formats(number: int) -> None:
    """Raises SdpError: an m= line has more formats than there are payload types."""
    if number > MOST_FORMATS:
        raise SdpError(f"An m= line of this SDP has {number} formats; at most {MOST_FORMATS} are read.")


def parse(text: str) -> tuple[MediaDescription, ...]:
    """Parse the media of a description, in order. Raises SdpError."""
    if len(text) > LONGEST:
        raise SdpError(f"This SDP has {len(text)} characters; at most {LONGEST} are read.")
    lines = [line for line in re.split(r"\r\n|\r|\n", text) if line.strip()]
    if not lines or lines[0].strip() != "v=0":
        raise SdpError('This is no SDP: it does not begin with "v=0".')
    session, *media = _sections(lines)
    if len(media) > MOST_MEDIA:
        raise SdpError(f"This SDP has {len(media)} media; at most {MOST_MEDIA} are read.")
    return tuple(_media(section, session) for section in media)


def _sections(lines: list[str]) -> list[_MediaSection]:
    """The section of the session, and one for each medium."""
    sections = [_MediaSection()]
    for number, line in enumerate(lines, 1):
        letter, value, section = line[0], line[2:], sections[-1]
        if line[1:2] != "=" or letter not in _LETTERS:
            raise SdpError(f'Line {number} of this SDP is not of the form "letter=value".')
        if letter == "m":
            sections.append(_MediaSection(value))
        elif letter == "a":
            name, _, said = value.partition(":")
            section.attributes.setdefault(name, []).append(said.strip())
        elif letter == "c" and not section.connection:
            section.connection = value
    return sections


def _media(section: _MediaSection, session: _MediaSection) -> MediaDescription:
    found = _MEDIA.fullmatch(section.media)
    if not found or int(found[2]) > 65535:
        raise SdpError('An m= line of this SDP is not of the form "m=kind port protocol formats".')
    formats = tuple(found[4].split())
    check_formats(len(formats))
    connection = section.connection or session.connection
    return MediaDescription(
        found[1], int(found[2]), found[3], formats, connection, section.attributes, session.attributes
    )

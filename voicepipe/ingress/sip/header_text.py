"""Parses the text of a SIP message's head as it was written (RFC 3261, 7.3 and 25.1). Pure. Everything here takes time
in proportion to the length of its input."""

import re

Params = dict[str, str | None]
"""Parameters by name in lower case, with their values as they were written; None: no value (`lr`, `npdi`)."""
SHORT_NAMES = {
    "a": "accept-contact", "b": "referred-by", "c": "content-type", "d": "request-disposition",
    "e": "content-encoding", "f": "from", "i": "call-id", "j": "reject-contact", "k": "supported",
    "l": "content-length", "m": "contact", "n": "identity-info", "o": "event", "r": "refer-to", "s": "subject",
    "t": "to", "u": "allow-events", "v": "via", "x": "session-expires", "y": "identity",
}  # fmt: skip
"""The compact header names that IANA registers, with their long names."""
LISTS = frozenset({"via", "route", "record-route", "contact", "p-asserted-identity"})
"""Headers that we read, and that may have several values in one line."""
_FOLD = re.compile(r"(?:\r\n|\n|\r)[ \t]+")
_LINE_END = re.compile(r"\r\n|\n|\r")
_ADDRESS = re.compile(r'(?:[^"<]++|"(?:[^"\\]++|\\.)*+")*+<([^>]*)>(.*)', re.DOTALL)
"""An address: a display name, which may be quoted; a URI; parameters of the header."""
_UNPAIRED = re.compile(r'(?:[^"<]++|"(?:[^"\\]++|\\.)*+")*+".*<([^<>]*)>(.*)', re.DOTALL)
"""An address where a quotation mark in the name has no partner: the URI is the text in the last angle brackets."""
_EMPTY_TAG = re.compile(r";[ \t]*+tag[ \t]*+(?:=[ \t]*+)?(?=;|$)", re.IGNORECASE)
_BLANKS = " \t"
_UNQUOTED = str.maketrans('"\\\r\n', "'/  ")
DEFAULT_PORT = 5060


class SipError(ValueError):
    """A message, or a header of one, cannot be read; the text says why."""


def unfolded(head: str) -> list[str]:
    """The lines of a head, the first line first. A line with continuation lines is one line."""
    return _LINE_END.split(_FOLD.sub(" ", head))


def header(line: str) -> tuple[str, str]:
    """Name (long, lower case) and value of a line. Raises SipError."""
    name, colon, value = line.partition(":")
    name = name.strip(_BLANKS).lower()
    if not colon or not name:
        raise SipError(f"the line {line[:80]!r} is no header")
    return SHORT_NAMES.get(name, name), value.strip(_BLANKS)


def split(text: str, separator: str) -> list[str]:
    """The parts of `text` between commas or semicolons (`separator`) that stand in no quotes and no angle brackets."""
    parts, began, opened = [], 0, ""
    for mark in re.finditer(rf'\\.|["<>{separator}]', text, re.DOTALL):
        match mark[0]:
            case '"' if opened in ("", '"'):
                opened = "" if opened else '"'
            case "<" if not opened:
                opened = "<"
            case ">" if opened == "<":
                opened = ""
            case found if found == separator and not opened:
                parts.append(text[began : mark.start()].strip(_BLANKS))
                began = mark.end()
    return [*parts, text[began:].strip(_BLANKS)]


def parameters(text: str) -> Params:
    """The parameters of `a=1;b;c="2"`. The first of two with the same name counts."""
    found: Params = {}
    for part in filter(None, split(text, ";")):
        name, equals, value = part.partition("=")
        found.setdefault(name.strip(_BLANKS).lower(), value.strip(_BLANKS) if equals else None)
    return found


def unquoted(value: str) -> str:
    """A parameter's value, with or without quotes around it."""
    if len(value) < 2 or value[0] != '"' or value[-1] != '"':
        return value
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)


def credentials(authorization: str) -> dict[str, str]:
    """The fields of an Authorization header (RFC 2617, 3.2.2), by name in lower case. Raises SipError: a field comes
    twice, so that two readers could take it for two users'."""
    found: dict[str, str] = {}
    for part in split("".join(authorization.split(None, 1)[1:]), ","):
        name, _, value = part.partition("=")
        name = name.strip(_BLANKS).lower()
        if name and name in found:
            raise SipError(f"its Authorization header has two {name[:80]!r}: send one")
        found[name] = unquoted(value.strip(_BLANKS))
    return found


def address_parts(text: str) -> tuple[str, str]:
    """The URI of an address header and the text of the header's parameters. Without angle brackets all parameters are
    the header's (RFC 3261, 20.10)."""
    if found := _ADDRESS.fullmatch(text) or _UNPAIRED.fullmatch(text):
        return found[1].strip(_BLANKS), found[2]
    uri, _, params = text.partition(";")
    return uri.strip(_BLANKS), params


def tagged(text: str, tag: str) -> str:
    """A From or To without a tag, with this one added. An empty tag counts as none."""
    before, bracket, params = text.rpartition(">")
    return f"{before}{bracket}{_EMPTY_TAG.sub('', params)};tag={tag}"


def tag_of(text: str) -> str:
    """The tag of a From or To; empty: it has none."""
    return parameters(address_parts(text)[1]).get("tag") or ""


def warning(why: str) -> tuple[str, str]:
    """The header that says why a message was refused, for the author of the program (RFC 3261, 20.43)."""
    text = "".join(char if " " <= char <= "~" else "?" for char in why.translate(_UNQUOTED)[:200])
    return "Warning", f'399 voicepipe "{text}"'

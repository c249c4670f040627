"""Checks a datagram before it is parsed: whether it is SIP, and within bounds; and answers it without state, where it
is a stranger's request or cannot be read. Pure.

An honest message takes a transaction 0.6 ms, and one that is made to cost much takes more: every comma is an object.
The check takes 10 to 20 µs, and the answer 20 µs; a request that comes again gets the same one.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from voicepipe.ingress.sip.header_text import DEFAULT_PORT, SHORT_NAMES, parameters, split, tag_of, tagged, unfolded

LONGEST = 8192
"""Bytes of the longest datagram that is read. Over UDP, messages of more than 1300 are not even meant to be sent (RFC
3261, 18.1.1)."""
LINES, COMMAS, SEMICOLONS = 100, 100, 150
"""Bounds for all headers, in lines as they are written. A message takes under 20 ms at these bounds; the worst of RFC
4475 has 27, 5 and 9."""
NAMES = {
    "via": "Via", "from": "From", "to": "To", "call-id": "Call-ID", "cseq": "CSeq", "authorization": "Authorization",
}  # fmt: skip
_VERSION = re.compile(r"SIP/\d{1,9}\.\d{1,9}", re.IGNORECASE)
_CSEQ, _CSEQ_CR = (re.compile(end + rb"cseq[ \t]*:", re.IGNORECASE) for end in (b"\n", b"\r"))
"""Two patterns, since one for both ends of lines takes five times as long."""
_END_OF_HEAD = re.compile(rb"\r\n\r\n|\n\r?\n|\r\r")
_TAG = "stateless"
"""The tag of all these answers: no dialog comes of it."""
_NEEDED = "Via", "From", "To", "Call-ID", "CSeq"
_RPORT = re.compile(r";\s*rport\s*(?:=\s*[^;,\s]*)?", re.IGNORECASE)
_RECEIVED = re.compile(r";\s*received\s*=\s*[^;,\s]*", re.IGNORECASE)
_SENT_BY_PORT = re.compile(r"[^/]*/[^/]*/\s*[^\s/]+\s+(?:\[[^\]]*\]|[^;:,\s]+)\s*:\s*([0-9]{1,5})\s*(?:;|$)")


class DatagramCheck(NamedTuple):
    """A SIP message of which only the outline was read: a request or a response, whose headers need not make sense."""

    text: str
    """The whole message. Its head ends with the first empty line; a character of the body is a byte."""
    method: str
    """The request's method; empty: it is a response."""
    version: str
    headers: dict[str, list[str]]
    """The headers of `NAMES`, unfolded, in order."""
    excessive: bool
    """The message is over the bounds, and not to be parsed."""

    def first(self, name: str) -> str:
        """The first header of this name; empty: there is none."""
        return self.headers.get(name, ("",))[0]

    @property
    def call_id(self) -> str:
        return self.first("Call-ID")

    @property
    def to_tag(self) -> str:
        return tag_of(self.first("To"))

    @property
    def from_tag(self) -> str:
        return tag_of(self.first("From"))

    @property
    def branch(self) -> str:
        """The branch of the topmost Via."""
        return parameters(split(self.first("Via"), ",")[0]).get("branch") or ""

    @property
    def cseq(self) -> tuple[int, str]:
        """The CSeq's number and method; (-1, ""): there is none."""
        number, *method = self.first("CSeq").split(None, 1)[:2] or [""]
        fits = number.isascii() and number.isdecimal() and len(number) < 12
        return (int(number), "".join(method)) if fits else (-1, "")


def check_datagram(data: bytes) -> DatagramCheck | None:
    """Check a datagram before it is parsed. None: it is no SIP message."""
    # Junk is known by that in 1 µs: no message is without, and it has no short form.
    if not _CSEQ.search(data, 0, LONGEST) and not _CSEQ_CR.search(data, 0, LONGEST):
        return None
    data = data.lstrip(b"\r\n")  # RFC 3261, 7.5
    end = _END_OF_HEAD.search(data, 0, LONGEST)
    head, body = (data[: end.start()], data[end.end() : LONGEST]) if end else (data[:LONGEST], b"")
    said = _decoded(head)
    lines = unfolded(said)
    start = lines[0].split()
    response = start[:1] == ["SIP/2.0"]
    if not response and (len(start) < 2 or not _VERSION.fullmatch(start[-1]) or start[0].startswith("SIP/")):
        return None
    written = max(said.count("\n"), said.count("\r")) + 1
    excessive = len(data) > LONGEST or written > LINES or said.count(",") > COMMAS or said.count(";") > SEMICOLONS
    text = f"{said}\r\n\r\n{body.decode('latin-1')}"
    method, version = ("", "SIP/2.0") if response else (start[0], start[-1].upper())
    return DatagramCheck(text, method, version, _headers(lines), excessive)


def _headers(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines[1 : LINES + 1]:
        name, _, value = line.partition(":")
        name = name.strip(" \t").lower()
        if known := NAMES.get(SHORT_NAMES.get(name, name)):
            found.setdefault(known, []).append(value.strip(" \t"))
    return found


def _decoded(head: bytes) -> str:
    try:
        return head.decode()
    except UnicodeDecodeError:
        return head.decode("latin-1")  # old phones' display names


def stateless_answer(
    seen: DatagramCheck, source: tuple[str, int], code: int, reason: str, headers: Sequence[tuple[str, str]] = ()
) -> tuple[str, tuple[str, int]] | None:
    """A response to `seen`, which came from `source`, and its destination: that host, whatever Via says. None: the
    message is no request, wants no answer (ACK), or lacks what an answer has to repeat."""
    if seen.method in ("", "ACK") or any(name not in seen.headers for name in _NEEDED):
        return None
    if seen.version != "SIP/2.0":
        code, reason, headers = 505, "Version Not Supported", ()
    vias = seen.first("Via")
    top = split(vias, ",")[0]
    others = vias.removeprefix(top)
    top, target = _returned(top, source)
    copied = [(name, value) for name in _NEEDED for value in seen.headers[name]]
    copied[0] = "Via", top + others
    lines = [f"{name}: {tagged(value, _TAG) if name == 'To' and not seen.to_tag else value}" for name, value in copied]
    more = [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(
        [f"SIP/2.0 {code} {reason}", *lines, *more, "Server: voicepipe", "Content-Length: 0", "", ""]
    ), target


def _returned(via: str, source: tuple[str, int]) -> tuple[str, tuple[str, int]]:
    """The topmost Via with the address that we saw (RFC 3581, 4), and the destination of its answer."""
    host, port = source
    seen, asked = _RPORT.subn(f";rport={port}", _RECEIVED.sub("", via), count=1)
    said = _SENT_BY_PORT.match(via)
    return f"{seen};received={host}", (host, port if asked else int(said[1]) if said else DEFAULT_PORT)

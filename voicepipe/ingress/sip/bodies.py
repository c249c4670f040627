"""The session description (SDP) in a message's body, which may have several parts (RFC 5621, RFC 2046). Pure."""

import base64
import binascii
import quopri
import re
from collections.abc import Mapping
from dataclasses import dataclass

from voicepipe.ingress.sip.header_text import SipError, header, parameters, unfolded, unquoted

SDP = "application/sdp"
ACCEPT = f"{SDP}, multipart/mixed, multipart/alternative, multipart/related"
MOST_PARTS, DEEPEST = 32, 4
"""Most parts of a body, in all; and the deepest level of multiparts within multiparts."""
_OF_THE_SESSION = frozenset({"", "session", "render"})
"""Dispositions of the SDP that we answer. SDP for early media ("early-session", RFC 3959) is another one."""
_BLANK_LINE = re.compile(rb"\A\r?\n|\r?\n\r?\n")


class UnsupportedBody(ValueError):
    """Answered with 415: a body, or a part of one, has to be understood and is not; the text says which."""

    accept = "Accept", ACCEPT
    """A header that names the types that are understood."""


class UnsupportedEncoding(UnsupportedBody):
    """Answered with 415: the body is compressed."""

    accept = "Accept-Encoding", "identity"


@dataclass(frozen=True, slots=True)
class _BodyPart:
    """A body or one of its parts. `headers`: by name in lower case."""

    headers: Mapping[str, str]
    content: bytes

    def _said(self, name: str, default: str = "") -> tuple[str, str]:
        """A header's value in lower case, and its parameters."""
        value, _, params = (self.headers.get(name) or default).partition(";")
        return value.strip().lower(), params

    def __str__(self) -> str:
        return f"{self.kind} ({self.disposition})" if self.disposition else self.kind

    @property
    def kind(self) -> str:
        return self._said("content-type", "text/plain")[0]

    @property
    def disposition(self) -> str:
        return self._said("content-disposition")[0]

    @property
    def handling(self) -> str:
        """How the part is to be handled; empty: it does not say."""
        return unquoted(parameters(self._said("content-disposition")[1]).get("handling") or "").lower()

    def parameter(self, name: str) -> str:
        """A parameter of the part's type."""
        return unquoted(parameters(self._said("content-type")[1]).get(name) or "")

    @property
    def is_sdp(self) -> bool:
        return self.kind == SDP and self.disposition in _OF_THE_SESSION

    def text(self) -> str:
        """The part's text. Raises UnsupportedEncoding, SipError."""
        packed = self._said("content-encoding")[0]
        if packed not in ("", "identity"):
            raise UnsupportedEncoding(f"its SDP is packed by {packed!r}: send it as it is")
        return self._sent().decode(errors="replace")

    def _sent(self) -> bytes:
        encoding = self._said("content-transfer-encoding")[0]
        try:
            match encoding:
                case "" | "binary" | "8bit" | "7bit":
                    return self.content
                case "base64":
                    return base64.b64decode(self.content)
                case "quoted-printable":
                    return quopri.decodestring(self.content)
        except binascii.Error:
            raise SipError("the base64 of its SDP cannot be read") from None
        raise UnsupportedEncoding(f"the Content-Transfer-Encoding {encoding!r} of its SDP is not known here")


def session_description(headers: Mapping[str, str], content: bytes) -> str | None:
    """The SDP in a body with these headers (names in lower case); a body without a type is SDP. None: there is none,
    and no part of the body has to be understood. Raises UnsupportedBody, and SipError: it is no multipart, or has two
    descriptions."""
    if not content.strip():
        return None
    body = _BodyPart({**headers, "content-type": headers.get("content-type") or SDP}, content)
    if not body.kind.startswith("multipart/") and not body.is_sdp and body.handling != "optional":
        raise UnsupportedBody(f"its body is {body}, not the SDP of a session")
    found = _Search().in_part(body)
    if len(found) > 1:
        raise SipError("its body has two session descriptions")
    return found[0] if found else None


class _Search:
    """Searches one body for SDP."""

    def __init__(self) -> None:
        self._parts = 0

    def in_part(self, part: _BodyPart, depth: int = 0) -> list[str]:
        """The SDP in a part. Raises as `session_description`."""
        if part.is_sdp:
            try:
                return [part.text()]
            except UnsupportedEncoding:
                if part.handling == "optional":
                    return []
                raise
        if part.kind.startswith("multipart/"):
            parts = self._opened(part, depth)
            if part.kind == "multipart/alternative":
                return self._last_known(parts, depth)
            return [found for one in parts for found in self.in_part(one, depth + 1)]
        if part.handling == "required":
            raise UnsupportedBody(f"its part {part} has to be understood, and is not")
        return []

    def _last_known(self, parts: list[_BodyPart], depth: int) -> list[str]:
        """The SDP in alternatives, which mean the same: the last is the best (RFC 2046, 5.1.4)."""
        refused: UnsupportedBody | None = None
        for part in reversed(parts):
            try:
                if found := self.in_part(part, depth + 1):
                    return found
            except UnsupportedBody as error:
                refused = refused or error
        if refused:
            raise refused
        return []

    def _opened(self, part: _BodyPart, depth: int) -> list[_BodyPart]:
        boundary = part.parameter("boundary")
        if not boundary:
            raise SipError(f"its {part.kind} names no boundary")
        if depth >= DEEPEST:
            raise SipError(f"its multiparts are nested more than {DEEPEST} deep")
        texts = _between(part.content, boundary)
        self._parts += len(texts)
        if self._parts > MOST_PARTS:
            raise SipError(f"its body has more than {MOST_PARTS} parts")
        return [_part(text) for text in texts]


def _between(content: bytes, boundary: str) -> list[bytes]:
    """The parts between lines of the boundary (RFC 2046, 5.1.1), without the text before and behind them. Some senders
    forget the line that ends the last part: then it goes on to the end."""
    line = re.compile(
        rb"(?:\A|\r?\n)--" + re.escape(boundary.encode("latin-1", "replace")) + rb"(--)?[ \t]*(?=\r?\n|\Z)"
    )
    parts, began = [], -1
    for found in line.finditer(content):
        if began >= 0:
            parts.append(content[began : found.start()])
        began = found.end()
        if found[1]:
            if not parts:
                raise SipError("its multipart has no parts")
            return parts
    if began < 0:
        raise SipError(f"its multipart has no line with the boundary {boundary[:80]!r}")
    return [*parts, content[began:]]


def _part(text: bytes) -> _BodyPart:
    """One part; `text` begins behind a boundary's text, with the end of its line."""
    text = text.removeprefix(b"\r").removeprefix(b"\n")
    end = _BLANK_LINE.search(text)
    head, content = (text[: end.start()], text[end.end() :]) if end else (text, b"")
    return _BodyPart(dict(header(line) for line in unfolded(head.decode("latin-1")) if line), content)

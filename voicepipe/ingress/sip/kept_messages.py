"""Messages for sippy's transactions, with every header as it was written.

sippy's own classes take headers apart and print them anew: `tel:` addresses become `sip:` ones of this machine,
parameters change their order, and what their grammar allows and sippy does not know cannot be read at all. Whoever is
answered gets back what they wrote (RFC 3261, 8.2.6.2), and what a dialog sends has the addresses that its caller gave.
"""

import re
import secrets
from typing import Any

from sippy.SipCallId import SipCallId
from sippy.SipCSeq import SipCSeq
from sippy.SipGenericHF import SipGenericHF
from sippy.SipHeader import SipHeader
from sippy.SipRequest import SipRequest
from sippy.SipResponse import SipResponse

from voicepipe.ingress.sip.header_text import (
    DEFAULT_PORT,
    LISTS,
    SipError,
    header,
    parameters,
    split,
    tag_of,
    tagged,
    unfolded,
)

_ONCE = "from", "to", "call-id", "cseq", "max-forwards", "content-length", "content-type"
"""Headers that a message has but once."""
_NEEDED = "via", "from", "to", "call-id", "cseq"
_CSEQ = re.compile(r"([0-9]{1,20})[ \t]+(\S+)")
_METHOD = re.compile(r"[A-Za-z0-9.!%*_+`'~-]+")
LARGEST_CSEQ = 2**32 - 1
"""The largest CSeq: RFC 3261, 8.1.1.5, has them below 2**31; some telephones begin anywhere."""
_SENT_BY = re.compile(r"([^/]+/[^/]+/[ \t]*[^ \t/]+)[ \t]+(\[[^\[\]]*\]|[^ \t:,/]+)[ \t]*(?::[ \t]*([0-9]{0,5}))?")
SHORT_OF = 6
"""Bytes by which a Content-Length may be too large: small telephones count the line ends of their SDP wrong."""


class KeptHeader(SipGenericHF):  # type: ignore[misc]
    """One header value, which sippy copies and prints as it is. `name`: as it is written; empty: the usual spelling."""

    parsed = True

    def __init__(self, text: str, name: str = "") -> None:
        self.body = text
        self._name = name

    def getCopy(self) -> "KeptHeader":
        return type(self)(str(self), self._name)

    def getCanName(self, name: str, compact: bool = False) -> str:
        return self._name or "-".join(part.capitalize() for part in name.split("-"))


class _Party(KeptHeader):
    """The value of a From or To header."""

    def getTag(self) -> str | None:
        return tag_of(self.body) or None

    def setTag(self, tag: str) -> None:
        if not self.getTag():
            self.body = tagged(self.body, tag)

    def genTag(self) -> None:
        self.setTag(secrets.token_hex(16))


class Via(KeptHeader):
    """One hop of a request's path. Raises SipError. Of `params`, `received` and `rport` may be set; all others are
    printed as they were written (RFC 3261, 8.2.6.2)."""

    def __init__(self, text: str, name: str = "") -> None:
        sent_by, *self._written = split(text, ";")
        parts = _SENT_BY.fullmatch(sent_by)
        if parts is None:
            raise SipError(f"Via: {text[:80]!r} cannot be read")
        super().__init__(sent_by, name)
        self._host, self._port = parts[2], int(parts[3]) if parts[3] else None
        self.params = parameters(";".join(self._written))

    def __str__(self) -> str:
        seen = {name: said for name in ("received", "rport") if (said := self.params.get(name)) is not None}
        parts = []
        for part in self._written:
            name, written = next(iter(parameters(part).items()), ("", None))
            said = seen.pop(name, written)
            parts.append(part if said == written else f"{name}={said}")
        return ";".join([self.body, *parts, *(f"{name}={said}" for name, said in seen.items())])

    def getBranch(self) -> str | None:
        return self.params.get("branch")

    def getAddr(self) -> tuple[str, int | None]:
        return self._host, self._port

    def getTAddr(self) -> tuple[str, int]:
        """The address to which answers go (RFC 3261, 18.2.2; RFC 3581, 4), once `received` and `rport` are set."""
        port = self.params.get("rport") or ""
        return self.params.get("received") or self._host, int(port) if port.isdecimal() else self._port or DEFAULT_PORT


class _Expires(KeptHeader):
    """The Expires header of an INVITE."""

    def getNum(self) -> int:
        """Seconds; 0: it gives none."""
        return min(int(self.body), 2**31) if re.fullmatch("[0-9]{1,99}", self.body) else 0


def _cseq(text: str) -> SipCSeq:
    parts = _CSEQ.fullmatch(text)
    if parts is None or int(parts[1]) > LARGEST_CSEQ:
        raise SipError(f"CSeq: {text[:80]!r} is no number below 2**32 and a method")
    return SipCSeq(cseq=int(parts[1]), method=parts[2])


_KINDS: dict[str, Any] = {
    "via": Via, "from": _Party, "to": _Party, "cseq": _cseq, "call-id": SipCallId, "expires": _Expires,
}  # fmt: skip


def _read_head(message: Any, head: str) -> dict[str, str]:
    """Fill a message of sippy's from its first line and its headers; returns the headers by name. Raises SipError."""
    start, *lines = unfolded(head)
    message.setSL(start)
    said: dict[str, str] = {}
    for name, value in map(header, filter(None, lines)):
        if name in _ONCE and name in said:
            raise SipError(f"it has two headers {name}")
        said[name] = value
        if name == "content-length":  # sippy writes it anew.
            continue
        for one in split(value, ",") if name in LISTS else (value,):
            message.headers.append(SipHeader(name=name, body=_KINDS.get(name, KeptHeader)(one)))
    if missing := [name for name in _NEEDED if name not in said]:
        raise SipError(f"it has no {missing[0]}")
    return said


def _content(body: str, length: str | None) -> bytes:
    """The body, as long as Content-Length says."""
    content = body.encode("latin-1")
    if length is None:
        return content
    if not re.fullmatch("[0-9]{1,99}", length):
        raise SipError(f"Content-Length: {length[:80]!r} is no number")
    if int(length) > len(content) + SHORT_OF:
        raise SipError(f"its body has {len(content)} bytes, and should have {length[:20]}")
    return content[: int(length)]


class KeptRequest(SipRequest):  # type: ignore[misc]
    """A request made from its text, in which an empty line ends the head, and a character of the body is a byte. Raises
    SipError. `content`: its body."""

    def __init__(self, text: str) -> None:
        self.headers: list[SipHeader] = []
        head, _, body = text.partition("\r\n\r\n")
        said = _read_head(self, head)
        self.content = _content(body, said.get("content-length"))
        if self.sipver != "SIP/2.0":
            raise SipError(f"it is {self.sipver[:20]}, not SIP/2.0")
        if (of := self.getHFBody("cseq").getCSeqMethod()) != self.method:
            raise SipError(f"its CSeq is of a {of[:20]}")

    def setSL(self, startline: str) -> None:
        parts = startline.split()
        if len(parts) != 3 or not _METHOD.fullmatch(parts[0]):
            raise SipError(f"its first line {startline[:80]!r} is not METHOD URI SIP/2.0")
        self.method, uri, version = parts
        self.ruri, self.sipver = KeptHeader(uri), version.upper()


class KeptResponse(SipResponse):  # type: ignore[misc]
    """A response made from its text, as `KeptRequest`; its body is not used."""

    def __init__(self, text: str) -> None:
        self.headers: list[SipHeader] = []
        self.content = b""
        _read_head(self, text.partition("\r\n\r\n")[0])

    def setSL(self, startline: str) -> None:
        found = re.fullmatch(r"(SIP/2\.0)[ \t]+([1-6][0-9]{2})(?:[ \t]+(.*))?", startline)
        if found is None:
            raise SipError(f"its first line {startline[:80]!r} is not SIP/2.0 CODE REASON")
        self.sipver, self.scode, self.reason = found[1], int(found[2]), found[3] or "Unspecified"

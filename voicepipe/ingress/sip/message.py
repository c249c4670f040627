"""SIP messages as the rest of `sip/` reads them: headers as text, addresses in their parts."""

import re
from dataclasses import dataclass
from typing import Any

from sippy.SipAddress import SipAddress

_COMPACT = {"allow-events": "u", "content-encoding": "e", "event": "o", "refer-to": "r", "referred-by": "b",
            "session-expires": "x", "subject": "s", "supported": "k"}  # fmt: skip
"""Short names that sippy leaves as they are (RFC 3261, 20)."""
_UNFIT = re.compile(r"[^!-~]|[<>\"]")
"""What is in no URI, and would make another request of ours than was meant. URIs are ASCII (RFC 3261, 25.1), and sippy
splits lines at other white space, too. A user's name has its other letters escaped by now; a display name is no part
of it."""


class SipError(ValueError):
    """A message, or a header of one, that cannot be read."""


@dataclass(frozen=True, slots=True)
class Address:
    """A SIP address: `"Name" <sip:user@host:port;params>;params`."""

    uri: str
    user: str
    host: str
    port: int | None
    params: dict[str, str | None]
    """Those behind the URI: `tag` among them."""
    loose: bool = False
    """The URI has `lr` (RFC 3261, 16.12.1.1)."""

    @classmethod
    def of(cls, text: str) -> "Address":
        """Raises SipError."""
        if "<" not in text and text.lower().startswith(("tel:", "sips:")):
            uri, semicolon, params = text.partition(";")
            text = f"<{uri}>{semicolon}{params}"
        try:
            parsed = SipAddress(text)
            url = parsed.url
            uri = str(url)
            if not _UNFIT.search(uri):
                return cls(uri, url.username or "", str(url.host), url.port, dict(parsed.params), bool(url.lr))
        except Exception as error:  # That is how its parser says that it does not understand.
            raise SipError(f"{text[:80]!r} is no SIP address") from error
        raise SipError(f"{text[:80]!r} has characters that are in no SIP address")


class SipMessage:
    """One message. `raw` is sippy's."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    @property
    def call_id(self) -> str:
        return self.header("call-id")

    @property
    def cseq(self) -> tuple[int, str]:
        """Number and method. Raises SipError."""
        number, _, method = self.header("cseq").partition(" ")
        if not number.isdecimal():
            raise SipError("CSeq has no number")
        return int(number), method.strip()

    @property
    def from_tag(self) -> str:
        """Raises SipError."""
        return Address.of(self.header("from")).params.get("tag") or ""

    @property
    def to_tag(self) -> str:
        """Raises SipError."""
        return Address.of(self.header("to")).params.get("tag") or ""

    @property
    def body(self) -> str:
        """Empty: there is none."""
        return "" if self.raw.getBody() is None else str(self.raw.getBody().content)

    @property
    def content_type(self) -> str:
        """Without parameters, in lower case; empty without a body."""
        return "" if self.raw.getBody() is None else str(self.raw.getBody().getType())

    def header(self, name: str) -> str:
        """The first header of this name (lower case, not compact), as text; empty: there is none."""
        return next(iter(self.headers(name)), "")

    def headers(self, name: str) -> list[str]:
        """All headers of this name, in order, one value each."""
        names = name, _COMPACT.get(name)
        return [str(header.body).strip() for header in self.raw.headers if header.name in names]

    def listed(self, name: str) -> set[str]:
        """The tokens of a header that is a list (Supported, Require, Allow), in lower case."""
        return {token.strip().lower() for value in self.headers(name) for token in value.split(",") if token.strip()}

    def extra(self) -> dict[str, str]:
        """The headers that begin with X-, by their usual spelling."""
        return {
            "-".join(part.capitalize() for part in header.name.split("-")): str(header.body).strip()
            for header in self.raw.headers
            if header.name.startswith("x-")
        }


def printable(text: str) -> str:
    """What somebody sent, as it may stand in a log, on a terminal or in a prompt: one short line."""
    return "".join(char if char.isprintable() else "?" for char in text[:200])


class IncomingResponse(SipMessage):
    """An answer to a request of ours."""

    def __init__(self, raw: Any, code: int, reason: str) -> None:
        super().__init__(raw)
        self.code = code
        self.reason = reason

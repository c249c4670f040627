"""SIP messages as the rest of `sip/` reads them."""

from functools import cached_property
from typing import Any

from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.bodies import session_description


class SipMessage:
    """A SIP message that was parsed. `raw`: as in `kept_messages`."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    @property
    def call_id(self) -> str:
        return self.header("call-id")

    @property
    def cseq(self) -> tuple[int, str]:
        """The CSeq's number and method."""
        number, method = self.raw.getHFBody("cseq").getCSeq()
        return number, method

    @property
    def from_tag(self) -> str:
        """The tag of From. Raises SipError."""
        return Address.of(self.header("from")).params.get("tag") or ""

    @property
    def to_tag(self) -> str:
        """The tag of To. Raises SipError."""
        return Address.of(self.header("to")).params.get("tag") or ""

    @property
    def body(self) -> str:
        """The whole body, whatever its type. Empty: there is none."""
        return bytes(self.raw.content).decode(errors="replace")

    @property
    def content_type(self) -> str:
        """The Content-Type as it was written, without parameters, in lower case; empty: there is none."""
        return self.header("content-type").partition(";")[0].strip().lower()

    @cached_property
    def sdp(self) -> str | None:
        """The session description in any part of its body. None: there is none. Raises as `session_description`."""
        return session_description({header.name: str(header.body) for header in self.raw.headers}, self.raw.content)

    def header(self, name: str) -> str:
        """The first header of this name (lower case, not compact), as text; empty: there is none."""
        return next(iter(self.headers(name)), "")

    def headers(self, name: str) -> list[str]:
        """All headers of this name (as `header`), in order, one value each."""
        return [str(header.body) for header in self.raw.headers if header.name == name]

    def listed(self, name: str) -> set[str]:
        """The tokens of a header that is a list (Supported, Require, Allow), in lower case."""
        return {token.strip().lower() for value in self.headers(name) for token in value.split(",") if token.strip()}

    def extra(self) -> dict[str, str]:
        """The headers that begin with X-, by their usual spelling."""
        return {
            "-".join(part.capitalize() for part in header.name.split("-")): str(header.body)
            for header in self.raw.headers
            if header.name.startswith("x-")
        }


def printable(text: str) -> str:
    """A stranger's text, made fit for a log, a terminal or a prompt: one short line."""
    return "".join(char if char.isprintable() else "?" for char in text[:200])


class IncomingResponse(SipMessage):
    """A response to a request of ours."""

    def __init__(self, raw: Any) -> None:
        super().__init__(raw)
        self.code: int
        self.reason: str
        self.code, self.reason = raw.getSCode()

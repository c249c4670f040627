"""Calls that fail: at which step, and what whoever refused them said."""

import json
import socket
import ssl
from collections.abc import Iterator
from typing import Literal

from voicepipe.base.errors import ProbeError

Step = Literal["resolve", "connect", "tls", "refused", "media", "ended", "failed"]
"""Where a call fails: the name has no address; nobody answers there; its certificate is not trusted; it is refused; its
packets do not arrive; it is ended before its time; or for another reason."""


class CallFailed(ProbeError):
    """A call could not be placed, or ended before its time. `why`: the code with which it was refused, as "pop_full";
    `pop`: the PoP to which a directory had sent it."""

    def __init__(self, text: str, step: Step, why: str = "", pop: str = "") -> None:
        super().__init__(text)
        self.step: Step = step
        self.why = why
        self.pop = pop


def unreachable(url: str, error: Exception) -> CallFailed:
    """Nobody answers, for whatever reason."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        way_out = (
            "give the certificate of the authority that signed it by --ca FILE, or the name for which it was signed"
        )
        return CallFailed(f"{url} has a certificate that is not trusted here ({error}): {way_out}", "tls")
    return CallFailed(f"no server answers at {url} ({error}): start one, or correct the address", _step(error))


def _step(error: BaseException) -> Step:
    causes = list(_causes(error))
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return "resolve"
    return "tls" if any(isinstance(cause, ssl.SSLError) for cause in causes) else "connect"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """`error`, and what it was raised from: HTTP clients wrap what the system says."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def refused(url: str, status: int, body: bytes | bytearray | None = None) -> CallFailed:
    """A server has answered with this HTTP status instead of letting the caller in."""
    return CallFailed(refusal(url, status), "refused", code_of(body) or f"http_{status}")


def refusal(url: str, status: int) -> str:
    """One sentence on a refused handshake."""
    reasons = {
        401: "it wants a key, or another one: give it by --key",
        403: "this key may not call: give another by --key",
        404: "it knows no such path or agent: check the address and --agent",
        429: "it is full: try again with fewer calls at a time",
        503: "it is full or draining: try again with fewer calls at a time",
    }
    return f"the server at {url} refused the call (HTTP {status}): {reasons.get(status, 'see its log')}"


def code_of(body: bytes | bytearray | None) -> str:
    """The code of an error in the convention's form; empty: there is none, or none that may be shown."""
    try:
        code = str(json.loads(body or b"")["error"]["code"])
    except (ValueError, LookupError, TypeError):
        return ""
    return code if code.replace("_", "").isalnum() and code.isascii() and len(code) <= 40 else ""

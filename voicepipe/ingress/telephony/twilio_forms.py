"""Forms that Twilio sends, and whether it has signed them: at a PoP, and at a directory in front of it."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import HTTPConnection, Request

from voicepipe.ingress.telephony import signatures
from voicepipe.ingress.telephony.signatures import Forbidden

VOICE = "/twilio/voice"
"""The path of a number's webhook."""
FIELDS = 500
"""Most fields of a webhook; Twilio sends some thirty."""


class TwilioForm(NamedTuple):
    """The form of a webhook."""

    fields: dict[str, str]
    url: str
    """The address that was asked, as Twilio has signed it."""
    raw: bytes
    """The body as it came."""


async def signed_form(
    request: Request, token: str, public_url: str, read: Callable[[Request], Awaitable[bytes]]
) -> TwilioForm:
    """The form of a request that Twilio has signed with this token. `read` gives its body. Raises Forbidden, and what
    `read` does."""
    asked = address(request, public_url)
    if signatures.TWILIO_HEADER not in request.headers:  # Whose body is not even read.
        signatures.twilio(token, asked, (), request.headers)
    raw = await read(request)
    pairs = parsed(raw)
    url = signatures.twilio(token, asked, pairs, request.headers)
    return TwilioForm(dict(pairs), url, raw)


def parsed(raw: bytes) -> list[tuple[str, str]]:
    """A form's fields. Raises Forbidden: it has too many."""
    text = raw.decode(errors="replace")
    if text.count("&") >= FIELDS:
        raise Forbidden(f"it has over {FIELDS} fields")
    return parse_qsl(text, keep_blank_values=True)


def address(asked: HTTPConnection, public_url: str) -> str:
    """The address that was asked, by the configuration or else by the request."""
    # Not `asked.url`, which takes the Host header apart: it may be anything.
    query = asked.scope["query_string"].decode("latin-1")
    path = f"{asked.scope['path']}{'?' if query else ''}{query}"
    if public_url:
        return public_url.rstrip("/") + path
    return f"{asked.scope['scheme']}://{asked.headers.get('host', '')}{path}"

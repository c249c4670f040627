"""Twilio's webhooks, at a PoP and at a directory in front of it: its forms, with a check of their signature, and our
answers in TwiML, Twilio's instructions for a call (https://www.twilio.com/docs/voice/twiml)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape, quoteattr

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from voicepipe.conversation.own_tools import is_sip, number
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


class TransferTarget(NamedTuple):
    """The party to whom a caller is transferred, and for how long it may ring."""

    address: str
    ring_s: int


def reject(reason: Literal["busy", "rejected"]) -> Response:
    """TwiML that does not answer the call."""
    return _document(f"<Reject reason={quoteattr(reason)}/>")


def stream(url: str, parameters: Mapping[str, str], after: str) -> Response:
    """TwiML that streams the call both ways to the WebSocket `url`; Twilio asks at `after` once that has ended."""
    inner = "".join(
        f"<Parameter name={quoteattr(name)} value={quoteattr(value)}/>" for name, value in parameters.items() if value
    )
    return _document(f"<Connect action={quoteattr(after)}><Stream url={quoteattr(url)}>{inner}</Stream></Connect>")


def dial(target: TransferTarget, after: str) -> Response:
    """TwiML that dials the target; Twilio asks at `after` once that has ended, or failed."""
    to = target.address
    who = f"<Sip>{escape(to)}</Sip>" if is_sip(to) else f"<Number>{escape(number(to))}</Number>"
    return _document(f'<Dial timeout="{target.ring_s}" action={quoteattr(after)}>{who}</Dial>')


def hang_up() -> Response:
    """TwiML that ends the call."""
    return _document("<Hangup/>")


def _document(verb: str) -> Response:
    return Response(f'<?xml version="1.0" encoding="UTF-8"?><Response>{verb}</Response>', media_type="text/xml")

"""TwiML: Twilio's instructions for a call. Pure. https://www.twilio.com/docs/voice/twiml"""

from collections.abc import Mapping
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from voicepipe.conversation.transfer import is_sip, number


class TransferTarget(NamedTuple):
    """The party to whom a caller is transferred, and for how long it may ring."""

    address: str
    ring_s: int


def reject(reason: Literal["busy", "rejected"]) -> str:
    """TwiML that does not answer the call."""
    return _document(f"<Reject reason={quoteattr(reason)}/>")


def stream(url: str, parameters: Mapping[str, str], after: str) -> str:
    """TwiML that streams the call both ways to the WebSocket `url`; Twilio asks at `after` once that has ended."""
    inner = "".join(
        f"<Parameter name={quoteattr(name)} value={quoteattr(value)}/>" for name, value in parameters.items() if value
    )
    return _document(f"<Connect action={quoteattr(after)}><Stream url={quoteattr(url)}>{inner}</Stream></Connect>")


def dial(target: TransferTarget, after: str) -> str:
    """TwiML that dials the target; Twilio asks at `after` once that has ended, or failed."""
    to = target.address
    who = f"<Sip>{escape(to)}</Sip>" if is_sip(to) else f"<Number>{escape(number(to))}</Number>"
    return _document(f'<Dial timeout="{target.ring_s}" action={quoteattr(after)}>{who}</Dial>')


def hang_up() -> str:
    """TwiML that ends the call."""
    return _document("<Hangup/>")


def _document(verb: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?><Response>{verb}</Response>'

"""Authenticates requests: the signatures of Twilio and Telnyx, and tokens for one media stream each. Pure.

Twilio: https://www.twilio.com/docs/usage/security#validating-requests
Telnyx: https://developers.telnyx.com/docs/development/api-fundamentals/webhooks
"""

import binascii
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from voicepipe.base.errors import Refused

T = TypeVar("T")

SIGNED = ("/twilio/", "/telnyx/")
"""Paths below which every request is checked by its signature, or gets 404."""
TWILIO_HEADER = "x-twilio-signature"
TWILIO_SETTINGS = "x-twilio-webhooks-signature-settings"
"""The settings of Twilio's signature header: key=NAME,algorithm=HMAC_SHA256; without them Twilio signs by HMAC_SHA1."""
DIGESTS = {"HMAC_SHA1": "sha1", "HMAC_SHA256": "sha256"}
PORTS = {"https": 443, "wss": 443, "http": 80, "ws": 80}

TELNYX_HEADER = "telnyx-signature-ed25519"
TELNYX_TIME = "telnyx-timestamp"
TELNYX_TOKEN = "x-telnyx-streaming-auth-token"
TOLERANCE_S = 300
"""Seconds of a webhook's age that are tolerated, or of its sender's clock being wrong."""

TOKEN_S = 60
"""Seconds for which a token is valid until its stream begins."""


class Forbidden(Refused):
    """A request was not signed by its alleged sender; the text says what is wrong, and never contains the secret."""

    reason = "bad_signature"


def spellings(url: str) -> Iterator[str]:
    """The spellings in which an address may have been signed: with http or ws, with TLS or without (it may end at a
    proxy), with and without the default port. Raises ValueError: it is no address."""
    parts = urlsplit(url)
    host = parts.netloc.removesuffix(f":{PORTS.get(parts.scheme, 0)}")
    rest = url.partition("://")[2][len(parts.netloc) :]
    for scheme, port in PORTS.items():
        yield f"{scheme}://{host}{rest}"
        if host.endswith("]") or ":" not in host:
            yield f"{scheme}://{host}:{port}{rest}"


def twilio(token: str, url: str, params: Sequence[tuple[str, str]], headers: Mapping[str, str]) -> str:
    """The address in the spelling that Twilio has signed; `url` is one of them. `params`: of a POST. Raises
    Forbidden."""
    signature = headers.get(TWILIO_HEADER, "")
    if not signature:
        raise Forbidden(f"it has no {TWILIO_HEADER}, so it does not come from Twilio")
    settings = dict(part.strip().partition("=")[::2] for part in headers.get(TWILIO_SETTINGS, "").split(","))
    digest = DIGESTS.get(settings.get("algorithm", "").upper() or "HMAC_SHA1")
    if digest is None:
        raise Forbidden(f"it is signed by {settings['algorithm']!r}; known are {', '.join(DIGESTS)}")
    said = "".join(name + value for name, value in sorted(set(params)))
    try:
        possible = list(spellings(url))
    except ValueError:
        raise Forbidden(f"its Host header makes its address {url!r}, which is none") from None
    for spelling in possible:
        made = b64encode(hmac.digest(token.encode(), (spelling + said).encode(), digest))
        if hmac.compare_digest(made, signature.encode()):
            return spelling
    raise Forbidden(
        f"its {TWILIO_HEADER} does not fit {url}: the auth token is another account's or an old one, or the number "
        "calls another address than telephony.public_url says"
    )


def telnyx(key: Ed25519PublicKey, body: bytes, headers: Mapping[str, str], now: float) -> None:
    """Check Telnyx's signature; `now` is the time of day. Raises Forbidden."""
    signature, stamp = headers.get(TELNYX_HEADER, ""), headers.get(TELNYX_TIME, "")
    if not signature or not stamp:
        raise Forbidden(f"it has no {TELNYX_HEADER} or no {TELNYX_TIME}, so it does not come from Telnyx")
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) < 16):
        raise Forbidden(f"its {TELNYX_TIME} is no time")
    if abs(now - int(stamp)) > TOLERANCE_S:
        raise Forbidden(
            f"it was signed {now - int(stamp):.0f} s ago, where {TOLERANCE_S} are allowed: it was sent before, or this "
            "machine's clock is wrong"
        )
    try:
        key.verify(b64decode(signature, validate=True), f"{stamp}|".encode() + body)
    except (InvalidSignature, ValueError, binascii.Error):
        raise Forbidden(f"its {TELNYX_HEADER} does not fit: telnyx.public_key is another account's") from None


class OneTimeTokens(Generic[T]):
    """Secrets that are each valid once, for a short time."""

    def __init__(
        self, clock: Callable[[], float], made: Callable[[dict[str, tuple[float, T]]], None] = lambda tokens: None
    ) -> None:
        """`made` gets each token as it is made, as in `take_over`."""
        self._clock = clock
        self._made = made
        self._known: dict[str, tuple[float, T]] = {}

    def make(self, what: T) -> str:
        """A new token for `what`."""
        now = self._clock()
        self._known = {token: known for token, known in self._known.items() if known[0] > now}
        token = secrets.token_urlsafe(32)
        self._known[token] = now + TOKEN_S, what
        self._made({token: self._known[token]})
        return token

    def handed_over(self) -> dict[str, tuple[float, T]]:
        """The tokens, for the process that takes over; the system's monotonic clock is the same there."""
        return self._known

    def take_over(self, handed: dict[str, tuple[float, T]]) -> None:
        """Accept tokens, too, that the process before this one has made."""
        self._known |= handed

    def take(self, token: str) -> T:
        """The value for which a token was made; it is not valid again. Raises Forbidden."""
        expires, what = self._known.pop(token, (0.0, None))
        if what is None or expires <= self._clock():
            raise Forbidden("its token is unknown, was used before, or is over a minute old")
        return what

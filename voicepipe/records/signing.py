"""Signed webhooks, by the convention of standardwebhooks.com, for which there are libraries in most languages."""

import base64
import hashlib
import hmac

from voicepipe.agent import Hooks
from voicepipe.base.secret_source import SecretMissing, SecretSource

PREFIX = "whsec_"
HOW = 'it must be "whsec_" and at least 24 random bytes in base64: whsec_$(openssl rand -base64 32)'


def secret(text: str) -> bytes:
    """The key in "whsec_" + base64. Raises ValueError: it is none, or shorter than 24 bytes."""
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except ValueError:  # binascii.Error is one; so is what is not ASCII
        key = b""
    if not text.startswith(PREFIX) or len(key) < 24:
        raise ValueError(HOW)
    return key


def key_in(source: SecretSource) -> bytes:
    """The key as it is now. Blocking. Raises ValueError: there is none, or it cannot sign."""
    try:
        return secret(source.read())
    except SecretMissing as error:
        raise ValueError(f"{error}: {HOW}") from None
    except ValueError as error:
        raise ValueError(f"{source} cannot sign: {error}") from None


def lacks(hooks: Hooks) -> str:
    """What keeps us from signing webhooks, with advice; empty: nothing, or there is no secret."""
    try:
        if hooks.secret:
            key_in(hooks.secret)
    except ValueError as error:
        return f"{hooks.secret.key_at('hooks.secret')}: {error}"
    return ""


def headers(key: bytes, message_id: str, now: float, body: bytes) -> dict[str, str]:
    """The headers of one attempt. `now`: Unix seconds; receivers refuse requests that are older than a few minutes."""
    at = str(int(now))
    digest = hmac.digest(key, b".".join((message_id.encode(), at.encode(), body)), hashlib.sha256)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": at,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }

"""Challenges of which nothing is kept (RFC 7616, 5.4): who answers one has got it, at the address that it is made for.

So whoever writes another's address on a request does not come as far as the parser. Pure but for its key.
"""

import hmac
import secrets

VALID_S = 32
"""As long as a request is sent again (64 * T1)."""
_STAMP, _SALT, _MAC = 4, 6, 12
"""Bytes."""


class Nonces:
    """Of one PoP. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def make(self, address: str, now: float) -> str:
        """One for this IP address."""
        said = int(now).to_bytes(_STAMP) + secrets.token_bytes(_SALT)
        return (said + self._mac(said, address)).hex()

    def valid(self, nonce: str, address: str, now: float) -> bool:
        """Whether it was made for this address not long ago."""
        try:
            raw = bytes.fromhex(nonce)
        except ValueError:
            return False
        said, mac = raw[: _STAMP + _SALT], raw[_STAMP + _SALT :]
        age = int(now) - int.from_bytes(said[:_STAMP])
        return 0 <= age <= VALID_S and hmac.compare_digest(mac, self._mac(said, address))

    def _mac(self, said: bytes, address: str) -> bytes:
        return hmac.digest(self._key, said + address.encode(), "sha256")[:_MAC]

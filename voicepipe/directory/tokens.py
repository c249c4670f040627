"""What a directory lets a caller do at one run of one PoP, signed, so that the PoP need ask nobody.

JSON Web Tokens (RFC 7519) with Ed25519 signatures (RFC 8037), by the rules of RFC 8725: one algorithm, keys by their
id, an audience that is one run of one PoP. Because of that audience a PoP remembers by itself which tokens were used,
and one that begins anew takes none of the old ones. Times are seconds of the PoP's own clock, be it set right or
wrong: its reports tell directories how late it is there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from voicepipe.call_api import TOKEN, Grant
from voicepipe.directory.report import Epoch
from voicepipe.errors import Unauthorized

ALGORITHM = "EdDSA"
VALID_S = 60.0
LEEWAY_S = 30.0
"""So much later a token is still taken: the PoP's clock may have been set meanwhile."""
AGAIN = "ask the directory for another"


class _Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of the token: registered ones, and ours in one."""

    aud: str
    exp: float
    grant: Grant


def audience(pop: str, epoch: Epoch) -> str:
    """One run of one PoP."""
    return f"{pop}.{epoch}"


@dataclass(frozen=True, slots=True)
class Signer:
    """A directory's key."""

    key_id: str
    key: Ed25519PrivateKey

    def sign(self, grant: Grant, pop: str, epoch: Epoch, clock_s: float) -> str:
        """A token for this run of the PoP, which takes it for `VALID_S` from `clock_s` on: Unix seconds there."""
        claims = _Claims(audience(pop, epoch), clock_s + VALID_S, grant)
        payload = msgspec.json.encode(claims)
        return TOKEN + jwt.api_jws.encode(payload, self.key, ALGORITHM, {"kid": self.key_id, "typ": "JWT"})


class Gate:
    """What one run of one PoP takes. `keys`: directories' public keys by their ids; `clock` gives Unix seconds."""

    def __init__(self, audience: str, keys: Mapping[str, Ed25519PublicKey], clock: Callable[[], float]) -> None:
        self.keys = keys
        """May be replaced while calls come in."""
        self._audience = audience
        self._clock = clock
        self._used: dict[str, float] = {}
        """Ids of grants that are used up, and when they would not be taken any more anyway; the oldest first."""

    def read(self, token: str) -> Grant:
        """What the token allows; it is not used up by that. Raises Unauthorized."""
        claims = self._claims(token.removeprefix(TOKEN))
        if claims.aud != self._audience:
            raise Unauthorized(f"This token is for another PoP, or for an earlier run of this one: {AGAIN}.")
        if self._clock() >= claims.exp + LEEWAY_S:
            raise Unauthorized(f"This token has expired: {AGAIN}.")
        self._check_unused(claims.grant)
        return claims.grant

    def use(self, grant: Grant) -> None:
        """A call begins with it. Raises Unauthorized: one did before."""
        self._check_unused(grant)
        now = self._clock()
        for old in [used for used, until in self._used.items() if until <= now]:
            del self._used[old]
        self._used[grant.id] = now + VALID_S + 2 * LEEWAY_S

    def _check_unused(self, grant: Grant) -> None:
        if grant.id in self._used:
            raise Unauthorized(f"This token was used already: {AGAIN}.")

    def _claims(self, token: str) -> _Claims:
        try:
            key = self.keys.get(str(jwt.get_unverified_header(token).get("kid")))
            if key is None:
                raise Unauthorized(f"This token was signed with a key that this PoP does not know: {AGAIN}.")
            return msgspec.json.decode(jwt.api_jws.decode(token, key, [ALGORITHM]), type=_Claims)
        except (jwt.InvalidTokenError, msgspec.DecodeError, ValueError):
            raise Unauthorized(f"This token is none that a directory made: {AGAIN}.") from None

"""Tokens by which a directory admits a caller to one run of one PoP: signed, so that the PoP need ask no other host.

JSON Web Tokens (RFC 7519) with Ed25519 signatures (RFC 8037), by the rules of RFC 8725: one algorithm, keys by their
id, an audience that is one run of one PoP. Because of that audience a PoP remembers by itself which tokens were used,
and one that begins anew takes none of the old ones. Times are seconds of the PoP's own clock, be it set right or
wrong: its reports tell directories how late it is there.

Directories' keys are in files: the private one signs, the public ones are at the PoPs.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import jwt
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from voicepipe.base.errors import ConfigError, Unauthorized
from voicepipe.call_api import TOKEN, Grant
from voicepipe.config import Config
from voicepipe.directory.report import Epoch

T = TypeVar("T")
ALGORITHM = "EdDSA"
VALID_S = 60.0
LEEWAY_S = 30.0
"""Seconds for which an expired token is still valid: the PoP's clock may have been set meanwhile."""
AGAIN = "ask the directory for another"


class _TokenClaims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The claims of a token: registered ones, and ours in one."""

    aud: str
    exp: float
    grant: Grant


def audience(pop: str, epoch: Epoch) -> str:
    """The audience of a token: one run of one PoP."""
    return f"{pop}.{epoch}"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs tokens with a directory's private key."""

    key_id: str
    key: Ed25519PrivateKey

    def sign(self, grant: Grant, pop: str, epoch: Epoch, clock_s: float) -> str:
        """A token for this run of the PoP, valid for `VALID_S` from `clock_s` on: Unix seconds there."""
        claims = _TokenClaims(audience(pop, epoch), clock_s + VALID_S, grant)
        return TOKEN + self.signed(msgspec.json.encode(claims))

    def signed(self, payload: bytes) -> str:
        """A signed token in the compact form of RFC 7515."""
        return jwt.api_jws.encode(payload, self.key, ALGORITHM, {"kid": self.key_id, "typ": "JWT"})


class TokenVerifier:
    """Checks the tokens that directories have signed for one run of one PoP. `keys`: directories' public keys by their
    ids; `clock` gives Unix seconds."""

    def __init__(self, audience: str, keys: Mapping[str, Ed25519PublicKey], clock: Callable[[], float]) -> None:
        self._keys = keys
        self._audience = audience
        self._clock = clock
        self._used: dict[str, float] = {}
        """Ids of grants that are used up, and when they would expire anyway; the oldest first."""

    def become(self, keys: Mapping[str, Ed25519PublicKey]) -> None:
        """Take the tokens of these directories from now on, and of no others."""
        self._keys = keys

    def read(self, token: str, spent: bool = False) -> Grant:
        """As `call_api.Tokens`."""
        claims = verified(token.removeprefix(TOKEN), self._keys, _TokenClaims)
        if claims is None:
            raise Unauthorized(f"This token was not made by a directory that this PoP knows: {AGAIN}.")
        if claims.aud != self._audience:
            raise Unauthorized(f"This token is for another PoP, or for an earlier run of this one: {AGAIN}.")
        if spent and claims.grant.begins:
            return claims.grant
        if self._clock() >= claims.exp + LEEWAY_S:
            raise Unauthorized(f"This token has expired: {AGAIN}.")
        self._check_unused(claims.grant)
        return claims.grant

    def use(self, grant: Grant) -> None:
        """A call begins with this token. Raises Unauthorized: another call did before."""
        self._check_unused(grant)
        now = self._clock()
        while self._used and self._used[oldest := next(iter(self._used))] <= now:
            del self._used[oldest]
        self._used[grant.id] = now + VALID_S + 2 * LEEWAY_S

    def _check_unused(self, grant: Grant) -> None:
        if grant.id in self._used:
            raise Unauthorized(f"This token was used already: {AGAIN}.")


def verified(signed: str, keys: Mapping[str, Ed25519PublicKey], shape: type[T]) -> T | None:
    """The content that was signed with one of these keys; None: there is none, or it has another shape."""
    try:
        key = keys.get(str(jwt.get_unverified_header(signed).get("kid")))
        return msgspec.json.decode(jwt.api_jws.decode(signed, key, [ALGORITHM]), type=shape) if key else None
    except (jwt.InvalidTokenError, msgspec.DecodeError, ValueError):
        return None


def public_key(path: str) -> Ed25519PublicKey:
    """A public key from its file. Raises ConfigError."""
    try:
        key = load_pem_public_key(Path(path).read_bytes())
        if isinstance(key, Ed25519PublicKey):
            return key
    except (OSError, ValueError, UnsupportedAlgorithm):
        pass
    raise ConfigError(
        f"{path} is no Ed25519 public key; make one of the directory's key: "
        "openssl pkey -in directory.pem -pubout -out directory.pub.pem"
    )


def public_keys(paths: Iterable[str]) -> dict[str, Ed25519PublicKey]:
    """The public keys in these files by their ids. Raises ConfigError."""
    return {key_id(key): key for key in map(public_key, paths)}


def check_keys(config: Config) -> None:
    """Raises ConfigError: a public key by which a PoP is to know directories cannot be read."""
    for path in config.fleet.keys:
        try:
            public_key(path)
        except ConfigError as error:
            raise ConfigError(f"fleet.keys: {error}") from None


def signer(path: str) -> Signer:
    """The signer with the private key from its file. Raises ConfigError."""
    try:
        key = load_pem_private_key(Path(path).read_bytes(), None)
        if isinstance(key, Ed25519PrivateKey):
            return Signer(key_id(key.public_key()), key)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        pass
    raise ConfigError(
        f"directory.key: {path or 'it'} is no Ed25519 private key without a password; make one: "
        "openssl genpkey -algorithm ed25519 -out directory.pem"
    )


def key_id(key: Ed25519PublicKey) -> str:
    """The key's id, by which a token names its signer."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]

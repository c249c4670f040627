"""SRTP keys in SDP (SDES, RFC 4568), and the two SRTP sessions that they give. Keys are never printed except in SDP."""

import base64
import binascii
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from pylibsrtp import Policy, Session

SUITES = {
    "AES_CM_128_HMAC_SHA1_80": (Policy.SRTP_PROFILE_AES128_CM_SHA1_80, 30),
    "AES_CM_128_HMAC_SHA1_32": (Policy.SRTP_PROFILE_AES128_CM_SHA1_32, 30),
    "AEAD_AES_256_GCM": (Policy.SRTP_PROFILE_AEAD_AES_256_GCM, 44),
    "AEAD_AES_128_GCM": (Policy.SRTP_PROFILE_AEAD_AES_128_GCM, 28),
}
"""The SRTP profile of each suite, and the bytes of its master key and salt. pylibsrtp has no AES_256_CM."""
_LINE = re.compile(r"([0-9]{1,9})\s+(\S+)\s+inline:([A-Za-z0-9+/]+={0,2})(?:\|(?:2\^)?[0-9]{1,15})?((?:\s+\S+)*)\s*")


@dataclass(frozen=True, slots=True)
class Crypto:
    """An a=crypto line of SDP (RFC 4568): the key by which its sender protects what it sends."""

    tag: int
    suite: str
    key: bytes = field(repr=False)
    """Master key and salt."""

    @classmethod
    def made(cls, tag: int, suite: str) -> "Crypto":
        """A line with a fresh key."""
        return cls(tag, suite, secrets.token_bytes(SUITES[suite][1]))

    def __str__(self) -> str:
        """The text after "a=crypto:": the key in clear."""
        return f"{self.tag} {self.suite} inline:{base64.b64encode(self.key).decode()}"


def read(line: str) -> Crypto | None:
    """The line with this text after "a=crypto:". None: it asks for something that we do not have, a suite, several
    keys, an MKI or a session parameter, or it cannot be read."""
    if not (found := _LINE.fullmatch(line)) or found[2] not in SUITES:
        return None
    if any(not wish.startswith(("-", "WSH=")) for wish in found[4].split()):  # What may be ignored (RFC 4568, 6.3).
        return None
    try:
        key = base64.b64decode(found[3], validate=True)
    except binascii.Error:
        return None
    return Crypto(int(found[1]), found[2], key) if len(key) == SUITES[found[2]][1] else None


def offered() -> tuple[Crypto, ...]:
    """Our lines for an offer: one of each suite, the usual one first."""
    return tuple(Crypto.made(tag, suite) for tag, suite in enumerate(SUITES, 1))


@dataclass(frozen=True)
class Srtp:
    """The SRTP sessions of a call, both ways."""

    ours: Crypto
    theirs: Crypto

    @classmethod
    def answering(cls, theirs: Crypto, before: "Srtp | None" = None) -> "Srtp":
        """The sessions for an offer. If it has the key that it had `before`, all goes on as it was: a new session could
        not read packets on their way."""
        if before and (before.theirs.suite, before.theirs.key) == (theirs.suite, theirs.key):
            return before
        return cls(Crypto.made(theirs.tag, theirs.suite), theirs)

    @classmethod
    def answered(cls, ours: Iterable[Crypto], theirs: Crypto) -> "Srtp | None":
        """The sessions for the answer to our offer. None: it accepts none of our lines."""
        for crypto in ours:
            if (crypto.tag, crypto.suite) == (theirs.tag, theirs.suite):
                return cls(crypto, theirs)
        return None

    @cached_property
    def outbound(self) -> Session:
        """`protect` and `protect_rtcp` for what we send."""
        return _session(self.ours, Policy.SSRC_ANY_OUTBOUND)

    @cached_property
    def inbound(self) -> Session:
        """`unprotect` and `unprotect_rtcp` for what comes; they raise pylibsrtp.Error and ValueError (too long)."""
        return _session(self.theirs, Policy.SSRC_ANY_INBOUND)


def _session(crypto: Crypto, direction: int) -> Session:
    policy = Policy(crypto.key, direction, 0, SUITES[crypto.suite][0])
    return Session(policy)

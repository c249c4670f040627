"""Who may call by SIP: a trunk by its address, a user by their password (digest), or this machine alone."""

import hmac
import ipaddress
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sippy.SipAuthorization import DigestCalcHA1, DigestCalcResponse

from voicepipe.base.errors import Reason
from voicepipe.base.token_bucket import Rate
from voicepipe.config.credentials import sip_passwords
from voicepipe.config.phone_config import SipEndpointConfig
from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.datagram_check import DatagramCheck
from voicepipe.ingress.sip.header_text import SipError, credentials, warning
from voicepipe.ingress.sip.stack import IncomingRequest
from voicepipe.ingress.throttle import Throttle

ALGORITHM = "MD5"
"""The digest algorithm: all telephones know it, and some (libre, up to baresip 1.0) fail where a second challenge has
one that they do not know. Where it would be too weak, the sound goes unencrypted anyway."""
GUESSES = Rate(50, 1), Rate(5000, 200)
"""Wrong passwords from one address and from all. They are not forged: each sender has got a challenge at its address.
From an address that is known they count by user as well, so that one telephone does not keep out others of its
building."""
WAIT_S = "60"
KNOWN = 4096
"""Addresses from which right passwords came lately: what others send does not keep these out."""
VALID_S = 32
"""Seconds for which a challenge is valid, as long as a request is sent again (64 * T1)."""
_STAMP, _SALT, _MAC = 4, 6, 12
"""Bytes of the parts of a nonce."""


@dataclass
class SipRefusal(Exception):
    """A request is not carried out: the answer for its sender, and the reason for the log."""

    code: int
    phrase: str
    """The reason phrase that goes with the code: "Forbidden"."""
    why: str
    headers: tuple[tuple[str, str], ...] = ()
    reason: Reason = "bad_request"
    """The reason for programs."""


class Unauthenticated(SipRefusal):
    """Refuses a sender that is not authenticated, who may have forged their address: the answer is sent only once."""


class Challenge(Unauthenticated):
    """Asks the sender for a password; every user is asked."""


@dataclass(frozen=True, slots=True)
class SipSender:
    """The authenticated caller. Both are empty where only this machine may call."""

    trunk: str = ""
    user: str = ""

    def __str__(self) -> str:
        return f"trunk {self.trunk}" if self.trunk else f"user {self.user!r}" if self.user else "this machine"


class Nonces:
    """Makes and checks digest challenges without storing them (RFC 7616, 5.4): a sender that answers one has received
    it at the address for which it was made. So a forged address does not get a request as far as the parser. Times are
    monotonic seconds."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def make(self, address: str, now: float) -> str:
        """A challenge for this IP address."""
        said = int(now).to_bytes(_STAMP) + secrets.token_bytes(_SALT)
        return (said + self._mac(said, address)).hex()

    def valid(self, nonce: str, address: str, now: float) -> bool:
        """Whether the challenge was made for this address and is not too old."""
        try:
            raw = bytes.fromhex(nonce)
        except ValueError:
            return False
        said, mac = raw[: _STAMP + _SALT], raw[_STAMP + _SALT :]
        age = int(now) - int.from_bytes(said[:_STAMP])
        return 0 <= age <= VALID_S and hmac.compare_digest(mac, self._mac(said, address))

    def _mac(self, said: bytes, address: str) -> bytes:
        return hmac.digest(self._key, said + address.encode(), "sha256")[:_MAC]


class SipAccess:
    """The rules of one PoP or directory for who may call by SIP. Raises ConfigError: a user has no password."""

    def __init__(self, sip: SipEndpointConfig) -> None:
        self._realm = sip.realm
        self._nonces = Nonces()
        self.become(sip, sip_passwords(sip.users))
        self._answers: OrderedDict[str, float] = OrderedDict()
        """Answers to challenges, right or wrong, and when they came."""
        each, all_of_them = GUESSES
        self._guesses = {False: Throttle(each, all_of_them), True: Throttle(each, Rate(math.inf, 0))}
        """Wrong passwords from addresses that are not known, and from those that are."""
        self._known: OrderedDict[str, None] = OrderedDict()

    def become(self, sip: SipEndpointConfig, passwords: Mapping[str, str]) -> None:
        """Use other trunks and users, with `passwords` as `credentials.sip_passwords` finds them."""
        self._passwords = passwords
        self._trunks = [(ipaddress.IPv4Network(net), trunk.name) for trunk in sip.trunks for net in trunk.addresses]
        self.trunk = lru_cache(KNOWN)(self._found_trunk)
        """The trunk that has an IPv4 address; empty: none."""
        self._open = not sip.trunks and not sip.users

    def _found_trunk(self, source: str) -> str:
        address = ipaddress.IPv4Address(source)
        return next((name for network, name in self._trunks if address in network), "")

    def trusts(self, source: str) -> bool:
        """Whether all that comes from this IPv4 address is read: a trunk's, or this machine's."""
        return self._open or bool(self.trunk(source))

    def knows(self, source: str) -> bool:
        """Whether a right password came from this IP address lately."""
        return source in self._known

    def screen(self, seen: DatagramCheck, source: str, now: float) -> SipRefusal | None:
        """The immediate answer to a request from an IP address that is not trusted; None: the request is to be read."""
        if seen.method == "CANCEL" or seen.to_tag:
            return SipRefusal(481, "Call/Transaction Does Not Exist", "it belongs to no call that goes on")
        if not self._passwords:
            why = f"{source} is none of the sip.trunks, and there are no sip.users"
            return Unauthenticated(403, "Forbidden", why, reason="forbidden")
        try:
            said = credentials(seen.first("Authorization"))
        except SipError as error:
            return _unread(error)
        if not self._nonces.valid(said.get("nonce", ""), source, now):
            again = bool(said.get("nonce"))
            return self._challenge(
                source, now, "its challenge is too old" if again else "it brought no password", again
            )
        known = self.knows(source)
        if not self._guesses[known].has_room(_guesser(source, said.get("username", ""), known), now):
            why = "too many wrong passwords came from there lately"
            return Unauthenticated(503, "Service Unavailable", why, (("Retry-After", WAIT_S),), "too_many_requests")
        return None

    def admit(self, request: IncomingRequest) -> SipSender:
        """The sender of a request that `screen` has let pass. Raises Unauthenticated."""
        source = request.source[0]
        if self._open:
            return SipSender()
        if trunk := self.trunk(source):
            return SipSender(trunk=trunk)
        return SipSender(user=self._authenticated(request))

    def _authenticated(self, request: IncomingRequest) -> str:
        source, now = request.source[0], time.monotonic()
        try:
            said = credentials(request.header("authorization"))
        except SipError as error:
            raise _unread(error) from None
        try:
            user = self._verified(said, request, now)
        except Challenge:
            raise
        except Unauthenticated:
            known = self.knows(source)
            self._guesses[known].admits(_guesser(source, said.get("username", ""), known), now)
            raise
        self._known[source] = None
        self._known.move_to_end(source)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return user

    def _verified(self, said: dict[str, str], request: IncomingRequest, now: float) -> str:
        """The user who has answered our challenge. Raises Unauthenticated."""
        source = request.source[0]
        try:
            user, asked = said["username"], Address.of_uri(said["uri"])
            password = self._passwords.get(user)
            right = said["response"] == _response(said, password or "", request)
            fresh = self._nonces.valid(said["nonce"], source, now)
        except (KeyError, ValueError):
            raise Unauthenticated(400, "Bad Request", "its Authorization header cannot be read") from None
        if said.get("realm") != self._realm or not fresh or not self._first(said["response"], now):
            raise self._challenge(source, now, "its challenge is too old, or was answered before", again=True)
        if password is None:
            why = f"there is no user {user!r} in sip.users"
            raise Unauthenticated(403, "Forbidden", why, reason="unauthorized")
        # What was answered for one number opens no other; some name none.
        if not right or asked.user not in ("", request.uri.user):
            why = f"the password of user {user!r} is wrong"
            raise Unauthenticated(403, "Forbidden", why, reason="unauthorized")
        return user

    def _first(self, answer: str, now: float) -> bool:
        """Whether a challenge is answered so for the first time: an answer that was seen on the wire opens nothing."""
        while self._answers and next(iter(self._answers.values())) < now - VALID_S - 1:
            self._answers.popitem(last=False)
        if answer in self._answers:
            return False
        self._answers[answer] = now
        return True

    def _challenge(self, source: str, now: float, why: str, again: bool) -> Challenge:
        stale = ",stale=true" if again else ""
        nonce = self._nonces.make(source, now)
        challenge = f'Digest realm="{self._realm}",nonce="{nonce}",qop="auth",algorithm={ALGORITHM}{stale}'
        return Challenge(401, "Unauthorized", why, (("WWW-Authenticate", challenge),))


def _guesser(source: str, user: str, known: bool) -> str:
    """The key by which wrong passwords are counted."""
    return f"{user[:100]!r} at {source}" if known else source


def _unread(error: SipError) -> Unauthenticated:
    return Unauthenticated(400, "Bad Request", str(error), (warning(str(error)),))


def _response(said: dict[str, str], password: str, request: IncomingRequest) -> str:
    """The right digest response (RFC 2617), by the fields that the sender gives. Raises KeyError: a field is missing,
    and ValueError: a field has an unknown value."""
    algorithm, qop = said.get("algorithm"), said.get("qop")
    if algorithm not in (None, ALGORITHM) or qop not in (None, "auth", "auth-int"):
        raise ValueError("another algorithm, or another qop")
    nonce, count, theirs = said["nonce"], said.get("nc"), said.get("cnonce")
    first = DigestCalcHA1(algorithm, said["username"], said["realm"], password, nonce, theirs)
    return str(
        DigestCalcResponse(algorithm, first, nonce, count, theirs, qop, request.method, said["uri"], request.body)
    )

"""Who may call by SIP: a trunk by its address, a user by their password (digest), or this machine alone."""

import ipaddress
import time
from collections import OrderedDict
from dataclasses import dataclass

from sippy.SipAuthorization import SipAuthorization
from sippy.SipWWWAuthenticate import SipWWWAuthenticate

from voicepipe.config import Config, sip_passwords
from voicepipe.ingress.local import check_phones
from voicepipe.ingress.sip.message import Address
from voicepipe.ingress.sip.stack import Request
from voicepipe.ingress.throttle import Rate, Throttle

ALGORITHM = "MD5"
"""All telephones know it, and some (libre, up to baresip 1.0) give up over a second challenge by one that they do not.
Where it would be too weak, sound and all go in the open anyway."""


CHALLENGE_S = 40.0
"""sippy takes the answer to a challenge for 32 s."""
GUESSES = Rate(50, 1), Rate(500, 20)
"""Passwords from one address and from all: a building full of telephones needs less, and guessing takes for ever."""


@dataclass
class Refusal(Exception):
    """A request that is not carried out: what its sender gets, and why, for the log."""

    code: int
    reason: str
    why: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who calls. Both are empty where only this machine may."""

    trunk: str = ""
    user: str = ""


class Gate:
    """The rules of one PoP. Raises ConfigError: a user has no password, or as `check_phones`."""

    def __init__(self, config: Config) -> None:
        check_phones(config)
        sip = config.sip
        self._realm = sip.realm
        self._passwords = sip_passwords(config)
        self._trunks = [(ipaddress.IPv4Network(net), trunk.name) for trunk in sip.trunks for net in trunk.addresses]
        self._open = not sip.trunks and not sip.users
        self._answers: OrderedDict[str, float] = OrderedDict()
        """To challenges, right or wrong, and when they came."""
        self._guesses = Throttle(*GUESSES)

    def trunk(self, source: str) -> str:
        """The trunk that has this IPv4 address; empty: none."""
        address = ipaddress.IPv4Address(source)
        return next((name for network, name in self._trunks if address in network), "")

    def trusts(self, source: str) -> bool:
        """Whether all that comes from this IPv4 address is listened to: a trunk's, or this machine's."""
        return self._open or bool(self.trunk(source))

    def admit(self, request: Request) -> Admitted:
        """Who sent it. Raises Refusal."""
        source = request.source[0]
        if self._open:
            return Admitted()
        if trunk := self.trunk(source):
            return Admitted(trunk=trunk)
        if not self._passwords:
            raise Refusal(403, "Forbidden", f"{source} is none of the sip.trunks, and there are no sip.users")
        return Admitted(user=self._authenticated(request))

    def _authenticated(self, request: Request) -> str:
        said = request.header("authorization")
        if not said:
            raise self._challenge("it brought no password yet")
        now = time.monotonic()
        if not self._guesses.admits(request.source[0], now):
            raise Refusal(403, "Forbidden", "too many passwords came from there: it may try again in a while")
        authorization = SipAuthorization(said)
        try:
            authorization.parse()
            user, realm, nonce = authorization.username, authorization.realm, authorization.nonce
            asked = Address.of(f"<{authorization.uri}>")
            password = self._passwords.get(user)
            right = authorization.verify(password or "", request.method, request.body)
            fresh = authorization.ho.validate_challenge(nonce, ())
        except Exception:  # That is how sippy says that it does not understand.
            raise Refusal(400, "Bad Request", "its Authorization header cannot be read") from None
        if realm != self._realm or not fresh or not self._first(authorization.response, now):
            raise self._challenge("its challenge is too old, or was answered before", ",stale=true")
        if password is None:
            raise Refusal(403, "Forbidden", f"there is no user {user!r} in sip.users")
        # What was answered for one number opens no other; some name none.
        if not right or asked.user not in ("", request.uri.user):
            raise Refusal(403, "Forbidden", f"the password of user {user!r} is wrong")
        return str(user)

    def _first(self, answer: str, now: float) -> bool:
        """Whether a challenge is answered so for the first time; seen on the wire, it opens nothing."""
        while self._answers and next(iter(self._answers.values())) < now - CHALLENGE_S:
            self._answers.popitem(last=False)
        if answer in self._answers:
            return False
        self._answers[answer] = now
        return True

    def _challenge(self, why: str, more: str = "") -> Refusal:
        challenge = f"{SipWWWAuthenticate(realm=self._realm, algorithm=ALGORITHM)}{more}"
        return Refusal(401, "Unauthorized", why, (("WWW-Authenticate", challenge),))

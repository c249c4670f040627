"""Who may call by SIP: a trunk by its address, a user by their password (digest), or this machine alone."""

import ipaddress
import math
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
"""Wrong passwords from one address and from all: with these guessing takes for ever."""
WAIT_S = "60"
KNOWN = 4096
"""Addresses from which right passwords came lately: what others send from forged ones does not keep these out."""


@dataclass
class Refusal(Exception):
    """A request that is not carried out: what its sender gets, and why, for the log."""

    code: int
    reason: str
    why: str
    headers: tuple[tuple[str, str], ...] = ()


class Unadmitted(Refusal):
    """Of somebody whom we do not know, who may have written another's address on it: it is answered but once."""


class Challenge(Unadmitted):
    """They are asked for their password, as everybody is who has one."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who calls. Both are empty where only this machine may."""

    trunk: str = ""
    user: str = ""

    def __str__(self) -> str:
        return f"trunk {self.trunk}" if self.trunk else f"user {self.user!r}" if self.user else "this machine"


class Gate:
    """The rules of one PoP. Raises ConfigError: a user has no password, or as `check_phones`."""

    def __init__(self, config: Config) -> None:
        check_phones(config)
        sip = config.sip
        self._realm = sip.realm
        self._passwords = sip_passwords(config)
        self._trunks = [(ipaddress.IPv4Network(net), trunk.name) for trunk in sip.trunks for net in trunk.addresses]
        self._open = not sip.trunks and not sip.users
        self._most = {Admitted(trunk=one.name): one.calls for one in sip.trunks} | {
            Admitted(user=one.name): one.calls for one in sip.users
        }
        self._answers: OrderedDict[str, float] = OrderedDict()
        """To challenges, right or wrong, and when they came."""
        each, all_of_them = GUESSES
        self._guesses = {False: Throttle(each, all_of_them), True: Throttle(each, Rate(math.inf, 0))}
        """Of addresses that are not known, and of those that are."""
        self._known: OrderedDict[str, None] = OrderedDict()

    def trunk(self, source: str) -> str:
        """The trunk that has this IPv4 address; empty: none."""
        address = ipaddress.IPv4Address(source)
        return next((name for network, name in self._trunks if address in network), "")

    def trusts(self, source: str) -> bool:
        """Whether all that comes from this IPv4 address is listened to: a trunk's, or this machine's."""
        return self._open or bool(self.trunk(source))

    def most(self, who: Admitted) -> float:
        """Their calls at a time."""
        return self._most.get(who) or math.inf

    def admit(self, request: Request) -> Admitted:
        """Who sent it. Raises Unadmitted."""
        source = request.source[0]
        if self._open:
            return Admitted()
        if trunk := self.trunk(source):
            return Admitted(trunk=trunk)
        if not self._passwords:
            raise Unadmitted(403, "Forbidden", f"{source} is none of the sip.trunks, and there are no sip.users")
        return Admitted(user=self._authenticated(request))

    def _authenticated(self, request: Request) -> str:
        said = request.header("authorization")
        if not said:
            raise self._challenge("it brought no password yet")
        source, now = request.source[0], time.monotonic()
        guesses = self._guesses[source in self._known]
        if not guesses.has_room(source, now):
            why = "too many wrong passwords came from there lately"
            raise Unadmitted(503, "Service Unavailable", why, (("Retry-After", WAIT_S),))
        try:
            user = self._verified(SipAuthorization(said), request, now)
        except Challenge:
            raise
        except Unadmitted:
            guesses.admits(source, now)
            raise
        self._known[source] = None
        self._known.move_to_end(source)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return user

    def _verified(self, authorization: SipAuthorization, request: Request, now: float) -> str:
        """Whose answer to our challenge it is. Raises Unadmitted."""
        try:
            authorization.parse()
            user, realm, nonce = authorization.username, authorization.realm, authorization.nonce
            asked = Address.of(f"<{authorization.uri}>")
            password = self._passwords.get(user)
            right = authorization.verify(password or "", request.method, request.body)
            fresh = authorization.ho.validate_challenge(nonce, ())
        except Exception:  # That is how sippy says that it does not understand.
            raise Unadmitted(400, "Bad Request", "its Authorization header cannot be read") from None
        if realm != self._realm or not fresh or not self._first(authorization.response, now):
            raise self._challenge("its challenge is too old, or was answered before", ",stale=true")
        if password is None:
            raise Unadmitted(403, "Forbidden", f"there is no user {user!r} in sip.users")
        # What was answered for one number opens no other; some name none.
        if not right or asked.user not in ("", request.uri.user):
            raise Unadmitted(403, "Forbidden", f"the password of user {user!r} is wrong")
        return str(user)

    def _first(self, answer: str, now: float) -> bool:
        """Whether a challenge is answered so for the first time; seen on the wire, it opens nothing."""
        while self._answers and next(iter(self._answers.values())) < now - CHALLENGE_S:
            self._answers.popitem(last=False)
        if answer in self._answers:
            return False
        self._answers[answer] = now
        return True

    def _challenge(self, why: str, more: str = "") -> Challenge:
        challenge = f"{SipWWWAuthenticate(realm=self._realm, algorithm=ALGORITHM)}{more}"
        return Challenge(401, "Unauthorized", why, (("WWW-Authenticate", challenge),))

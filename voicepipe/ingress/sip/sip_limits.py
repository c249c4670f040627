"""Which SIP messages are read, and on whose account: what strangers send is never paid for by callers.

Everybody has two limits: messages of one sender, and the event loop's time for all senders of a kind; each call has a
limit of time for itself instead. What is junk, or can be answered without the parser, is not counted as a message at
all. Pure.
"""

import enum
import math
from collections.abc import Callable
from hashlib import blake2b
from typing import NamedTuple

from voicepipe.base.token_bucket import Bucket, Rate
from voicepipe.ingress.sip.datagram_check import DatagramCheck
from voicepipe.ingress.sip.sip_access import SipAccess, SipRefusal
from voicepipe.ingress.throttle import Remembered, Throttle

ANSWERS = Rate(200, 50), Rate(math.inf, 0)
"""To one IP address and to all that are told something without being read: it may have been forged."""
CALLS_OWN, CALL_OWES_MS = Rate(100, 50), 1000
"""Milliseconds of the event loop's for the messages of one call, at once and a second: an honest message takes 1 ms.
What is owed is paid in 20 s at most, and a BYE is sent again for 32 s."""


class SenderKind(enum.Enum):
    """Senders. Messages of one at once and a second; milliseconds of the event loop for all of them, likewise."""

    CALL = Rate(100, 10), Rate(math.inf, 0)
    """Of a call, or of a transaction, that goes on: its tags and branches are secrets. Each has `CALLS_OWN`."""
    TRUSTED = Rate(1000, 400), Rate(100, 300)
    """A trunk's IP address, or this machine."""
    KNOWN = Rate(200, 50), Rate(50, 150)
    """An IP address from which a right password came lately."""
    STRANGER = Rate(200, 50), Rate(50, 100)


_UNKNOWN = SenderKind.KNOWN, SenderKind.STRANGER
"""Who has to prove who they are, each time."""
_TOO_LARGE = SipRefusal(513, "Message Too Large", "it is too long, or has too many headers or parameters")


class _Account:
    def __init__(self, kind: SenderKind) -> None:
        each, milliseconds = kind.value
        self.messages = Throttle(each, Rate(math.inf, 0))
        self.milliseconds = Bucket(milliseconds)
        self._own: Remembered[str, Bucket] | None = None
        if kind is SenderKind.CALL:
            self._own = Remembered(lambda: Bucket(CALLS_OWN, owes=CALL_OWES_MS))

    def has_room(self, sender: str, now: float) -> bool:
        """Whether one more message of theirs may be looked at."""
        if self._own is not None:
            self._own.forget(lambda bucket: bucket.is_full(now))
            if not self._own[sender].has(now):
                return False
        return self.messages.has_room(sender, now) and self.milliseconds.has(now)

    def took(self, sender: str, milliseconds: float) -> None:
        """So much of the event loop's time went into it."""
        self.milliseconds.take(milliseconds)
        if self._own is not None:
            self._own[sender].take(milliseconds)


class Judgement(NamedTuple):
    """What becomes of a message."""

    kind: SenderKind
    read: bool
    refusal: SipRefusal | None = None
    """What its sender is told instead."""
    sender: str = ""
    """By what they are known among their kind: a call by a hash, since a Call-ID has any length and any characters."""


class SipLimits:
    """`goes_on`: whether a message belongs to a call or to a transaction that we have. Times are monotonic seconds."""

    def __init__(self, gate: SipAccess, goes_on: Callable[[DatagramCheck], bool]) -> None:
        self._gate = gate
        self._goes_on = goes_on
        self._accounts = {kind: _Account(kind) for kind in SenderKind}
        self._answers = Throttle(*ANSWERS)

    def judge(self, seen: DatagramCheck, source: str, now: float) -> Judgement:
        """`source`: the IP address that it came from."""
        kind, sender = self._sender(seen, source)
        account = self._accounts[kind]
        if kind in _UNKNOWN and seen.method in ("", "ACK"):  # Answers to nothing that we have said.
            return Judgement(kind, read=False)
        # Whoever is over their own limit is dropped before anything is made for them at everybody's expense.
        if not account.has_room(sender, now):
            account.messages.refused(sender)
            return Judgement(kind, read=False)
        refusal = _TOO_LARGE if seen.excessive else None
        if kind in _UNKNOWN:
            refusal = refusal or self._gate.screen(seen, source, now)
        if refusal and not self._answers.admits(sender, now):
            account.messages.admits(sender, now)
            return Judgement(kind, read=False)
        if refusal is None:
            account.messages.admits(sender, now)
        return Judgement(kind, read=refusal is None, refusal=refusal, sender=sender)

    def _sender(self, seen: DatagramCheck, source: str) -> tuple[SenderKind, str]:
        if self._goes_on(seen):
            return SenderKind.CALL, f"the call {blake2b(seen.call_id.encode(), digest_size=8).hexdigest()}"
        if self._gate.trusts(source):
            return SenderKind.TRUSTED, source
        return (SenderKind.KNOWN if self._gate.knows(source) else SenderKind.STRANGER), source

    def took(self, judged: Judgement, milliseconds: float) -> None:
        """So much of the event loop's time went into a message. What was dropped at once is its sender's affair, and
        not paid for by all of its kind."""
        if judged.read or judged.refusal:
            self._accounts[judged.kind].took(judged.sender, milliseconds)

    def news(self, now: float) -> str:
        """As `Throttle.news`, of all who sent too much."""
        throttles = self._answers, *(account.messages for account in self._accounts.values())
        return "; ".join(filter(None, (one.news(now) for one in throttles)))

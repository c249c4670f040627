"""Limits on the SIP messages that are read, by the kind of sender: callers do not pay for what strangers send.

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
from voicepipe.ingress.throttle import RecentSources, Throttle

ANSWERS = Rate(200, 50), Rate(math.inf, 0)
"""Stateless answers, to one IP address and to all: the address may be forged."""
CALLS_OWN, CALL_OWES_MS = Rate(100, 50), 1000
"""Milliseconds of the event loop's time for the messages of one call, at once and a second: an honest message takes 1
ms. A debt is paid in 20 s at most, and a BYE is sent again for 32 s."""


class SenderKind(enum.Enum):
    """Kinds of senders, each with a rate of messages for one sender (at once and a second), and a rate of milliseconds
    of the event loop for all senders of the kind."""

    CALL = Rate(100, 10), Rate(math.inf, 0)
    """A call, or a transaction, that goes on: its tags and branches are secrets. Each has `CALLS_OWN`."""
    TRUSTED = Rate(1000, 400), Rate(100, 300)
    """A trunk's IP address, or this machine."""
    KNOWN = Rate(200, 50), Rate(50, 150)
    """An IP address from which a right password came lately."""
    STRANGER = Rate(200, 50), Rate(50, 100)


_UNKNOWN = SenderKind.KNOWN, SenderKind.STRANGER
"""The limits of senders that have to authenticate each time."""
_TOO_LARGE = SipRefusal(513, "Message Too Large", "it is too long, or has too many headers or parameters")


class _Account:
    def __init__(self, kind: SenderKind) -> None:
        each, milliseconds = kind.value
        self.messages = Throttle(each, Rate(math.inf, 0))
        self.milliseconds = Bucket(milliseconds)
        self._own: RecentSources[str, Bucket] | None = None
        if kind is SenderKind.CALL:
            self._own = RecentSources(lambda: Bucket(CALLS_OWN, owes=CALL_OWES_MS))

    def has_room(self, sender: str, now: float) -> bool:
        """Whether one more message of this sender may be read."""
        if self._own is not None and not self._own[sender].has(now):
            return False
        return self.messages.has_room(sender, now) and self.milliseconds.has(now)

    def took(self, sender: str, milliseconds: float) -> None:
        """Count time of the event loop that a message took."""
        self.milliseconds.take(milliseconds)
        if self._own is not None:
            self._own[sender].take(milliseconds)


class MessageVerdict(NamedTuple):
    """A decision on a message: to read it, to answer it, or to drop it."""

    kind: SenderKind
    read: bool
    refusal: SipRefusal | None = None
    """The answer to the sender, instead of reading the message."""
    sender: str = ""
    """Identifies the sender among its kind: a call by a hash, since a Call-ID has any length and any characters."""


class SipLimits:
    """Limits the SIP messages that are read, by the kind of their sender. `goes_on`: whether a message belongs to a
    call or to a transaction that we have. Times are monotonic seconds."""

    def __init__(self, access: SipAccess, goes_on: Callable[[DatagramCheck], bool]) -> None:
        self._access = access
        self._goes_on = goes_on
        self._accounts = {kind: _Account(kind) for kind in SenderKind}
        self._answers = Throttle(*ANSWERS)

    def judge(self, seen: DatagramCheck, source: str, now: float) -> MessageVerdict:
        """Decide on a message. `source`: the IP address that it came from."""
        kind, sender = self._sender(seen, source)
        account = self._accounts[kind]
        if kind in _UNKNOWN and seen.method in ("", "ACK"):  # Answers to nothing that we have said.
            return MessageVerdict(kind, read=False)
        # Whoever is over their own limit is dropped before anything is made for them at everybody's expense.
        if not account.has_room(sender, now):
            account.messages.refused(sender)
            return MessageVerdict(kind, read=False)
        refusal = _TOO_LARGE if seen.excessive else None
        if kind in _UNKNOWN:
            refusal = refusal or self._access.screen(seen, source, now)
        if refusal and not self._answers.admits(sender, now):
            account.messages.admits(sender, now)
            return MessageVerdict(kind, read=False)
        if refusal is None:
            account.messages.admits(sender, now)
        return MessageVerdict(kind, read=refusal is None, refusal=refusal, sender=sender)

    def _sender(self, seen: DatagramCheck, source: str) -> tuple[SenderKind, str]:
        if self._goes_on(seen):
            return SenderKind.CALL, f"the call {blake2b(seen.call_id.encode(), digest_size=8).hexdigest()}"
        if self._access.trusts(source):
            return SenderKind.TRUSTED, source
        return (SenderKind.KNOWN if self._access.knows(source) else SenderKind.STRANGER), source

    def took(self, judged: MessageVerdict, milliseconds: float) -> None:
        """Count time of the event loop that a message took. A message that was dropped at once counts for its sender
        only, not for all of its kind."""
        if judged.read or judged.refusal:
            self._accounts[judged.kind].took(judged.sender, milliseconds)

    def summary(self, now: float) -> str:
        """As `Throttle.summary`, of all senders that sent too much."""
        throttles = self._answers, *(account.messages for account in self._accounts.values())
        return "; ".join(filter(None, (one.summary(now) for one in throttles)))

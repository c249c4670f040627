"""Limits calls whose answer is not acknowledged: the sender of a forged INVITE never acknowledges it. Pure."""

from collections import Counter
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from voicepipe.base.token_bucket import Bucket, Rate
from voicepipe.ingress.sip.sip_access import SipRefusal, SipSender

T1_S = 0.5
"""The longest round trip in seconds (RFC 3261, 17). Our answer is sent again then."""
LEAST_S = 0.04
"""An ACK may wait for half of this in our own socket, where a flood pauses the reading."""
FORGETS = 32
"""So many faster calls make us forget two thirds of a longer time."""
UNHEARD_S = 1.5
"""Seconds after our first answer until the third is sent: no ACK has come for two."""
UNHEARD = Rate(3, 1 / 60)
"""Calls of one sender that were given up after `UNHEARD_S`. More are a sign that their INVITEs are forged."""
WAIT_S = "1"


class UnacknowledgedCall(Protocol):
    """A call whose answer may have to be acknowledged. Implemented by `SipCall`."""

    @property
    def awaits_ack(self) -> bool:
        """The answer is not acknowledged yet, and still may be."""


T = TypeVar("T", bound=UnacknowledgedCall)


class UnacknowledgedCalls(Generic[T]):
    """Calls whose answer is not acknowledged yet, which hold at most `most` of a PoP's slots, since the sender of a
    forged INVITE never acknowledges it.

    At that limit, the sender with most of these calls gives one up to another sender; to itself it gives up one that
    has waited twice as long as its calls take to be acknowledged. Below the limit, where the PoP is full all the same,
    `overdue` calls are given up. A call is answered `ring_s` after it came. Times are monotonic seconds."""

    def __init__(self, most: int, ring_s: float = 0.0) -> None:
        self._most, self._ring_s = most, ring_s
        self._calls: dict[T, tuple[SipSender, float]] = {}
        """Each call with its sender and the time since when it waits; the oldest first."""
        self._took_s: dict[SipSender, float] = {}
        """By sender: the longest time lately from our answer to the ACK. Senders are trunks and users of the
        configuration, so it does not grow."""
        self._unheard: dict[SipSender, Bucket] = {}
        """By sender: the rest of `UNHEARD`."""

    def add(self, call: T, who: SipSender, now: float) -> None:
        """Add a call of `who`; it counts until it `awaits_ack` no more, or `end`."""
        self._calls[call] = who, now

    def acknowledged(self, call: T, now: float) -> None:
        """The call's answer was acknowledged. Only its receiver can do that: its tag is a secret."""
        if call not in self._calls:
            return
        who, since = self._calls.pop(call)
        took_s = now - since - self._ring_s
        if took_s < T1_S:  # A later one shows that a packet was lost, since our answer was sent again.
            known_s = self._took_s.get(who, took_s)
            self._took_s[who] = max(took_s, known_s + (took_s - known_s) / FORGETS)

    def end(self, call: T) -> None:
        """The call is over."""
        self._calls.pop(call, None)

    def gave_way(self, call: T, now: float) -> SipSender:
        """The call is over, since another one gets its slot. Returns its sender."""
        who, since = self._calls.pop(call)
        unheard = self._unheard.setdefault(who, Bucket(UNHEARD, owes=1))
        unheard.has(now)
        if now - since >= self._ring_s + UNHEARD_S:
            unheard.take()
        return who

    def in_the_way(self, who: SipSender, now: float, busy: SipRefusal | None = None, calls: int = 0) -> T | None:
        """The call that has to end before `who` gets another slot; None: there is room. Raises SipRefusal.

        `busy`: the refusal where `who` already has all `calls` that they may have. Where most of these are not
        acknowledged, somebody forges their address, and one of them is ended. Otherwise a call may be that of a caller
        who lost a packet, and is ended once it is `overdue`."""
        self._calls = {call: entry for call, entry in self._calls.items() if call.awaits_ack}
        if len(self._calls) < self._most and not busy:
            return None
        count = Counter(sender for sender, _ in self._calls.values())
        if busy and 2 * count[who] <= calls:
            if late := self.overdue(who, now, lambda call: self._calls[call][0] == who):
                return late
            raise busy
        worst = who if busy else max(count, key=lambda sender: (count[sender], sender == who))
        call, since = next((call, since) for call, (sender, since) in self._calls.items() if sender == worst)
        if worst == who and now - since < self._patience_s(who):
            why = f"{who} has {count[who]} calls whose answers it has not acknowledged yet"
            raise busy or SipRefusal(503, "Service Unavailable", why, (("Retry-After", WAIT_S),), "too_many_requests")
        return call

    def overdue(self, who: SipSender, now: float, helps: Callable[[T], bool]) -> T | None:
        """The call that has to end before `who` gets another slot, where acknowledged calls leave fewer than `most`
        slots; None: no call is ended. `helps`: whether the end of a call makes room.

        A call that may have lost one packet is not ended. A sender that left many calls unacknowledged lately loses its
        calls as at the limit."""
        for call, (sender, since) in self._calls.items():
            patience_s = self._ring_s + UNHEARD_S
            if sender in self._unheard and not self._unheard[sender].has(now):
                patience_s = self._patience_s(who) if sender == who else 0.0
            if now - since >= patience_s and call.awaits_ack and helps(call):
                return call
        return None

    def _patience_s(self, who: SipSender) -> float:
        """Seconds from an INVITE of this sender until its next call may take its slot."""
        return self._ring_s + min(T1_S, max(LEAST_S, 2 * self._took_s.get(who, T1_S)))

"""Places of those who have not acknowledged our answer: who writes another's address on an INVITE never will. Pure."""

from collections import Counter
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from voicepipe.base.token_bucket import Bucket, Rate
from voicepipe.ingress.sip.sip_access import Admitted, SipRefusal

T1_S = 0.5
"""RFC 3261, 17: what a way there and back takes at most. Our answer is sent again then."""
LEAST_S = 0.04
"""An ACK may wait for half of this in our own socket, where a flood pauses the reading."""
FORGETS = 32
"""So many calls that were acknowledged sooner make us forget two thirds of what one took longer."""
UNHEARD_S = 1.5
"""So long after our first answer the third is sent: of two no ACK has come."""
UNHEARD = Rate(3, 1 / 60)
"""Places of one sender that were given up after such a time. More are a sign that somebody forges their INVITEs."""
WAIT_S = "1"


class Awaited(Protocol):
    """A call."""

    @property
    def awaits_ack(self) -> bool:
        """Its answer is not acknowledged yet, and may be."""


T = TypeVar("T", bound=Awaited)


class UnacknowledgedCalls(Generic[T]):
    """At most `most` of a PoP's places. Where all are lent, whoever has most of them gives one up to somebody else, and
    to themselves those that have had twice the time that their calls take to be acknowledged. Where fewer are lent and
    the PoP is full all the same, `overdue` ones are given up. A call is answered `ring_s` after it came. Times are
    monotonic seconds."""

    def __init__(self, most: int, ring_s: float = 0.0) -> None:
        self._most, self._ring_s = most, ring_s
        self._lent: dict[T, tuple[Admitted, float]] = {}
        """Since when; the oldest first."""
        self._took_s: dict[Admitted, float] = {}
        """The longest from our answer to their ACK lately. They are trunks and users of the configuration, so it does
        not grow."""
        self._unheard: dict[Admitted, Bucket] = {}
        """What is left of `UNHEARD`."""

    def lend(self, call: T, who: Admitted, now: float) -> None:
        """`who` has it until it `awaits_ack` no more, or `end`."""
        self._lent[call] = who, now

    def acknowledged(self, call: T, now: float) -> None:
        """Our answer was. Only who received it can do that: its tag is a secret."""
        if call not in self._lent:
            return
        who, since = self._lent.pop(call)
        took_s = now - since - self._ring_s
        if took_s < T1_S:  # A later one tells of a packet that was lost, since our answer was sent again.
            known_s = self._took_s.get(who, took_s)
            self._took_s[who] = max(took_s, known_s + (took_s - known_s) / FORGETS)

    def end(self, call: T) -> None:
        """It is over."""
        self._lent.pop(call, None)

    def gave_way(self, call: T, now: float) -> None:
        """It is over, since somebody else gets its place."""
        who, since = self._lent.pop(call)
        unheard = self._unheard.setdefault(who, Bucket(UNHEARD, owes=1))
        unheard.has(now)
        if now - since >= self._ring_s + UNHEARD_S:
            unheard.take()

    def in_the_way(self, who: Admitted, now: float, busy: SipRefusal | None = None, calls: int = 0) -> T | None:
        """The call that has to end before `who` gets another place; None: there is room. Raises SipRefusal.

        `busy`: they have all calls that they may have, which are `calls`, and are told so. Where most of these are not
        acknowledged, somebody forges their address, and one of them gives way. Otherwise it may be that of a caller
        who lost a packet, and gives way once it is `overdue`."""
        self._lent = {call: lent for call, lent in self._lent.items() if call.awaits_ack}
        if len(self._lent) < self._most and not busy:
            return None
        count = Counter(borrower for borrower, _ in self._lent.values())
        if busy and 2 * count[who] <= calls:
            if late := self.overdue(who, now, lambda call: self._lent[call][0] == who):
                return late
            raise busy
        worst = who if busy else max(count, key=lambda borrower: (count[borrower], borrower == who))
        call, since = next((call, since) for call, (borrower, since) in self._lent.items() if borrower == worst)
        if worst == who and now - since < self._patience_s(who):
            why = f"{who} has {count[who]} calls whose answers it has not acknowledged yet"
            raise busy or SipRefusal(503, "Service Unavailable", why, (("Retry-After", WAIT_S),), "too_many_requests")
        return call

    def overdue(self, who: Admitted, now: float, helps: Callable[[T], bool]) -> T | None:
        """The call that has to end before `who` gets another place, where calls that go on take so many that fewer than
        `most` are left to lend; None: nobody gives way. `helps`: whether the end of a call makes room.

        Nobody does who may have lost one packet. Whoever left many unacknowledged lately gives way as at the limit."""
        for call, (borrower, since) in self._lent.items():
            patience_s = self._ring_s + UNHEARD_S
            if borrower in self._unheard and not self._unheard[borrower].has(now):
                patience_s = self._patience_s(who) if borrower == who else 0.0
            if now - since >= patience_s and call.awaits_ack and helps(call):
                return call
        return None

    def _patience_s(self, who: Admitted) -> float:
        """From an INVITE of theirs until another one of theirs may take its place."""
        return self._ring_s + min(T1_S, max(LEAST_S, 2 * self._took_s.get(who, T1_S)))

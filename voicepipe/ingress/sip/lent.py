"""Places of those who have not acknowledged our answer: who writes another's address on an INVITE never will. Pure."""

from collections import Counter
from typing import Generic, Protocol, TypeVar

from voicepipe.ingress.sip.gate import Admitted, Refusal

T1_S = 0.5
"""RFC 3261, 17: what a way there and back takes at most. Our answer is sent again then."""
WAIT_S = "1"


class Awaited(Protocol):
    """A call."""

    @property
    def settled(self) -> bool:
        """Its answer was acknowledged, or never will be."""


T = TypeVar("T", bound=Awaited)


class Lent(Generic[T]):
    """At most `most` of a PoP's places. Where all are lent, whoever has most of them gives one up to somebody else, and
    to themselves those that have had `patience_s` to be acknowledged. Times are monotonic seconds."""

    def __init__(self, most: int, patience_s: float) -> None:
        self._most, self._patience_s = most, patience_s
        self._lent: dict[T, tuple[Admitted, float]] = {}
        """Since when; the oldest first."""

    def lend(self, call: T, who: Admitted, now: float) -> None:
        """`who` has it until it is settled, or `end`."""
        self._lent[call] = who, now

    def end(self, call: T) -> None:
        """It is over."""
        self._lent.pop(call, None)

    def in_the_way(self, who: Admitted, now: float) -> T | None:
        """The call that has to end before `who` gets another place; None: there is room. Raises Refusal."""
        self._lent = {call: lent for call, lent in self._lent.items() if not call.settled}
        if len(self._lent) < self._most:
            return None
        count = Counter(holder for holder, _ in self._lent.values())
        worst = max(count, key=lambda holder: (count[holder], holder == who))
        call, since = next((call, since) for call, (holder, since) in self._lent.items() if holder == worst)
        if worst == who and now - since < self._patience_s:
            why = f"{who} has {count[who]} calls whose answers it has not acknowledged yet"
            raise Refusal(503, "Service Unavailable", why, (("Retry-After", WAIT_S),))
        return call

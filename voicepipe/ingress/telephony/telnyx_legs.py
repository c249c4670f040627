"""Telnyx's calls to the parties to whom callers are transferred, and which call ends with which.

Every attempt has a state of its own, which the webhooks of its leg repeat: what becomes of one that was given up is not
mistaken for the outcome of the next.
"""

import asyncio
from base64 import b64encode
from dataclasses import dataclass, field

from voicepipe.base.errors import TransferFailed


@dataclass(slots=True)
class Leg:
    """One attempt to transfer `call_id` to another party. `taken`: done once the party has answered, or never will."""

    call_id: str
    state: str
    taken: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    bridged: bool = False
    orphaned: bool = False
    """The caller's stream has ended."""


class Legs:
    """Attempts to transfer calls that may still be answered, or were and are not over. `mark`: the beginning of their
    states."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._legs: dict[str, Leg] = {}
        self._attempts = 0

    def begin(self, call_id: str) -> Leg:
        """Begin an attempt."""
        self._attempts += 1
        leg = Leg(call_id, b64encode(f"{self._mark} {self._attempts} {call_id}".encode()).decode())
        self._legs[leg.state] = leg
        return leg

    def forget(self, leg: Leg) -> None:
        """Forget an attempt that was not even dialled."""
        self._legs.pop(leg.state, None)

    def bridged(self, call_id: str, state: str) -> None:
        """The party has answered, by a report for either side of the call. Also for an attempt that was given up
        already."""
        leg = self._legs.get(state) or self._last(call_id)
        if leg:
            leg.bridged = True
            if not leg.taken.done():
                leg.taken.set_result(None)

    def hung_up(self, call_id: str, state: str, cause: str) -> str:
        """A caller or a party has hung up. Returns the caller who must be hung up for it; empty: none."""
        if leg := self._legs.pop(state, None):
            if leg.bridged or leg.orphaned:
                return leg.call_id
            if not leg.taken.done():
                leg.taken.set_exception(TransferFailed(f"nobody took the call ({cause or 'no reason given'})"))
            return ""
        self._legs = {state: leg for state, leg in self._legs.items() if leg.call_id != call_id}
        return ""

    def keep(self, call_id: str, *, transferred: bool) -> bool:
        """The caller's stream has ended. Returns whether the call goes on without us: the party has answered, or, if
        the stream ended as `transferred`, may yet."""
        leg = self._last(call_id)
        if leg is None or not (leg.bridged or transferred):
            return False
        leg.orphaned = True
        return True

    def _last(self, call_id: str) -> Leg | None:
        return next((leg for leg in reversed(self._legs.values()) if leg.call_id == call_id), None)

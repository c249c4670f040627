"""A PoP whose turns fail: of what directories would send it, what share it wants. Pure but for the clock that is given.

Admission (D19) closes a PoP whose turns fail, too, but it needs ten turns, which two callers have after half a minute.
And it opens again all at once.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from voicepipe.observe.following import CallFacts, CallFollower
from voicepipe.observe.turns import FullTurn

WINDOW_S = 8.0
"""Turns that ended within it are judged; while it recovers, all that ended since it began to."""
FEWEST = 2
"""Turns that failed, and calls that had one. What fails in one call alone may be its own fault."""
PART = 0.25
"""Of the turns: it fails if more than so many did. Of 60 calls half of whose turns fail, this is seen after 4 s."""
WELL = 4
"""So many turns of other agents or tenants, all of them well, show that the fault is one agent's or tenant's own."""
MOST = 256
"""Turns that are judged; more than a PoP has within the window."""
PAUSE_S = 10.0
"""It gets no calls until it has let callers in, and none of its turns has failed it, for so long."""
FIRST = 0.05
"""The share that it gets then,"""
STEP_S = 10.0
"""and twice as much after each further step of this length."""


class _Ended(NamedTuple):
    """A turn."""

    at: float
    call: str
    tenant: str
    agent: str
    failed: bool


class FailingTurns(CallFollower):
    """`clock` gives monotonic seconds. Turns that an engine refused, being well, say nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turns: deque[_Ended] = deque(maxlen=MOST)
        self._since: float | None = None
        """Its turns failed last, or it let nobody in; None: all is well."""

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        if full.record.refused:
            return
        now = self._clock()
        self._turns.append(_Ended(now, call.id, call.tenant, call.agent, full.turn.missed))
        while self._since is None and self._turns[0].at < now - WINDOW_S:
            self._turns.popleft()
        if self._fails():
            self._since = now
            self._turns.clear()  # What comes now is judged by itself.

    def share(self, lets_in: bool) -> float:
        """0..1. `lets_in`: whether the PoP takes calls otherwise; while it takes none, it does not recover."""
        if self._since is None:
            return 1.0
        now = self._clock()
        if not lets_in:
            self._since = now
        steps = (now - self._since - PAUSE_S) // STEP_S
        share = FIRST * 2**steps if steps >= 0 else 0.0
        if share >= 1:
            self._since = None
            return 1.0
        return share

    def _fails(self) -> bool:
        failed = [turn for turn in self._turns if turn.failed]
        calls = {turn.call for turn in failed}
        if len(calls) < FEWEST or len(failed) <= PART * len(self._turns):
            return False
        return not any(self._is_own(failed, whose) for whose in ("tenant", "agent"))

    def _is_own(self, failed: list[_Ended], whose: str) -> bool:
        """Whether all that failed is one tenant's, or one agent's, while those of others are well."""
        names = {getattr(turn, whose) for turn in failed}
        return len(names) == 1 and sum(getattr(turn, whose) not in names for turn in self._turns) >= WELL

"""The share of calls that a PoP wants from directories when its turns fail. Pure except for the clock.

Admission (`pop/admission.py`) closes a PoP whose turns fail, too, but it needs ten turns, which two callers have after
half a minute. And it opens again all at once.
"""

import math
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from voicepipe.observe.call_followers import CallFacts, CallFollower
from voicepipe.observe.last_turns import FullTurn

WINDOW_S = 8.0
"""Seconds in which turns that ended are judged; while the PoP recovers, also all that ended since it began to."""
FEWEST = 2
"""Fewest turns that failed, and fewest calls that had one. Failures in a single call may be its own fault."""
PART = 0.25
"""Part of the turns: the PoP fails if more than that failed. Where half the turns of 60 calls fail, this is seen after
4 s."""
WELL = 4
"""So many good turns of others, while none of theirs failed, show that the fault is one agent's or tenant's own."""
LOOKS_BACK_S = 60.0
"""Seconds in which those turns ended, the last within `WINDOW_S`: others who called long ago prove nothing."""
MOST = 1024
"""Turns that are kept; more than a PoP has within a minute."""
PAUSE_S = 10.0
"""Seconds without calls: the PoP has admitted callers, and none of its turns has failed, for so long. Each time that it
fails again while it had a share, this doubles."""
LONGEST_PAUSE_S = 300.0
"""Seconds of the longest such pause."""
FORGIVEN_S = 600.0
"""Seconds without a failure after which the next pause is a short one again."""
FIRST = 0.05
"""The share of calls after a pause. It doubles, again and again."""
STEP_S = 10.0
"""Seconds that the PoP must have had this share before it doubles."""
EVIDENCE = 2
"""Good turns that are needed before it doubles, of calls that began since it failed."""


class _Ended(NamedTuple):
    at: float
    call: str
    tenant: str
    agent: str
    failed: bool


class FailingTurns(CallFollower):
    """Finds out whether the turns of a PoP fail, and what share of calls it should get. `clock` gives monotonic
    seconds. Turns that an engine refused, being well, have no effect."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turns: deque[_Ended] = deque(maxlen=MOST)
        self._share = 1.0
        self._changes_at = 0.0
        """The earliest second at which the share grows."""
        self._failed_at = self._well_since = -math.inf
        self._pause_s = PAUSE_S
        """The length of the next pause."""
        self._new: set[str] = set()
        """Calls in progress that began since it failed."""
        self._went_well = 0
        """Their good turns since its share last changed."""

    def began(self, call: CallFacts) -> None:
        if self._share < 1:
            self._new.add(call.id)

    def left(self, call: CallFacts) -> None:
        self._new.discard(call.id)

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        if full.record.refused:
            return
        now, failed = self._clock(), full.turn.missed
        self._turns.append(_Ended(now, call.id, call.tenant, call.agent, failed))
        if not failed:
            self._went_well += call.id in self._new
        elif self._fails(now):
            self._shut(now)

    def share(self, lets_in: bool) -> float:
        """The share (0..1) that the PoP should get; it grows with these calls, of which there is one a second.
        `lets_in`: whether the PoP takes calls otherwise; while it takes none, it does not recover."""
        now = self._clock()
        if self._share < 1 and not lets_in:
            self._share, self._changes_at = 0.0, max(self._changes_at, now + PAUSE_S)
        elif self._share < 1 and now >= self._changes_at and (not self._share or self._went_well >= EVIDENCE):
            self._share = min(1.0, 2 * self._share or FIRST)
            self._changes_at, self._went_well = now + STEP_S, 0
            if self._share == 1:
                self._well_since = now
                self._new.clear()
        return self._share

    def _shut(self, now: float) -> None:
        if self._share == 1 and now - self._well_since >= FORGIVEN_S:
            self._pause_s = PAUSE_S
        elif self._share:
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._share, self._went_well = 0.0, 0
        self._failed_at, self._changes_at = now, now + self._pause_s
        self._new.clear()

    def _fails(self, now: float) -> bool:
        """Whether it fails, by the last turns, or by those since it began to recover: of rare calls no two fail within
        seconds."""
        since = max(self._failed_at, now - WINDOW_S)
        return self._failed_since(since, now) or (self._share < 1 and self._failed_since(self._failed_at, now))

    def _failed_since(self, since: float, now: float) -> bool:
        judged = [turn for turn in self._turns if turn.at > since]
        failed = [turn for turn in judged if turn.failed]
        calls = {turn.call for turn in failed}
        if len(calls) < FEWEST or len(failed) <= PART * len(judged):
            return False
        return not any(self._is_own(failed, whose, now) for whose in ("tenant", "agent"))

    def _is_own(self, failed: list[_Ended], whose: str, now: float) -> bool:
        """Whether all that failed is one tenant's, or one agent's, while turns of others are well."""
        names = {getattr(turn, whose) for turn in failed}
        others = (turn for turn in self._turns if not turn.failed and getattr(turn, whose) not in names)
        well = [turn.at for turn in others if turn.at > now - LOOKS_BACK_S]
        return len(names) == 1 and len(well) >= WELL and well[-1] > now - WINDOW_S

"""Would one more call still be answered in time? Judged by how the turns of the last minute went.

Counting slots does not see a GPU that something else slows down, or turns that are longer than usual. So a PoP also
predicts the turn latency that one more call would bring, and refuses where that is over its budget: one caller who is
sent elsewhere rather than all of them waiting. Only the engines' time is counted, never how long callers hesitate.
"""

import math
from collections import deque

from voicepipe.turn.events import ReplyDone

NOMINAL_MS = 160.0
"""Turn latency when the engines are fast enough: the silence that a complete sentence requires, and handing over."""
BEFORE_COMPUTE_MS = 80.0
"""From the caller's last voiced sample to *prepare*, with the words of that moment."""
WINDOW_S = 60.0
FEWEST = 20
"""Turns within the window; of fewer, the slowest one in twenty says nothing."""
SLOWING = 0.25
"""At full load engines take a quarter longer than when idle, growing with the square of the load."""


def slowing(load: float) -> float:
    """How much longer engines take at `load` (calls per slot) than when idle: a factor of 1 or more."""
    return 1 + SLOWING * load * load


def latency_ms(compute_ms: float) -> float:
    """The turn latency that so much compute makes: the wait for a turn's end hides most of it."""
    return max(NOMINAL_MS, BEFORE_COMPUTE_MS + compute_ms)


def engines_ms(reply: ReplyDone, failed_ms: float) -> float | None:
    """What the engines took from *prepare* to the reply's first sound; None if it says nothing of them.

    Only answers to what a caller said do, and those that ran no tool. One that failed counts as `failed_ms`.
    """
    record = reply.record
    if "at_words" not in record or record.get("tool"):
        return None
    if reply.status == "failed" or record.get("ladder") == "fallback":
        return failed_ms
    compute: float | None = record.get("compute")
    return compute


class Admission:
    """What turns cost lately. Times are monotonic seconds, given by whoever calls; no clock inside."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._turns: deque[tuple[float, float]] = deque()
        """When each ended, and its compute in ms: *prepare* to the first sound of the reply."""

    def note(self, now: float, compute_ms: float) -> None:
        """A turn was answered."""
        self._turns.append((now, compute_ms))
        self._forget(now)

    def predicted_ms(self, now: float, calls: int) -> float:
        """95th percentile of turn latency, in ms, that one call more than `calls` would bring."""
        self._forget(now)
        if len(self._turns) < FEWEST:
            return NOMINAL_MS
        computes = sorted(compute for _, compute in self._turns)
        p95 = computes[math.ceil(0.95 * len(computes)) - 1]
        growth = slowing((calls + 1) / self._slots) / slowing(calls / self._slots)
        return latency_ms(p95 * growth)

    def _forget(self, now: float) -> None:
        while self._turns and self._turns[0][0] < now - WINDOW_S:
            self._turns.popleft()

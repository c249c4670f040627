"""Would one more call still be answered in time? Judged by how the turns of the last minute went.

Counting slots does not see a GPU that something else slows down, or turns that are longer than usual. So a PoP also
predicts the turn latency that one more call would bring, and refuses where that is over its budget: one caller who is
sent elsewhere rather than all of them waiting. Only the engines' time is counted, never how long callers hesitate.
"""

import math
from collections import deque
from collections.abc import Iterable

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

    Only answers to what a caller said do, and those that ran no tool. One that failed counts as `failed_ms`, unless the
    engine is well and does not take what it was asked: then another answer would not have come faster.
    """
    record = reply.record
    if "at_words" not in record or record.get("tool") or record.get("refused"):
        return None
    if reply.status == "failed" or record.get("ladder") == "fallback":
        return failed_ms
    compute: float | None = record.get("compute")
    return compute


class Admission:
    """What turns cost lately, and whose they were. Times are monotonic seconds, given by who calls; no clock inside.

    A tenant is judged by its own turns and by everybody's. Of the others', those of the one with the slowest are left
    out: what makes only that tenant's replies late or fail is its own affair, and keeps nobody else out.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._turns: deque[tuple[float, str, float]] = deque()
        """When each ended, whose it was, and its compute in ms: *prepare* to the first sound of the reply."""
        self._computed: dict[str | None, float] = {}
        """What these turns say for a tenant: asked for by every caller and every look at the PoP's health."""

    def note(self, now: float, tenant: str, compute_ms: float) -> None:
        """A turn was answered."""
        self._turns.append((now, tenant, compute_ms))
        self._computed.clear()
        self._forget(now)

    def predicted_ms(self, now: float, calls: int, tenant: str | None = None) -> float:
        """95th percentile of turn latency, in ms, if `tenant` placed one more call beside `calls`; None: a tenant from
        whom no turn is known."""
        self._forget(now)
        compute_ms = self._computed.get(tenant)
        if compute_ms is None:
            own = _p95(ms for _, whose, ms in self._turns if whose == tenant)
            compute_ms = self._computed[tenant] = max(own, self._shared(tenant))
        growth = slowing((calls + 1) / self._slots) / slowing(calls / self._slots)
        return latency_ms(compute_ms * growth)

    def _shared(self, tenant: str | None) -> float:
        """What everybody's turns say, without those of the worst other tenant; with one tenant alone, all of them."""
        tenants = {whose for _, whose, _ in self._turns}
        if len(tenants | {tenant} - {None}) < 2:
            return _p95(ms for _, _, ms in self._turns)
        return min(_p95(ms for _, whose, ms in self._turns if whose != other) for other in tenants - {tenant})

    def _forget(self, now: float) -> None:
        while self._turns and self._turns[0][0] < now - WINDOW_S:
            self._turns.popleft()
            self._computed.clear()


def _p95(computes: Iterable[float]) -> float:
    """Their 95th percentile; 0: they are too few to say anything."""
    ordered = sorted(computes)
    return ordered[math.ceil(0.95 * len(ordered)) - 1] if len(ordered) >= FEWEST else 0.0

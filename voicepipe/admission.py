"""Would one more call still be answered in time? Judged by how the turns of the last minute went.

Counting slots does not see a GPU that something else slows down, or turns that are longer than usual. So a PoP also
predicts the turn latency that one more call would bring, and refuses where that is over its budget: one caller who is
sent elsewhere rather than all of them waiting. Only the engines' time is counted, never how long callers hesitate. How
many calls it holds in time it finds by trying (`call_limit.py`).
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import NamedTuple

from voicepipe.call_limit import CallLimit
from voicepipe.turn.events import ReplyDone

NOMINAL_MS = 160.0
"""Turn latency when the engines are fast enough: the silence that a complete sentence requires, and handing over."""
BEFORE_COMPUTE_MS = 80.0
"""From the caller's last voiced sample to *prepare*, with the words of that moment."""
WINDOW_S = 60.0
FEWEST = 10
"""Turns within the window; fewer say nothing."""
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


class Turn(NamedTuple):
    """One that was answered."""

    at: float
    tenant: str
    call: str
    compute_ms: float
    """From *prepare* to the first sound of the reply."""


class Calls(NamedTuple):
    """In progress."""

    all: int
    own: int
    """Of the tenant in question."""


class Admission:
    """What turns cost lately, and whose they were. Times are monotonic seconds, given by who calls; no clock inside.

    A tenant is judged by its own turns and by everybody's. Each time the worst is left out: of its own turns those of
    one call, of everybody's those of one other tenant, or of one call where the PoP has one tenant (`alone`). What
    makes only that call's or that tenant's replies late or fail is its own affair, and keeps nobody else out.
    """

    def __init__(self, slots: int, budget_ms: float, *, alone: bool = True) -> None:
        self._slots, self._alone = slots, alone
        self._turns: deque[Turn] = deque()
        self._computed: dict[str | None, float] = {}
        """What these turns say for a tenant: asked for by every caller and every look at the PoP's health."""
        self._limit = CallLimit(slots, budget_ms)
        self._own = defaultdict[str, CallLimit](lambda: CallLimit(slots, budget_ms))
        """By tenant."""

    def note(self, turn: Turn, calls: Calls) -> None:
        """A turn was answered, beside so many calls."""
        self._turns.append(turn)
        self._computed.clear()
        self._forget(turn.at)
        own = self._own[turn.tenant]
        for limit, compute_ms, among in (
            (self._limit, self._shared(None), calls.all),
            (own, self._owned(turn.tenant), calls.own),
        ):
            limit.judge(turn.at, latency_ms(compute_ms) if compute_ms else None, among)

    def predicted_ms(self, now: float, calls: Calls, tenant: str | None = None) -> float:
        """95th percentile of turn latency, in ms, if `tenant` placed one more call beside `calls`; None: a tenant from
        whom no turn is known."""
        self._forget(now)
        compute_ms = self._computed.get(tenant)
        if compute_ms is None:
            own_ms = self._owned(tenant) if tenant else 0.0
            compute_ms = self._computed[tenant] = max(own_ms, self._shared(tenant))
        growth = slowing((calls.all + 1) / self._slots) / slowing(calls.all / self._slots)
        own_limit = self._own.get(tenant) if tenant else None
        least_ms = own_limit.least_ms(now, calls.own) if own_limit else 0.0
        return max(latency_ms(compute_ms * growth), self._limit.least_ms(now, calls.all), least_ms)

    def _owned(self, tenant: str) -> float:
        """What a tenant's turns say of it, in ms of compute; 0: nothing."""
        since = self._own[tenant].since
        return _without_worst([turn for turn in self._turns if turn.tenant == tenant and turn.at >= since])

    def _shared(self, tenant: str | None) -> float:
        """What everybody's turns say to `tenant`, in ms of compute; 0: nothing."""
        turns = [turn for turn in self._turns if turn.at >= self._limit.since]
        if self._alone:
            return _without_worst(turns)
        others = {turn.tenant for turn in turns} - {tenant}
        return min((_p95(turn.compute_ms for turn in turns if turn.tenant != other) for other in others), default=0.0)

    def _forget(self, now: float) -> None:
        while self._turns and self._turns[0].at < now - WINDOW_S:
            self._turns.popleft()
            self._computed.clear()


def _without_worst(turns: list[Turn]) -> float:
    """What they say without the one call that makes them look worst: one of those with a turn among the slowest."""
    slowest = sorted(turns, key=lambda turn: turn.compute_ms)[-max(1, len(turns) // 20 + 1) :]
    return min(
        (_p95(turn.compute_ms for turn in turns if turn.call != worst) for worst in {turn.call for turn in slowest}),
        default=0.0,
    )


def _p95(computes: Iterable[float]) -> float:
    """Their 95th percentile, and never the slowest one; 0: they are too few to say anything."""
    ordered = sorted(computes)
    count = len(ordered)
    return ordered[min(math.ceil(0.95 * count), count - 1) - 1] if count >= FEWEST else 0.0

"""The figures of a PoP's last 5 minutes, for its reports to directories. A report goes out every second, so turns are
counted as they end, and the figures are made every few seconds only."""

import time
from array import array
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from voicepipe.observe.call_followers import CallFacts, CallFollower
from voicepipe.observe.last_turns import FullTurn
from voicepipe.observe.turn_figures import percentile_ms

STEP_S = 10.0
STEPS = 30
"""Steps of ten seconds that make up the 5 minutes."""
KEPT_S = 5.0
"""Seconds for which figures are kept before they are made again."""


class RecentTurns(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a PoP's turns of the last 5 minutes, of all tenants. Operators see them; they change no choice."""

    turns: int = 0
    timed: int = 0
    """Turns with a latency."""
    judged: int = 0
    """Timed turns that could be late: the client had not said how long to wait."""
    p50_ms: float | None = None
    """Median latency; None: no turn was timed."""
    p95_ms: float | None = None
    late: int = 0
    cut_ins: int = 0
    """Replies that began before the caller had finished."""
    missed: int = 0
    """Turns whose reply failed, or was the fallback."""
    lag_ms: float = 0.0
    """How late the event loop is: 99th percentile of the last half minute."""


@dataclass(slots=True)
class _Step:
    """The turns whose replies ended within ten seconds."""

    number: int
    counts: Counter[str] = field(default_factory=Counter)
    """By the names of `RecentTurns`' fields."""
    latencies_ms: "array[float]" = field(default_factory=lambda: array("f"))


class RecentTurnCounts(CallFollower):
    """Counts the turns of the last 5 minutes, of all tenants together. `lag_ms` gives the event loop's lag; `clock`
    monotonic seconds."""

    def __init__(self, lag_ms: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._lag_ms = lag_ms
        self._clock = clock
        self._steps: deque[_Step] = deque(maxlen=STEPS)
        self._figures = RecentTurns()
        self._until = clock()
        """The figures are made again after this moment."""

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        step, turn = self._step(), full.turn
        # Whole numbers: a Counter keeps the first value as it is, and directories read no report with "true" in it.
        step.counts.update(turns=1, late=int(turn.late), cut_ins=int(turn.cut_in), missed=int(turn.missed))
        if turn.latency_ms is not None:
            step.latencies_ms.append(turn.latency_ms)
            step.counts["judged"] += not turn.by_request

    def cut_in(self, call: CallFacts, full: FullTurn) -> None:
        self._step().counts["cut_ins"] += 1

    def figures(self) -> RecentTurns:
        """The figures, at most `KEPT_S` old."""
        now = self._clock()
        if now >= self._until:
            self._until = now + KEPT_S
            self._figures = self._added_up(int(now // STEP_S))
        return self._figures

    def _step(self) -> _Step:
        number = int(self._clock() // STEP_S)
        if not self._steps or self._steps[-1].number != number:
            self._steps.append(_Step(number))
        return self._steps[-1]

    def _added_up(self, number: int) -> RecentTurns:
        steps = [step for step in self._steps if step.number > number - STEPS]
        latencies = sorted(chain.from_iterable(step.latencies_ms for step in steps))
        counts = sum((step.counts for step in steps), Counter[str]())
        p50_ms, p95_ms = percentile_ms(latencies, 50), percentile_ms(latencies, 95)
        return RecentTurns(
            **counts, timed=len(latencies), p50_ms=p50_ms, p95_ms=p95_ms, lag_ms=round(self._lag_ms(), 1)
        )

"""Would one more call still be answered in time? Judged by how the turns of the last minute went.

Counting slots does not see a GPU that something else slows down, or turns that are longer than usual. So a PoP also
predicts the turn latency that one more call would bring, and refuses where that is over its budget: one caller who is
sent elsewhere rather than all of them waiting. Only the engines' time is counted, never how long callers hesitate. How
many calls it holds in time it finds by trying (`call_limit.py`).
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from voicepipe.conversation.events import ReplyDone
from voicepipe.pop.call_limit import CallLimit
from voicepipe.sizing.prediction import latency_ms, slowing

WINDOW_S = 60.0
FEWEST = 10
"""Fewest turns within the window; fewer prove nothing."""


def engines_ms(reply: ReplyDone, failed_ms: float) -> float | None:
    """The engines' time from *prepare* to the reply's first sound, in ms; None if a turn does not show it. Only answers
    to a caller's words do, and those that ran no tool. One that failed counts as `failed_ms`, unless the engine is well
    and refused the request: then another answer would not have come faster."""
    record = reply.record
    if record.at_words is None or record.tool or record.refused:
        return None
    if reply.status == "failed" or record.ladder == "fallback":
        return failed_ms
    return record.compute


def is_broken(reply: ReplyDone) -> bool:
    """Whether an engine failed, or was given up, rather than being overloaded."""
    return reply.record.broken or reply.record.ladder == "fallback"


class AnsweredTurn(NamedTuple):
    """A turn that was answered."""

    at: float
    tenant: str
    call: str
    compute_ms: float
    """Time from *prepare* to the first sound of the reply."""
    broken: bool = False
    """Its engine failed."""


class CallCounts(NamedTuple):
    """Numbers of calls in progress."""

    all: int
    own: int
    """Those of the tenant in question."""


class Admission:
    """Predicts from the turns of the last minute whether one more call would be answered in time. Times are monotonic
    seconds, passed in; no clock inside.

    A tenant is judged by its own turns and by everybody's. Each time the worst is left out: of its own turns those of
    one call, and of a tenth of its calls where those are mostly late; of everybody's those of one other tenant, or of
    such calls where the PoP has one tenant (`alone`). A cause that makes only some callers' replies late or fail keeps
    no other caller out."""

    def __init__(self, slots: int, budget_ms: float, *, alone: bool = True) -> None:
        self._slots, self._budget_ms, self.alone = slots, budget_ms, alone
        self._turns: deque[AnsweredTurn] = deque()
        self._computed: dict[str | None, float] = {}
        """Predictions for tenants: every caller and every look at the PoP's health asks for them."""
        self._limit = CallLimit(slots, budget_ms)
        self._own = defaultdict[str, CallLimit](lambda: CallLimit(slots, budget_ms))
        """Limits by tenant."""

    def note(self, turn: AnsweredTurn, calls: CallCounts) -> None:
        """A turn was answered, beside so many calls."""
        self._turns.append(turn)
        self._computed.clear()
        self._forget(turn.at)
        own = self._own[turn.tenant]
        mine = [other for other in self._turns if other.tenant == turn.tenant]
        self._judge(self._limit, turn.at, calls.all, self._turns, self._shared(None))
        self._judge(own, turn.at, calls.own, mine, self._owned(turn.tenant))

    def _judge(
        self, limit: CallLimit, now: float, calls: int, turns: Iterable[AnsweredTurn], compute_ms: float
    ) -> None:
        """Judge by the turns' `compute_ms`; 0: they are too few."""
        late = [turn for turn in turns if turn.at >= limit.since and self._is_late(turn)]
        broken = 2 * sum(turn.broken for turn in late) > len(late)
        limit.judge(now, latency_ms(compute_ms) if compute_ms else None, calls, broken=broken)

    def _is_late(self, turn: AnsweredTurn) -> bool:
        return latency_ms(turn.compute_ms) > self._budget_ms

    def predicted_ms(self, now: float, calls: CallCounts, tenant: str | None = None) -> float:
        """95th percentile of turn latency, in ms, if `tenant` placed one more call beside `calls`; None: a tenant
        without turns so far."""
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
        """A tenant's own turns, in ms of compute; 0: too few."""
        since = self._own[tenant].since
        return self._without_worst([turn for turn in self._turns if turn.tenant == tenant and turn.at >= since])

    def _shared(self, tenant: str | None) -> float:
        """Everybody's turns, as they count for `tenant`, in ms of compute; 0: too few."""
        turns = [turn for turn in self._turns if turn.at >= self._limit.since]
        if self.alone:
            return self._without_worst(turns)
        slowest, others = _slowest_first(turns), {turn.tenant for turn in turns} - {tenant}
        return min((_p95([turn for turn in slowest if turn.tenant != other]) for other in others), default=0.0)

    def _without_worst(self, turns: Sequence[AnsweredTurn]) -> float:
        """The compute of turns without the worst tenth of the calls, one at least: those whose turns are mostly late,
        and one of those with a turn among the slowest. Their own prompts may be what makes them slow."""
        mostly = self._mostly_late(turns)
        slowest = _slowest_first(turn for turn in turns if turn.call not in mostly)
        counts = Counter(turn.call for turn in slowest)
        suspects = {turn.call for turn in slowest[: len(slowest) // 20 + 1]}
        return min((_p95(slowest, call, counts[call]) for call in suspects), default=0.0)

    def _mostly_late(self, turns: Sequence[AnsweredTurn]) -> set[str]:
        """Calls most of whose turns were late: one fewer than a tenth of all calls, at most."""
        all_turns = Counter(turn.call for turn in turns)
        late = Counter(turn.call for turn in turns if self._is_late(turn))
        mostly = [call for call, number in late.most_common() if 2 * number > all_turns[call]]
        return set(mostly[: max(0, len(all_turns) // 10 - 1)])

    def _forget(self, now: float) -> None:
        while self._turns and self._turns[0].at < now - WINDOW_S:
            self._turns.popleft()
            self._computed.clear()


def _slowest_first(turns: Iterable[AnsweredTurn]) -> list[AnsweredTurn]:
    return sorted(turns, key=lambda turn: -turn.compute_ms)


def _p95(slowest_first: Sequence[AnsweredTurn], without: str = "", turns: int = 0) -> float:
    """The 95th percentile of their compute, and never the slowest; 0: they are too few. `without` one call, which has
    so many `turns`. Only the slowest are looked at, since this is computed for many calls."""
    count = len(slowest_first) - turns
    if count < FEWEST:
        return 0.0
    others = (turn for turn in slowest_first if turn.call != without)
    return next(islice(others, count - min(math.ceil(0.95 * count), count - 1), None)).compute_ms

"""What the operator's dashboard shows of one PoP, kept while calls go on and put together when somebody looks."""

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import partial

import msgspec

from voicepipe.base.caller_number import same_number
from voicepipe.base.errors import Reason
from voicepipe.call_api import NO_TENANT, Refusal
from voicepipe.config import PopConfig
from voicepipe.config.pop_config import USUAL, RedactionConfig
from voicepipe.health import Health
from voicepipe.observe.call_followers import UNTRACED, CallFollower, CallTracer
from voicepipe.observe.calls import CallRow, LiveCall, LiveCalls
from voicepipe.observe.cost import HostCost
from voicepipe.observe.delay_causes import DelayCause, PopMeasurements, delay_causes
from voicepipe.observe.external_metrics import vllm_loads
from voicepipe.observe.last_turns import FullTurn, LastTurns, ListedTurn
from voicepipe.observe.refusals import NOT_ADMITTED, RefusalCounts
from voicepipe.observe.turn_figures import Figures, TimeBucket, axis, figures, over_time, share, upper_bound
from voicepipe.observe.turn_waits import waits
from voicepipe.operator_views import CallSelection, Deleted

JUDGED = 50
"""Late turns from which causes are found, the newest ones."""
LISTED = 300
"""Turns that are listed, the newest ones."""


class TurnRates(msgspec.Struct, kw_only=True):
    """Rates from 0 to 1; None where there are no turns."""

    late: float | None
    """Late ones among the timed turns that could be late."""
    missed: float | None
    cut_in: float | None
    cut_in_bound: float | None
    """One-sided upper 95 % bound."""


class DashboardView(msgspec.Struct, kw_only=True):
    """Body of GET /v1/dashboard. Times are Unix seconds."""

    pop: str
    region: str
    status: str
    """ "starting", "ok", "draining", "engine_down", "full" or "late"."""
    slots: int
    slots_used: int
    budget_ms: int
    predicted_ms: float
    """Turn latency, 95th percentile, that one more call would bring."""
    loop_lag_p99_ms: float
    now: float
    minutes: int
    bucket_s: float
    kept_from: float | None
    """Turns up to this moment are not kept any more, though the time axis begins earlier; None: all of them are."""
    since: float
    """The beginning of the time axis."""
    refused: int
    """Calls that got no slot (`NOT_ADMITTED`), since the beginning of the time axis."""
    refusals: dict[Reason, int]
    """All calls that were refused since then, by reason. Those of unknown callers are for the operator only."""
    culprits: list[DelayCause]
    """Causes of long waits or bad sound."""
    totals: Figures
    shares: TurnRates
    buckets: list[TimeBucket]
    turns: list[ListedTurn]
    """Newest first."""
    calls: list[CallRow]
    cost: HostCost | None
    """For the operator only; None: no price is known."""


class Dashboard:
    """Keeps what the operator's dashboard shows of one PoP, and puts it together when somebody looks. Implements
    `operator_views.DashboardApi`. `health` is `Pop.health`; `clock` gives Unix seconds. `followers` and `traces` also
    follow the calls. `cost` is `CostMeter.so_far`."""

    def __init__(
        self, pop: PopConfig, health: Callable[[], Health], clock: Callable[[], float] = time.time,
        followers: Sequence[CallFollower] = (), redaction: RedactionConfig = USUAL, traces: CallTracer = UNTRACED,
        cost: Callable[[], HostCost | None] = lambda: None,
    ) -> None:  # fmt: skip
        self._pop = pop
        self._health = health
        self._clock = clock
        self._cost = cost
        self._turns = LastTurns()
        self._calls = LiveCalls(partial(LiveCall, self._turns, pop.budget_ms, followers=followers,
                                        redaction=redaction, traces=traces))  # fmt: skip
        self._refused = RefusalCounts()

    def watched(self, tenant: str, agent: str) -> AbstractContextManager[LiveCall]:
        """Yields a call that was admitted, until it has ended."""
        return self._calls.watched(tenant, agent)

    def refused(self, refusal: Refusal) -> None:
        """A call was refused."""
        self._refused.add(refusal, self._clock())

    def turn(self, tenant: str | None, turn_id: str) -> FullTurn | None:
        """One turn in full; None if it is not kept any more, or not `tenant`'s."""
        return self._turns.find(turn_id, tenant)

    def forget(self, calls: Collection[str]) -> None:
        """All turns of these calls: their records were deleted."""
        self._turns.forget(calls)

    def delete(self, call_id: str, tenant: str | None) -> Deleted:
        """Delete all turns of a call without records, unless it goes on."""
        if any(row.id == call_id for row in self._calls.rows(tenant)):
            return Deleted(in_progress=[call_id])
        if not (gone := self._turns.forget([call_id], tenant)) and tenant is not None:
            return Deleted(not_permitted=int(self._shows(call_id, NO_TENANT)))
        return Deleted(list(gone))

    def delete_matching(self, query: CallSelection) -> Deleted:
        """Delete all turns of these calls without records, unless they go on."""
        live = {row.id: row.tenant for row in self._calls.rows() if _fits(query, row.caller, row.since)}
        shown = {call.id: call.tenant for call in self._turns.calls() if _fits(query, call.caller, call.began)}
        in_progress = {call_id for call_id, tenant in live.items() if query.tenant in (None, tenant)}
        gone = {call_id for call_id, tenant in shown.items() if query.tenant in (None, tenant)} - in_progress
        self._turns.forget(gone)
        others = [call_id for call_id, tenant in (shown | live).items() if tenant == NO_TENANT != query.tenant]
        not_permitted = len(others) if query.caller and query.tenant is not None else 0
        return Deleted(sorted(gone), sorted(in_progress), not_permitted)

    def _shows(self, call_id: str, tenant: str) -> bool:
        return any(row.id == call_id for row in self._calls.rows(tenant)) or any(
            listed.turn.call == call_id for listed in self._turns.since(0, tenant)
        )

    def view(self, tenant: str | None, minutes: int) -> DashboardView:
        """The last `minutes` as `tenant` may see them; None: the operator, who may see all of it."""
        now, health = self._clock(), self._health()
        start, width_s = axis(now, minutes)
        kept = list(self._turns.since(start, tenant))
        turns = [listed.turn for listed in kept]
        totals, refusals = figures(turns), self._refused.since(start, tenant)
        return DashboardView(
            pop=self._pop.id,
            region=self._pop.region,
            status=health.status,
            slots=self._pop.slots,
            slots_used=health.calls,
            budget_ms=self._pop.budget_ms,
            predicted_ms=health.predicted_ms,
            loop_lag_p99_ms=health.loop_lag_p99_ms,
            now=now,
            minutes=minutes,
            bucket_s=width_s,
            kept_from=self._turns.forgotten_at if self._turns.forgotten_at >= start else None,
            since=start,
            refused=sum(refusals[reason] for reason in NOT_ADMITTED),
            refusals=dict(refusals.most_common()),
            culprits=self._delay_causes(start, totals, tenant, health),
            totals=totals,
            shares=_shares(totals),
            buckets=over_time(kept, start, width_s),
            turns=sorted(turns, key=lambda turn: turn.at, reverse=True)[:LISTED],
            calls=self._calls.rows(tenant),
            cost=self._cost() if tenant is None else None,
        )

    def _delay_causes(self, start: float, totals: Figures, tenant: str | None, health: Health) -> list[DelayCause]:
        late = [waits(full.record, full.tools) for full in self._turns.late(start, JUDGED, tenant)]
        seen = PopMeasurements(
            timed=totals.timed - totals.by_request,
            late=[waited for waited in late if waited],
            late_count=totals.late,
            networks=self._calls.networks(tenant),
            health=health,
            vllm=vllm_loads(),
        )
        return delay_causes(seen, self._pop)


def _fits(query: CallSelection, caller: str, began: float) -> bool:
    """Whether a call is one of those that are to be deleted, whosever it is."""
    return (
        (not query.caller or same_number(query.caller, caller))
        and (query.since is None or began >= query.since)
        and (query.until is None or began < query.until)
    )


def _shares(totals: Figures) -> TurnRates:
    return TurnRates(
        late=share(totals.late, totals.timed - totals.by_request),
        missed=share(totals.missed, totals.turns),
        cut_in=share(totals.cut_ins, totals.turns),
        cut_in_bound=upper_bound(totals.cut_ins, totals.turns),
    )

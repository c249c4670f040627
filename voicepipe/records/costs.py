"""The cost of calls in a time, by agent or tenant, and the cost of the host's idle slots."""

import sqlite3

import msgspec

from voicepipe.operator_views import CostQuery
from voicepipe.records.record import RecordedHost
from voicepipe.sizing.price import host_cost, idle_cost, thousand_tokens_cost

COLUMNS = {"agent": "agent", "tenant": "tenant"}


class CostRow(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one agent's or one tenant's calls at a PoP. Money is in the operator's currency; None: no price is
    known."""

    name: str
    pop: str
    region: str
    calls: int
    minutes: float
    """Minutes of these calls in this time."""
    cost: float | None
    cost_per_minute: float | None
    output_tokens: int
    """Tokens of the calls that ended in this time."""
    cost_per_1000_tokens: float | None


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """Body of GET /v1/costs."""

    object: str = "list"
    data: list[CostRow]
    since: float
    """Not before the first call that is kept."""
    until: float
    host_cost: float | None
    """Cost of the whole host in this time, with calls or without. For the operator only."""
    idle_cost: float | None
    """The part of it that no call paid."""


def costs(db: sqlite3.Connection, query: CostQuery, host: RecordedHost, now: float) -> Costs:
    """The costs of a time. Calls count with the part of them that lies in it. One that goes on has lasted until `now`.
    The time before the first call that is kept is left out."""
    (kept_from,) = db.execute("SELECT min(began) FROM calls").fetchone()
    until = min(query.until, now)
    since = min(until, max(query.since, now if kept_from is None else kept_from))
    mine = "" if query.tenant is None else "AND tenant = ?"
    rows = db.execute(
        f"SELECT {COLUMNS[query.by]}, count(*), sum(min(coalesce(ended, ?), ?) - max(began, ?)),"
        " sum(CASE WHEN ended < ? THEN output_tokens ELSE 0 END)"
        f" FROM calls WHERE began < ? AND coalesce(ended, ?) > ? {mine} GROUP BY 1 ORDER BY 3 DESC",
        (now, until, since, until, until, now, since, *([] if query.tenant is None else [query.tenant])),
    ).fetchall()
    data = [_cost(host, name, calls, seconds, tokens) for name, calls, seconds, tokens in rows]
    everything = host.price_per_hour and query.tenant is None
    return Costs(
        data=data, since=since, until=until,
        host_cost=host_cost(host.price_per_hour, until - since) if everything else None,
        idle_cost=idle_cost(host.price_per_hour, host.slots, until - since, sum(row[2] for row in rows))
        if everything else None,
    )  # fmt: skip


def _cost(host: RecordedHost, name: str, calls: int, seconds: float, tokens: int) -> CostRow:
    cost = host.cost(seconds)
    return CostRow(
        name=name, pop=host.pop, region=host.region, calls=calls, minutes=seconds / 60, cost=cost,
        cost_per_minute=host.cost(60), output_tokens=tokens,
        cost_per_1000_tokens=None if cost is None else thousand_tokens_cost(cost, tokens),
    )  # fmt: skip

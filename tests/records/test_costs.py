"""What calls of a time have cost."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace

from tests.records.kept_calls import HOST, LONG_AGO, call, said
from tests.records.test_records import caller, got, over, secrets, settings  # noqa: F401
from voicepipe.observe.call_followers import CallEnd
from voicepipe.operator_views import CostQuery
from voicepipe.pop.running import running
from voicepipe.records import store
from voicepipe.records.costs import Costs, costs
from voicepipe.records.record import RecordedHost
from voicepipe.records.store import Store


async def test_what_calls_and_empty_places_cost(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        async with caller(pop) as typist:
            await typist.asks("when are you open")
        await over(pop)
        mine = (await got(pop, "/v1/costs")).json()
        (cost,) = mine["data"]
        assert (cost["name"], cost["calls"], cost["region"]) == ("front-desk", 1, "local")
        assert cost["cost_per_minute"] == pytest.approx(36 / 60 / 10)
        assert cost["cost"] == pytest.approx(cost["minutes"] * cost["cost_per_minute"])
        assert mine["host_cost"] is None, "the operator's to see"
        everything = (await got(pop, f"/v1/costs?by=tenant&since={time.time() - 3600}", "k-operator")).json()
        assert [cost["name"] for cost in everything["data"]] == ["acme"]
        assert everything["since"] > time.time() - 600, "nothing is said of a time before the first call"
        assert everything["host_cost"] == pytest.approx((everything["until"] - everything["since"]) * 36 / 3600)
        assert everything["idle_cost"] == pytest.approx(everything["host_cost"] - everything["data"][0]["cost"])


class Kept(Store):
    """Its file is known."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, HOST)
        self.path = path


@pytest.fixture
def its(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / "fra1.db")
    yield made
    made.close()


def lasted(its: Kept, number: int, begin: float, end: float | None, tenant: str = "acme", tokens: int = 0) -> None:
    """A call, in seconds of that day."""
    of = replace(call(number, tenant=tenant), since=LONG_AGO + begin)
    its.began(of)
    its.said(of.id, replace(said(of, 0), output_tokens=tokens))
    if end is not None:
        its.ended(of, CallEnd(reason="caller", at=LONG_AGO + end))


def asked(
    its: Kept, since: float, until: float, *, tenant: str | None = None, by: Literal["agent", "tenant"] = "tenant",
    host: RecordedHost = HOST, now: float = 10_000.0,
) -> Costs:  # fmt: skip
    query = CostQuery(tenant=tenant, since=LONG_AGO + since, until=LONG_AGO + until, by=by)
    with store.reading(its.path) as db:
        return costs(db, query, host, LONG_AGO + now)


PRICED = RecordedHost("fra1", "eu-central", slots=10, price_per_hour=36.0)
"""A second of a call costs 0.001."""


def test_a_call_counts_with_its_part_of_the_time(its: Kept) -> None:
    lasted(its, 1, 0, 100, tokens=50)
    lasted(its, 2, 150, 250, tokens=30)
    lasted(its, 3, 180, None, "clinic")
    told = asked(its, 50, 200, host=PRICED)
    assert [(cost.name, cost.calls, round(cost.minutes * 60, 3)) for cost in told.data] == [
        ("acme", 2, 100), ("clinic", 1, 20),
    ]  # fmt: skip
    acme = told.data[0]
    assert acme.cost == pytest.approx(0.1) and acme.cost_per_minute == pytest.approx(0.06)
    assert acme.output_tokens == 50, "of those that ended in this time"
    assert acme.cost_per_1000_tokens == pytest.approx(2.0)
    assert told.host_cost == pytest.approx(1.5) and told.idle_cost == pytest.approx(1.5 - 0.12)


def test_a_call_that_goes_on_has_lasted_until_now(its: Kept) -> None:
    lasted(its, 1, 0, None)
    (cost,) = asked(its, 0, 500, now=60).data
    assert cost.minutes == pytest.approx(1) and cost.cost is None, "no price is known"


def test_of_the_time_before_the_first_call_and_of_the_future_nothing_is_said(its: Kept) -> None:
    lasted(its, 1, 100, 130)
    told = asked(its, -5000, 5000, host=PRICED, now=200)
    assert (told.since, told.until) == (LONG_AGO + 100, LONG_AGO + 200)
    assert told.host_cost == pytest.approx(1.0)


def test_without_calls_nothing_was_spent(its: Kept) -> None:
    told = asked(its, 0, 100, host=PRICED, now=200)
    assert told.data == [] and told.since == told.until and told.host_cost == told.idle_cost == 0


def test_a_tenant_sees_its_own_calls_and_not_what_the_host_costs(its: Kept) -> None:
    lasted(its, 1, 0, 60)
    lasted(its, 2, 0, 60, "clinic")
    told = asked(its, 0, 100, tenant="clinic", by="agent", host=PRICED)
    assert [(cost.name, cost.calls) for cost in told.data] == [("front-desk", 1)]
    assert told.host_cost is told.idle_cost is None

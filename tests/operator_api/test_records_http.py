"""What is kept of calls, over HTTP."""

import time
from pathlib import Path

import pytest
from starlette.datastructures import QueryParams

from tests.records.test_records import caller, got, over, secrets, settings  # noqa: F401
from voicepipe.ingress.access import NotPermitted
from voicepipe.ingress.wire_errors import WireError
from voicepipe.operator_api.records_http import USUAL, cost_query, cursor, deletion, query
from voicepipe.operator_views import CallSelection, CostQuery, RecordQuery
from voicepipe.pop.running import running


async def test_a_call_is_kept_and_found_by_its_tenant(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        async with caller(pop) as typist:
            await typist.asks("when are you open")
            (row,) = (await got(pop, "/v1/records")).json()["data"]
            assert row["ended"] is None and row["reason"] == "", "it goes on"
        (row,) = await over(pop)
        assert (row["tenant"], row["line"], row["reason"], row["turns"]) == ("acme", "websocket", "caller", 0)
        assert 0 < row["cost"] <= 36 / 3600 / 10 * 60
        full = (await got(pop, f"/v1/records/{row['id']}")).json()
        assert [(said["heard"], bool(said["answered"])) for said in full["said"]] == [
            ("", True), ("when are you open", True)]  # fmt: skip
        assert (await got(pop, f"/v1/records/{row['id']}", "k-clinic")).status_code == 404
        assert (await got(pop, "/v1/records", "k-clinic")).json()["data"] == []
        assert (await got(pop, "/v1/records", "wrong")).status_code == 401


async def test_lists_in_pages_and_by_what_is_asked(tmp_path: Path) -> None:
    async with running(settings(tmp_path)) as pop:
        for key in ("k-acme", "k-clinic", "k-acme"):
            async with caller(pop, key):
                pass
        rows = await over(pop, 3)
        first = (await got(pop, "/v1/records?limit=2", "k-operator")).json()
        rest = (await got(pop, f"/v1/records?limit=2&before={first['next']}", "k-operator")).json()
        assert [row["id"] for row in (*first["data"], *rest["data"])] == [row["id"] for row in rows]
        assert rest["next"] is None
        assert (await got(pop, f"/v1/records?since={time.time() + 5}")).json()["data"] == []
        assert len((await got(pop, "/v1/records?reason=caller&agent=front-desk")).json()["data"]) == 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("limit=0", "limit must be a whole number from 1 to 1000"),
        ("since=yesterday", "since must be a Unix time in seconds"),
        ("since=nan", "since must be a Unix time in seconds"),
        ("before=x", "before must be what a list gave as next"),
        ("tennant=acme", "Unknown parameter 'tennant': expected one of limit, before, since"),
    ],
)
async def test_who_asks_wrongly_is_told_how(tmp_path: Path, asked: str, said: str) -> None:
    async with running(settings(tmp_path)) as pop:
        answer = await got(pop, f"/v1/records?{asked}")
        assert answer.status_code == 400 and said in answer.json()["error"]["message"]


async def test_a_pop_that_keeps_none_says_so(tmp_path: Path) -> None:
    async with running(settings(tmp_path, records={"folder": ""})) as pop:
        answer = await got(pop, "/v1/records")
        assert answer.status_code == 404 and "records.folder" in answer.json()["error"]["message"]


NOW = 1_790_000_000.0


def test_a_list_asks_for_one_more_than_it_shows() -> None:
    asked = query(QueryParams("limit=3&agent=front-desk&reason=caller&since=5&until=7.5"), "acme")
    assert asked == RecordQuery(
        tenant="acme", limit=4, before=None, since=5.0, until=7.5, agent="front-desk", reason="caller"
    )
    assert query(QueryParams(""), None).limit == USUAL + 1


def test_a_list_goes_on_behind_the_call_that_its_cursor_names() -> None:
    for began in (NOW + 0.1, 1e-9, 12.0):
        assert query(QueryParams({"before": cursor(began, "rtc_1_2")}), None).before == (began, "rtc_1_2")


@pytest.mark.parametrize("said", ["caller=%2B4930123456", "caller=+4930123456"])
def test_a_plus_that_came_as_a_space_is_a_plus(said: str) -> None:
    assert query(QueryParams(said), None).caller == deletion(QueryParams(said), None).caller == "+4930123456"


@pytest.mark.parametrize(
    ("said", "parameter", "why"),
    [
        ("", "caller", "Say which calls are to be deleted"),
        ("caller=", "caller", "Say which calls are to be deleted"),
        ("caller=&tenant=acme", "caller", "Say which calls are to be deleted"),
        ("tenant=&since=0", "caller", "Say which calls are to be deleted"),
        ("caller=1&limit=5", "limit", "Unknown parameter 'limit': expected one of caller"),
    ],
)
def test_nobody_deletes_all_calls_by_mistake(said: str, parameter: str, why: str) -> None:
    with pytest.raises(WireError, match=why) as caught:
        deletion(QueryParams(said), None)
    assert caught.value.param == parameter


def test_a_deletion_is_of_a_number_a_tenant_or_a_time() -> None:
    asked = QueryParams("caller=%2B1&tenant=acme&since=1&until=2.5")
    assert deletion(asked, None) == CallSelection(caller="+1", tenant="acme", since=1.0, until=2.5)
    assert deletion(QueryParams("until=5"), "acme") == CallSelection(tenant="acme", until=5.0)


def test_a_tenants_key_reaches_no_other_tenants_calls() -> None:
    for read in (query, deletion):
        assert read(QueryParams("tenant=acme"), "acme").tenant == "acme"
        with pytest.raises(NotPermitted, match="the calls of tenant 'acme' alone"):
            read(QueryParams("tenant=clinic"), "acme")


def test_costs_are_those_of_the_last_day() -> None:
    assert cost_query(QueryParams(""), "acme", NOW) == CostQuery(
        tenant="acme", since=NOW - 86_400, until=NOW, by="agent"
    )
    assert cost_query(QueryParams("until=100000&by=tenant"), None, NOW) == CostQuery(
        tenant=None, since=13_600.0, until=100_000.0, by="tenant"
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("by=caller", 'by must be "agent" or "tenant"'),
        ("since=7&until=7", "since must be before until"),
        ("since=inf", "since must be a Unix time"),
        ("agent=x", "Unknown parameter 'agent'"),
    ],
)
def test_costs_of_no_time_are_asked_for_in_vain(said: str, why: str) -> None:
    with pytest.raises(WireError, match=why):
        cost_query(QueryParams(said), None, NOW)

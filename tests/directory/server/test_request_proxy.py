"""Requests are passed on to PoPs that may have them, and one that does not answer keeps nobody long."""

import asyncio
import json
import time
from typing import Any

import httpx
import pytest

from tests.directory.fleets import Served
from tests.directory.reports import FRANKFURT, LONDON
from tests.directory.stub_pops import Answer, Bounced, directory_of, hangs_up, is_silent, resets, says, tell
from tests.support.waiting import until
from voicepipe.directory.report import CALLS
from voicepipe.directory.server import request_proxy

pytestmark = pytest.mark.e2e


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_proxy, "PATIENCE_S", 0.5)


def listed(*rows: Any) -> Answer:
    return says(200, json.dumps({"object": "list", "data": rows}), {"Content-Type": "application/json"})


async def offered(at: Served) -> httpx.Response:
    async with at.client() as client:
        return await client.post(CALLS, content=b"v=0", headers={"Content-Type": "application/sdp"})


async def asked(at: Served, path: str, key: str = "k-acme") -> httpx.Response:
    async with at.client(key) as client:
        return await client.get(path)


FAILS = [*(says(status) for status in (401, 429, 500, 502, 503, 307)), hangs_up, resets, is_silent]


@pytest.mark.parametrize("first", FAILS)
async def test_an_offer_goes_to_the_next_candidate(hurried: None, first: Answer) -> None:
    async with directory_of(first, says(201, "v=0")) as (at, _):
        answer = await offered(at)
    assert (answer.status_code, answer.text) == (201, "v=0")


async def test_an_offer_goes_on_to_pops_that_were_not_tried_once_three_have_refused_it() -> None:
    full = says(503)
    async with directory_of(full, full, full, says(201, "v=0")) as (at, pops):
        assert (await offered(at)).status_code == 201
        assert [len(pop.heads) for pop in pops] == [1, 1, 1, 1]


async def test_offers_that_pops_do_not_take_are_told_to_who_follows() -> None:
    async with directory_of(says(503), says(201, "v=0")) as (at, _):
        bounced = Bounced(at.directory)
        assert (await offered(at)).status_code == 201
        await asked(at, "/v1/voices")  # is no call
    assert bounced.by == [("a", "refused")]
    async with directory_of(hangs_up, says(201, "v=0")) as (at, _):
        bounced = Bounced(at.directory)
        await offered(at)
    assert bounced.by == [("a", "no_answer")]


async def test_the_trace_of_a_caller_is_passed_on() -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with directory_of(says(201, "v=0"), says(503)) as (at, (near, _)), at.client() as client:
        said = {"Content-Type": "application/sdp", "traceparent": trace}
        assert (await client.post(CALLS, content=b"v=0", headers=said)).status_code == 201
        assert f"\r\ntraceparent: {trace}\r\n" in near.heads[0].lower()


async def test_a_header_that_is_not_ascii_is_passed_on_as_it_came() -> None:
    async with directory_of(listed({"id": "ada"}), says(503)) as (at, (near, _)), at.client() as client:
        answer = await client.get("/v1/voices", headers={b"Accept": b"caf\xe9"})
        assert answer.status_code == 200 and len(near.heads) == 1


@pytest.mark.parametrize("first", FAILS)
async def test_what_any_pop_can_answer_is_asked_of_the_next_one(hurried: None, first: Answer) -> None:
    async with directory_of(first, listed({"id": "ada"})) as (at, _):
        for path in ("/v1/voices", "/v1/models"):
            answer = await asked(at, path)
            assert (answer.status_code, answer.json()["data"]) == (200, [{"id": "ada"}])


async def test_nobody_waits_long_for_a_pop_that_accepts_and_says_nothing() -> None:
    async with directory_of(is_silent, says(201, "v=0")) as (at, _):
        began = time.monotonic()
        assert (await offered(at)).status_code == 201
        assert time.monotonic() - began < 10


async def test_the_last_refusal_is_told() -> None:
    async with directory_of(says(401), says(503, "full", {"Retry-After": "7"})) as (at, _):
        for answer in (await offered(at), await asked(at, "/v1/voices"), await asked(at, "/v1/models")):
            assert (answer.status_code, answer.text, answer.headers["Retry-After"]) == (503, "full", "7")


async def test_that_the_directory_is_not_let_in_is_no_fault_of_the_callers_key() -> None:
    async with directory_of(says(503), says(401)) as (at, _):
        answers = [await offered(at), await asked(at, "/v1/voices"), await asked(at, "/v1/models")]
        async with at.client() as client:
            answers.append(await client.delete(f"{CALLS}/rtc_b.000000000000"))
    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in answers} == {(503, "no_pop")}
    assert all(answer.headers["Retry-After"] for answer in answers)


async def test_what_the_caller_did_wrong_is_told_at_once() -> None:
    async with directory_of(says(400, "wrong"), says(201, "v=0")) as (at, (_, far)):
        assert (await offered(at)).text == "wrong"
        assert (await asked(at, "/v1/voices")).text == "wrong"
    assert not far.heads


@pytest.mark.parametrize("failing", [*FAILS, says(200, "<html>")])
async def test_one_pop_does_not_spoil_the_list_of_calls(hurried: None, failing: Answer) -> None:
    async with directory_of(failing, listed({"id": "rtc_b.1", "since": 2}), listed({"id": "rtc_c.1", "since": 1})) as (
        at, _,
    ):  # fmt: skip
        answer = await asked(at, CALLS)
    assert answer.status_code == 200
    assert answer.json() == {"object": "list", "missing": ["a"],
                             "data": [{"id": "rtc_c.1", "since": 1}, {"id": "rtc_b.1", "since": 2}]}  # fmt: skip


async def test_the_models_are_those_of_all_pops_that_the_caller_may_reach() -> None:
    desk, sales, clinic = ({"id": name} for name in ("front-desk", "sales", "clinic"))
    async with directory_of(listed(desk), listed(desk, sales), listed(clinic)) as (at, stubs):
        tell(at.directory, "c", 1, url=stubs[2].url, zone="us")
        assert (await asked(at, "/v1/models", "k-clinic")).json() == {"object": "list", "data": [desk, sales]}
        assert (await asked(at, "/v1/models")).json() == {"object": "list", "data": [desk, sales, clinic]}


async def test_what_a_tenant_asks_of_any_pop_stays_in_its_zone() -> None:
    made = says(200, json.dumps({"session": {"model": "front-desk"}}), {"Content-Type": "application/json"})
    body = {"session": {"type": "realtime", "instructions": "Patients are to be told that..."}}
    async with directory_of(made, made) as (at, (abroad, home)):
        tell(at.directory, "a", 1, url=abroad.url, place=FRANKFURT, zone="us")
        async with at.client("k-clinic") as client:
            assert (await client.post("/v1/realtime/client_secrets", json=body)).status_code == 200
            assert (await client.get("/v1/realtime/ice-servers")).status_code == 200
        assert (len(abroad.heads), len(home.heads)) == (0, 2)
        tell(at.directory, "b", 1, url=home.url, place=LONDON, zone="uk")
        async with at.client("k-clinic") as client:
            assert (await client.post("/v1/realtime/client_secrets", json=body)).status_code == 503
        assert (len(abroad.heads), len(home.heads)) == (0, 2)


async def test_a_session_is_settled_by_a_pop_that_has_its_agent() -> None:
    made = says(200, json.dumps({"session": {"model": "clinic"}}), {"Content-Type": "application/json"})
    async with directory_of(says(500), made) as (at, (without, having)):
        tell(at.directory, "b", 1, url=having.url, agents={"front-desk": "en", "clinic": "de"})
        async with at.client() as client:
            secret = {"session": {"type": "realtime", "model": "clinic"}}
            assert (await client.post("/v1/realtime/client_secrets", json=secret)).status_code == 200
            assert (await client.get("/v1/models/clinic")).status_code == 200
    assert (len(without.heads), len(having.heads)) == (0, 2)


async def test_a_pop_that_is_draining_is_asked_nothing_while_there_is_another() -> None:
    async with directory_of(listed({"id": "old"}), listed({"id": "new"})) as (at, (going, other)):
        tell(at.directory, "a", 1, url=going.url, status="draining")
        for path in ("/v1/voices", "/v1/models"):
            assert (await asked(at, path)).json()["data"] == [{"id": "new"}]
        tell(at.directory, "b", 1, url=other.url, status="draining")
        assert (await asked(at, "/v1/voices")).json()["data"] == [{"id": "old"}]


async def test_two_zones_at_once_are_nowhere() -> None:
    async with directory_of(says(200), says(200)) as (at, _), at.client("k-clinic") as client:
        for zone, status in (("eu", 200), ("", 200), ("us", 400)):
            answer = await client.post("/v1/calls", json={"require": {"zone": zone}})
            assert answer.status_code == status
        assert "'eu'" in answer.text and "'us'" in answer.text


async def test_a_pop_that_does_not_answer_takes_no_more_than_its_own_connections(
    hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_proxy, "MOST_AT_ONE", 3)
    async with directory_of(is_silent, listed()) as (at, (silent, _)):
        waiting = [asyncio.create_task(asked(at, "/v1/voices")) for _ in range(3)]
        await until(lambda: len(silent.heads) == 3)
        assert (await asked(at, "/v1/voices")).status_code == 200
        assert len(silent.heads) == 3 and not any(task.done() for task in waiting)
        assert {answer.status_code for answer in await asyncio.gather(*waiting)} == {200}
        assert (await asked(at, "/v1/voices")).status_code == 200
        assert len(silent.heads) == 4, "there is room again"


async def test_a_404_that_is_not_a_pops_says_nothing_of_a_record() -> None:
    async with directory_of(says(404)) as (at, _), at.client() as client:
        for answer in (
            await client.get("/v1/records/rtc_a.000000000000"),
            await client.delete("/v1/records/rtc_a.000000000000"),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_pop")
        assert (await client.delete("/v1/records?caller=1")).json()["missing"] == ["a"]


async def test_a_call_whose_pop_is_not_heard_for_a_moment_has_not_ended() -> None:
    async with directory_of(says(200), hangs_up) as (at, _), at.client() as client:
        now = [1000.0]
        at.directory._clock = lambda: now[0]
        assert (await client.delete(f"{CALLS}/rtc_a.000000000000")).status_code == 200
        assert (await client.delete(f"{CALLS}/rtc_b.000000000000")).status_code == 503, "it does not answer"
        assert (await client.delete(f"{CALLS}/rtc_x.000000000000")).status_code == 404, "there is no such PoP"
        now[0] += 10
        silent = await client.delete(f"{CALLS}/rtc_a.000000000000")
        assert (silent.status_code, silent.json()["error"]["code"]) == (503, "no_pop")
        assert silent.headers["Retry-After"]
        now[0] += 60
        assert (await client.delete(f"{CALLS}/rtc_a.000000000000")).status_code == 404, "it is given up"

"""A WebSocket is let in by the first PoP that will have it, whatever the others do."""

from typing import Any

import pytest
import websockets

from tests.directory.fleets import Served
from tests.directory.stub_pops import Answer, Bounced, directory_of, hangs_up, resets, says, stub, takes_calls

pytestmark = pytest.mark.e2e

REFUSAL = '{"error": {"code": "pop_full"}}'


async def called(at: Served, trace: dict[str, str] | None = None, **options: Any) -> Any:
    """A WebSocket through the directory."""
    url, said = f"ws{at.url.removeprefix('http')}/v1/realtime", {"Authorization": "Bearer k-acme", **(trace or {})}
    return await websockets.connect(url, additional_headers=said, **options)


@pytest.mark.parametrize("first", [
    *(says(status, REFUSAL, {"Content-Type": "application/json"}) for status in (401, 429, 500, 502, 503, 504)),
    hangs_up, resets, says(101), says(200),
])  # fmt: skip
async def test_where_the_nearest_pop_does_not_let_a_caller_in_the_next_one_does(first: Answer) -> None:
    async with directory_of(first, takes_calls) as (at, (near, far)), await called(at) as socket:
        assert await socket.recv() == "hello"
        assert (len(near.heads), len(far.heads)) == (1, 1)


async def test_once_three_have_refused_those_are_asked_that_were_not_tried() -> None:
    full = says(503, REFUSAL)
    async with directory_of(full, full, full, takes_calls) as (at, pops), await called(at) as socket:
        assert await socket.recv() == "hello"
        assert [len(pop.heads) for pop in pops] == [1, 1, 1, 1]


async def test_calls_that_pops_do_not_take_are_told_to_who_follows() -> None:
    async with directory_of(says(503, REFUSAL), hangs_up, takes_calls) as (at, _):
        bounced = Bounced(at.directory)
        async with await called(at) as socket:
            assert await socket.recv() == "hello"
    assert bounced.by[0] == ("a", "refused") and set(bounced.by) <= {("a", "refused"), ("b", "no_answer")}
    async with directory_of(says(404, REFUSAL), takes_calls) as (at, _):
        bounced = Bounced(at.directory)
        with pytest.raises(websockets.InvalidStatus):
            await called(at)
    assert not bounced.by, "that was the caller's own fault"


async def test_six_are_tried_and_no_more() -> None:
    async with directory_of(*[says(503, REFUSAL)] * 8) as (at, pops):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await called(at)
    assert bytes(refused.value.response.body or b"") == REFUSAL.encode()
    assert sorted(len(pop.heads) for pop in pops) == [0, 0, 1, 1, 1, 1, 1, 1]


async def test_the_last_refusal_is_told(caplog: pytest.LogCaptureFixture) -> None:
    full = says(503, REFUSAL, {"Content-Type": "application/json", "Retry-After": "7"})
    async with directory_of(says(401), full) as (at, _):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await called(at)
    answer = refused.value.response
    assert (answer.status_code, bytes(answer.body or b"")) == (503, REFUSAL.encode())
    assert answer.headers["Retry-After"] == "7"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("last", [says(401, REFUSAL), hangs_up, says(307, "", {"Location": "/v1/other"})])
async def test_that_the_directory_is_not_let_in_is_no_fault_of_the_callers_key(last: Answer) -> None:
    async with directory_of(says(401), last) as (at, _):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await called(at)
    assert refused.value.response.status_code == 503
    assert refused.value.response.headers["Retry-After"]


async def test_what_the_caller_did_wrong_is_told_by_the_first_pop() -> None:
    async with directory_of(says(404, REFUSAL), takes_calls) as (at, (_, far)):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await called(at)
    assert refused.value.response.status_code == 404
    assert not far.heads


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(status: int) -> None:
    async with stub(takes_calls) as stranger:
        moved = says(status, "", {"Location": f"ws{stranger.url.removeprefix('http')}/v1/realtime"})
        async with directory_of(moved, takes_calls) as (at, (near, far)), await called(at) as socket:
            assert await socket.recv() == "hello"
    assert (len(near.heads), len(far.heads), stranger.heads) == (1, 1, [])


async def test_the_trace_of_a_caller_is_passed_on() -> None:
    trace = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "a=1"}
    async with directory_of(takes_calls, takes_calls) as (at, (near, _)), await called(at, trace) as socket:
        assert await socket.recv() == "hello"
        for name, value in trace.items():
            assert f"\r\n{name}: {value}\r\n" in near.heads[0]

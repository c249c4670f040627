"""The measurements themselves: a directory and PoPs start, calls are placed, and counted. No figures are asserted."""

import asyncio
import io
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from rich.console import Console

from latency_probes.components.__main__ import parser
from latency_probes.components.directory import fleet, placement, resolve, setup, wan
from latency_probes.components.directory.cities import CALLERS, POPS
from latency_probes.components.directory.load import Answers, Generator, RequestLoad
from latency_probes.components.directory.placement_report import (
    PlacementCall,
    PlacementTurn,
    PopThen,
    behind_ms,
    best_ms,
    errors,
    misses,
    show,
    worst_ms,
)
from latency_probes.components.directory.resolve import Resolved
from latency_probes.components.directory.setup import ASKED, RELAYED, STRAIGHT, Taken, more
from voicepipe.base.places import distance_km

LONG_S = 120.0


def printed() -> Console:
    return Console(file=io.StringIO(), width=170)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# --- the load ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[int]:
    """A server that gives the n-th request the n-th answer, and the last one to all others; empty: it hangs up."""
    served = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
                answer = answers[min(served, len(answers) - 1)]
                served += 1
                for piece in (answer[:20], answer[20:]):
                    writer.write(piece)
                    await writer.drain()
                if not answer:
                    break
        except asyncio.IncompleteReadError:
            pass
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield int(server.sockets[0].getsockname()[1])


async def test_every_request_is_counted_by_what_became_of_it() -> None:
    fine = b'HTTP/1.1 200 OK\r\nContent-Length: 24\r\n\r\n"token":"token":"token":'
    short = b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n"token":'
    refused = b"HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n"
    async with answering(fine, refused, b"", short, fine) as port:
        seen = await Generator(RequestLoad("127.0.0.1", port, "key", 100, 0.2, 1, ("a", "b", "c", "d"))).run()
    assert (seen.asked, len(seen.times), seen.statuses, seen.short, seen.lost) == (20, 17, {429: 1}, 1, 1)
    assert len(seen.late) == 20 and seen.times == sorted(seen.times)
    assert seen.connections > 1, "the one that was hung up on is replaced"


def test_the_table_of_answers() -> None:
    answers = Answers(1000, [1.0] * 900 + [50.0] * 95, [0.1] * 1000, {429: 3}, 1, 1, 16, 0.05)
    assert not resolve.show(Resolved(200, answers, "NATS", 0.3, None, 250.0, 0.05), console := printed())
    for part in ("1.0", "50.0", "30%", "3 answers had status 429", "p99 50.0 ms, at most 10", "250 MB, at most 200"):
        assert part in text(console)


def test_answers_that_never_come_are_late_ones() -> None:
    answers = Answers(100, [1.0] * 98, [0.1] * 100, {503: 1}, 0, 1, 16, 0.05)
    assert not resolve.show(Resolved(200, answers, "NATS", 0.3, None, 50.0, 0.05), console := printed())
    assert "p99 inf ms, at most 10" in text(console)


# --- the network ------------------------------------------------------------------------------------------------


async def test_what_is_sent_takes_half_of_the_round_trip_each_way_and_stays_in_order() -> None:
    heard: list[tuple[float, bytes]] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            heard.append((time.monotonic(), data))
            writer.write(data)
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        there = server.sockets[0].getsockname()[1]
        async with wan.far_away("127.0.0.1", there, 200.0) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            began = time.monotonic()
            for number in range(20):
                writer.write(bytes([number]))
                await asyncio.sleep(0.001)
            assert await reader.readexactly(20) == bytes(range(20))
            assert time.monotonic() - began >= 0.2
            assert heard[0][0] - began >= 0.1
            writer.write_eof()
            writer.close()
            assert await reader.read() == b"", "a hang-up gets through as well"


async def test_nobody_there_hangs_up() -> None:
    async with wan.far_away("127.0.0.1", 9, 1.0) as port:
        reader, _ = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""


def test_round_trips_are_those_of_the_globe() -> None:
    trips = placement.round_trips()
    assert len(trips) == 20 and all(len(row) == len(POPS) == 9 for row in trips.values())
    assert 10 < trips["berlin"]["fra"] < 45 < 120 < trips["berlin"]["sjc"] < 340
    nearest = {city: min(row, key=row.__getitem__) for city, row in trips.items()}
    mapped = {city: min(POPS, key=lambda pop: distance_km(CALLERS[city], POPS[pop])) for city in trips}
    assert nearest != mapped, "the map alone does not know who is nearest"
    assert trips == placement.round_trips(), "drawn by a seed"


# --- what is made of calls --------------------------------------------------------------------------------------


def then(pop: str, near_ms: float, *, has_room: bool = True, in_budget: bool = True, load: float = 0.25) -> PopThen:
    return PopThen(pop, near_ms, has_room, in_budget, load)


def test_the_best_pop_is_the_nearest_of_those_that_may_take_the_call() -> None:
    full, late, near = then("a", 50, has_room=False), then("b", 60, in_budget=False), then("c", 70)
    assert best_ms(PlacementCall("x", [full, late, near])) == 70
    assert best_ms(PlacementCall("x", [full, late, then("far", 200)])) == 60, "none is in time: the nearest with room"
    assert best_ms(PlacementCall("x", [full])) is None
    assert behind_ms(PlacementCall("x", [near, then("d", 85)], "d")) == 15
    assert behind_ms(PlacementCall("x", [near], "")) is None


def test_the_estimate_is_compared_with_what_was_heard_and_with_its_parts() -> None:
    turn = PlacementTurn("a", reckoned_ms=240.0, gap_ms=180.0, latency_ms=148.0, true_ms=30.0, taken_ms=32.0)
    assert {name: values[0] for name, values in errors([turn]).items()} == {
        "reckoned - heard": 20.0,
        "reckoned - heard gap (without playout)": 60.0,
        "predicted - turn latency": 20.0,
        "round trip taken - on the wire": 2.0,
        "heard gap - turn latency - round trip": 2.0,
    }
    good = PlacementCall("berlin", [then("a", 70)], "a", turns=[turn], tries=1)
    far = PlacementCall("berlin", [then("a", 70, load=1.0), then("b", 90)], "b", failure="it is full")
    assert not show([good, far], "NATS", console := printed())
    for part in ("1 of 2 calls (50.0%)", "1 went elsewhere", "1 x it is full", "missed:", "a 1, b 1"):
        assert part in text(console)
    assert show([good], "NATS", printed())


def test_a_call_goes_astray_that_is_refused_turned_away_or_not_answered() -> None:
    near = [then("a", 70)]
    assert misses(PlacementCall("x", near, "a", tries=1)) is False
    assert misses(PlacementCall("x", near, "a", tries=2)), "the first candidate turned it away"
    assert misses(PlacementCall("x", near, failure="refused")), "though a PoP had room"
    assert misses(PlacementCall("x", [then("a", 70, has_room=False)], failure="refused")) is None
    assert worst_ms([], "reckoned - heard", missing=1) == float("inf")


def test_ways_are_compared_with_the_straight_one() -> None:
    taken = {
        STRAIGHT: Taken([10.0, 20.0], [140.0]),
        ASKED: Taken([15.0, 40.0], []),
        RELAYED: Taken([20.0, 30.0], [143.0]),
    }
    assert more(taken, ASKED, "setups", 95) == 19.25
    setup.show(taken, "NATS", console := printed())
    for part in ("asked, then straight: set-up p95 +19.2 ms", "median heard gap +3.0 ms", "+3.0"):
        assert part in text(console)


# --- all of it --------------------------------------------------------------------------------------------------


@pytest.mark.e2e
@pytest.mark.parametrize("nats", [True, False])
async def test_a_directory_answers_the_load(nats: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not nats:
        monkeypatch.setattr(fleet, "_nats", lambda: None)
    async with asyncio.timeout(LONG_S):
        found = await resolve.measured(50, 1.0, pops=5)
    assert len(found.answers.times) == 50 and not found.answers.lost
    assert found.directory_share is None or found.directory_share > 0
    assert found.directory_mb is None or found.directory_mb > 10


@pytest.mark.e2e
async def test_calls_are_placed_in_all_three_ways() -> None:
    async with asyncio.timeout(LONG_S):
        taken, _ = await setup.measured(1, printed())
    assert {way: (len(its.setups), len(its.gaps)) for way, its in taken.items()} == {
        STRAIGHT: (1, 1), ASKED: (1, 0), RELAYED: (1, 1),
    }  # fmt: skip


@pytest.mark.e2e
async def test_calls_from_the_cities_are_placed() -> None:
    async with asyncio.timeout(LONG_S):
        placed, bus = await placement.measured(3, slots=4)
    assert len(placed) == 3
    for call in placed:
        assert call.city in CALLERS and call.pop in POPS and len(call.pops) == 9
        assert not call.failure and call.tries == 1
        assert all(turn.gap_ms > turn.true_ms for turn in call.turns)
    show(placed, bus, printed())


@pytest.mark.parametrize("argv", [["resolve", "--rate", "0"], ["setup", "--calls", "x"], []])
def test_what_cannot_be_measured(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["directory", *argv])
    assert "python -m latency_probes.components directory" in capsys.readouterr().err

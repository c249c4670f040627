"""When a PoP tells the round trips of its calls, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest

from voicepipe.directory import reporter
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.reporter import TRIP_EVERY_S, TripReporter
from voicepipe.directory.subjects import RoundTrip
from voicepipe.line import Line, NetworkQuality

pytestmark = pytest.mark.virtual_time
HOME = "198.51.100.0/24"
SOON_S = 0.01


class FakeLine:
    """Of a caller at home."""

    def __init__(self, rtt_ms: float | None = 20.0, caller_network: str = HOME) -> None:
        self.rtt_ms = rtt_ms
        self.caller_network = caller_network

    def network(self) -> NetworkQuality:
        return NetworkQuality(rtt_ms=self.rtt_ms)


@asynccontextmanager
async def telling() -> AsyncIterator[tuple[TripReporter, list[tuple[float, RoundTrip]]]]:
    """A teller, and what it has told, with the seconds since the beginning."""
    bus, told, loop = MemoryBus(), list[Any](), asyncio.get_running_loop()
    teller, began = TripReporter(bus, "fra"), loop.time()

    async def hear() -> None:
        async with bus.listen("vp.pop.fra.rtt") as messages:
            async for message in messages:
                told.append((round(loop.time() - began), msgspec.json.decode(message.data, type=RoundTrip)))

    tasks = [asyncio.create_task(hear()), asyncio.create_task(teller.run())]
    await asyncio.sleep(SOON_S)
    yield teller, told
    await asyncio.sleep(SOON_S)
    for task in tasks:
        task.cancel()


async def call(teller: TripReporter, line: FakeLine, seconds: float, name: str = "rtc_1") -> None:
    teller.began(name, cast(Line, line))
    await asyncio.sleep(seconds)
    teller.ended(name)
    await asyncio.sleep(SOON_S)


async def test_a_short_call_is_told_of_at_its_end() -> None:
    async with telling() as (teller, told):
        await call(teller, FakeLine(), 4)
        await asyncio.sleep(2 * TRIP_EVERY_S)
    assert told == [(4, RoundTrip(HOME, 20.0))]


async def test_a_long_call_counts_early_and_again_at_its_end() -> None:
    async with telling() as (teller, told):
        await call(teller, FakeLine(), 60)
    assert told == [(10, RoundTrip(HOME, 20.0)), (60, RoundTrip(HOME, 20.0, again=True))]


async def test_the_shortest_of_a_call_is_told() -> None:
    """Full buffers lengthen it for a while. One of 0 says that a clock is wrong."""
    line = FakeLine(300.0)
    async with telling() as (teller, told):
        for after, ms in ((TRIP_EVERY_S + 1, 21.0), (3 * TRIP_EVERY_S, 0.0), (4 * TRIP_EVERY_S, 250.0)):
            asyncio.get_running_loop().call_later(after, setattr, line, "rtt_ms", ms)
        await call(teller, line, 60)
    assert told == [(10, RoundTrip(HOME, 300.0)), (60, RoundTrip(HOME, 21.0, again=True))]


async def test_what_nobody_has_measured_by_then_is_told_later() -> None:
    line = FakeLine(None)
    async with telling() as (teller, told):
        asyncio.get_running_loop().call_later(TRIP_EVERY_S + 1, setattr, line, "rtt_ms", 33.33)
        await call(teller, line, 60)
        await call(teller, FakeLine(None), 60)
        await call(teller, FakeLine(caller_network=""), 60)
    assert told == [(20, RoundTrip(HOME, 33.3)), (60, RoundTrip(HOME, 33.3, again=True))]


async def test_calls_are_not_mixed_up_and_one_that_ends_twice_is_told_of_once() -> None:
    async with telling() as (teller, told):
        await asyncio.gather(call(teller, FakeLine(1.0), 2, "rtc_1"), call(teller, FakeLine(2.0), 3, "rtc_2"))
        teller.ended("rtc_1")
    assert [trip.ms for _, trip in told] == [1.0, 2.0]


async def test_a_bus_that_takes_nothing_costs_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "WAITING", 2)
    teller = TripReporter(MemoryBus(), "fra")
    for number in range(5):
        await call(teller, FakeLine(), 1, f"rtc_{number}")
    assert teller._waiting.qsize() == 2
    assert not teller._calls

"""More and more calls, by WebRTC and by SIP, until a server whose calls are scripted says that it is late."""

import asyncio
import io
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import uvloop
from rich.console import Console

from latency_probes import __main__, capacity
from latency_probes.health import figures, latencies
from latency_probes.webrtc import PacketSink
from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import sip
from tests.ingress.test_calls_api import line
from voicepipe.base.errors import PopFull, ProbeError
from voicepipe.conversation.events import Item, ItemAdded, ReplyDone, ReplyStarted
from voicepipe.conversation.timing import TurnSummary


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "SETTLE_S", 0.5)


def way(by: str, pop: FakePop, address: str) -> capacity.Way:
    return capacity.ways(f"http://{address}", f"127.0.0.1:{pop.config.sip.port}", "", "")[by]


def answered(pop: FakePop, at: float, latency_ms: float | None) -> None:
    """A turn of a call, for the server's own figures."""
    with pop.dashboard.watched("local", "front-desk") as call:
        call.answered("rtc_1", line(), at)
        call.note(ItemAdded(Item("item", text="hello"), None, spoken=True), at)
        call.note(ReplyStarted("resp", f"turn_{at}", "audio"), at)
        call.note(ReplyDone("resp", "completed", record=TurnSummary(turn_latency=latency_ms)), at)


@pytest.mark.parametrize("by", ["webrtc", "sip"])
async def test_it_ends_when_the_loop_is_late(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lags, pop, loop = iter([0.0, 3.0, 0.0, 12.0, 0.0, 25.0]), FakePop(sip()), asyncio.get_running_loop()

    def told(url: str) -> dict[str, float]:
        """Before and after each step's calls are held; the first ones have a turn meanwhile."""
        seen = {**figures(url), "loop_lag_p99_ms": next(lags)}
        if seen["loop_lag_p99_ms"] == 3.0:
            loop.call_soon_threadsafe(answered, pop, time.time(), 150.0)
        return seen

    monkeypatch.setattr(capacity, "figures", told)
    async with serving(pop) as address:
        chosen = way(by, pop, address)
        steps = await capacity.capacity(chosen, f"http://{address}", "", 2, lambda step: None)
    assert [(step.calls, step.loop_lag_p99_ms) for step in steps] == [(2, 3.0), (4, 12.0), (6, 25.0)]
    assert all(step.packets_a_second > 0 and step.generator > 0 and step.server == 0 for step in steps)
    assert (steps[0].turns, steps[0].latency_p50_ms) == (1, 150.0)
    assert len(pop.calls) == 6 and all(call.blocks for call in pop.calls)
    said = io.StringIO()
    capacity.show(chosen, steps, Console(file=said, width=170))
    assert f"one process holds 4 calls by {chosen.name}" in said.getvalue()


@pytest.mark.parametrize("by", ["webrtc", "sip"])
async def test_it_ends_when_a_call_is_refused(by: str) -> None:
    pop = FakePop(sip())
    async with serving(pop) as address:
        steps = await capacity.capacity(
            way(by, pop, address), f"http://{address}", "", 1, lambda step: setattr(pop, "refuse", PopFull("full"))
        )
        assert [step.calls for step in steps] == [1]
        with pytest.raises(ProbeError, match="503"):
            await capacity.capacity(way(by, pop, address), f"http://{address}", "", 1, lambda step: None)


async def test_offered_calls_are_counted_let_in_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "OFFER_S", 0.01)
    pop = FakePop(sip())
    async with serving(pop) as address:
        chosen, placed = way("webrtc", pop, address), list[int]()

        async def place(sink: PacketSink) -> capacity.Call:
            placed.append(1)
            pop.refuse = PopFull("late") if len(placed) > 2 else None
            return await chosen.place(sink)

        step, refused = await capacity.offered(replace(chosen, place=place), f"http://{address}", "", 5)
        assert (step.calls, refused) == (2, 3)
        said = io.StringIO()
        capacity.show_offered(chosen, step, refused, Console(file=said, width=200))
        assert "5 calls by WebRTC offered: 2 let in, 3 refused" in said.getvalue()
        with pytest.raises(ProbeError, match="503"):
            await capacity.offered(chosen, f"http://{address}", "", 1)


async def test_latencies_are_those_of_the_last_seconds() -> None:
    pop = FakePop()
    async with serving(pop) as address:
        now = time.time()
        for at, latency_ms in ((now - 100, 90.0), (now - 20, 100.0), (now - 10, None), (now, 300.0)):
            answered(pop, at, latency_ms)
        assert sorted(await asyncio.to_thread(latencies, f"ws://{address}", "", 50)) == [100.0, 300.0]
    with pytest.raises(ProbeError, match="own figures"):
        await asyncio.to_thread(latencies, "http://127.0.0.1:9", "", 50)


def test_callers_who_cannot_be_so_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["ws://127.0.0.1:9", "--capacity", "2"]) == 2
    assert "add --by" in capsys.readouterr().err

"""Whose turn it is at `nemotron`. The model is a stand-in that says a token in each chunk."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.base.round_robin import owned_by
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.engines.asr.nemotron.front_end import ChunkCutter
from voicepipe.engines.asr.nemotron.nemotron import NemotronStream
from voicepipe.engines.asr.nemotron.steps import Row, StepOutput, Steps
from voicepipe.engines.base import Hypothesis

pytestmark = pytest.mark.virtual_time
STEP_S = 0.05
CHUNK = 2560


class FakeModel:
    """Token n is the n-th chunk of a slot."""

    most, copies = 4, 2

    def __init__(self) -> None:
        self.steps: list[list[Row]] = []
        self.said: dict[int, int] = {}
        self.fails = self.not_finite = False

    def ask(self, hear: Callable[[], Any], *, within_s: float) -> "asyncio.Future[Any]":
        async def run() -> Any:
            await asyncio.sleep(STEP_S)
            if self.fails:
                raise RuntimeError("no memory")
            return hear()

        return asyncio.ensure_future(run())

    def hear(self, rows: Sequence[Row]) -> list[StepOutput]:
        self.steps.append(list(rows))
        assert len({row.slot for row in rows}) == len(rows) <= self.most
        assert sum(row.copies for row in rows) <= self.copies
        return [StepOutput(self._tokens(row), not self.not_finite) for row in rows]

    def _tokens(self, row: Row) -> list[int]:
        first = 0 if row.begins else self.said[row.slot]
        if not row.copies:
            self.said[row.slot] = first + 1
        return [first + number for number in range(len(row.sounds))]

    def try_out(self) -> None:
        pass


def opened(model: FakeModel, streams: int = 8, gather_s: float = 0.0) -> tuple[Steps, Callable[..., NemotronStream]]:
    clock = asyncio.get_running_loop().time
    steps = Steps(model, model, streams, 10.0, clock, gather_s)  # type: ignore[arg-type]

    def stream(call: str = "", told: Callable[[Hypothesis], None] = lambda partial: None) -> NemotronStream:
        with owned_by(call):
            return NemotronStream(steps, told, lambda tokens: " ".join(map(str, tokens)), ChunkCutter(2), 0)

    return steps, stream


def silence(chunks: float) -> Any:
    return np.zeros(round(chunks * CHUNK), np.int16)


async def test_one_step_serves_all_calls() -> None:
    model = FakeModel()
    _, stream = opened(model)
    streams = [stream(f"call {n}") for n in range(3)]
    for each in streams:
        each.feed(silence(3))
    await asyncio.sleep(1)
    assert [len(rows) for rows in model.steps] == [1, 3, 3, 2], "the first does not wait for others"
    began = asyncio.get_running_loop().time()
    finals = await asyncio.gather(*(each.finish() for each in streams))
    assert {final.text for final in finals} == {"0 1 2 3"}
    assert asyncio.get_running_loop().time() - began == pytest.approx(2 * STEP_S), "two copies in a step at most"


async def test_partials_come_with_each_chunk() -> None:
    model = FakeModel()
    _, stream = opened(model)
    told: list[Hypothesis] = []
    one = stream("a", told.append)
    for _ in range(50):
        one.feed(silence(1 / 8))
        await asyncio.sleep(0.02)
    assert [partial.text for partial in told] == ["0", "0 1", "0 1 2", "0 1 2 3", "0 1 2 3 4", "0 1 2 3 4 5"]
    assert [partial.until for partial in told] == [1480 + CHUNK * n for n in range(6)]
    assert await one.settle() == await one.settle() == await one.finish()
    assert len(model.steps) == 7, "what was settled is not heard again"


async def test_a_call_that_is_ahead_of_real_time_takes_a_row_of_each_step() -> None:
    model = FakeModel()
    _, stream = opened(model)
    greedy, settles = [stream("fast") for _ in range(3)], []
    for each in greedy:
        each.feed(silence(200))
        settles.append(asyncio.ensure_future(each.settle()))
    await asyncio.sleep(1)
    loop = asyncio.get_running_loop()
    for number in range(5):
        other = stream(f"call {number}")
        other.feed(silence(0.3))
        began = loop.time()
        assert (await other.finish()).text == "0 1"
        assert loop.time() - began <= 2 * STEP_S + 1e-6
    for each in greedy:
        each.cancel()
    await asyncio.wait(settles)


async def test_slots_are_back_whatever_the_end() -> None:
    model = FakeModel()
    steps, stream = opened(model, 2)
    for number in range(12):
        one = stream("a")
        one.feed(silence(5))
        await asyncio.sleep(STEP_S * (number % 3) / 2)
        settling = asyncio.ensure_future(one.settle())
        await asyncio.sleep(STEP_S * (number % 5) / 2)
        model.fails, model.not_finite = number == 5, number == 7
        if number % 2:
            one.cancel()
        else:
            settling.cancel()
            await asyncio.wait([asyncio.ensure_future(one.finish())])
        await asyncio.gather(settling, return_exceptions=True)
        assert (steps.slots.in_use, steps.slots.waiting, len(steps._since)) == (0, 0, 0)
        model.fails = model.not_finite = False
    await asyncio.sleep(1)
    assert not steps._running and not steps._queue


async def test_a_failed_step_is_told_to_all_in_it_and_to_nobody_else() -> None:
    model = FakeModel()
    _, stream = opened(model)
    one, other = stream("a"), stream("b")
    model.fails = True
    one.feed(silence(2))
    await asyncio.sleep(STEP_S * 1.5)
    model.fails = False
    other.feed(silence(2))
    assert (await other.finish()).text == "0 1 2"
    one.feed(silence(2))
    for _ in range(2):
        with pytest.raises(EngineError, match="no memory"):
            await one.settle()
    with pytest.raises(EngineError, match="no memory"):
        await one.finish()
    model.not_finite = True
    last = stream("c")
    last.feed(silence(2))
    with pytest.raises(EngineError, match="no numbers"):
        await last.finish()


async def test_who_is_over_just_as_a_slot_is_theirs_does_not_use_it() -> None:
    model = FakeModel()
    steps, stream = opened(model, 1)
    first, second, third = (stream(call) for call in "abc")
    for each in (first, second, third):
        each.feed(silence(2.5))
    settling = asyncio.ensure_future(second.settle())
    await asyncio.sleep(STEP_S / 2)
    first.cancel()
    second.cancel()
    assert (await third.finish()).text == "0 1 2 3"
    await asyncio.wait([settling], timeout=1)
    assert settling.cancelled() and steps.slots.in_use == 0


async def test_who_ends_at_partial_words_takes_no_part_any_more() -> None:
    model = FakeModel()
    steps, stream = opened(model, 1)

    def leave(partial: Hypothesis) -> None:
        first.cancel()

    first: NemotronStream = stream("a", leave)
    second = stream("b")
    for each in (first, second):
        each.feed(silence(3))
    assert (await second.finish()).text == "0 1 2 3"
    assert steps.slots.in_use == 0


async def test_a_listener_that_fails_does_not_end_the_hearing() -> None:
    model, told = FakeModel(), []

    def fail(partial: Hypothesis) -> None:
        told.append(partial)
        raise RuntimeError("a call's own")

    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    _, stream = opened(model)
    one = stream("a", fail)
    one.feed(silence(3))
    await asyncio.sleep(1)
    assert [partial.text for partial in told] == ["0", "0 1", "0 1 2"]
    assert (await one.finish()).text == "0 1 2 3"


async def test_each_is_told_of_a_failure_by_an_error_of_its_own() -> None:
    """One has a traceback, which leads to the call that it was raised in."""
    model = FakeModel()
    _, stream = opened(model)
    first = stream("a")
    first.feed(silence(1))  # so that the next step has two calls
    model.fails = True
    streams = [stream("b"), stream("c")]
    for each in streams:
        each.feed(silence(1))
    settles = [each.settle() for each in streams for _ in range(2)]
    errors = await asyncio.gather(*settles, return_exceptions=True)
    assert all(isinstance(error, EngineError) for error in errors)
    assert len({id(error) for error in errors}) == len(errors)
    for each in (first, *streams):
        each.cancel()


async def test_the_end_is_told_to_all_who_wait() -> None:
    model = FakeModel()
    steps, stream = opened(model, 1)
    has, waits = stream("a"), stream("b")
    for each in (has, waits):
        each.feed(silence(3))
    settling = [asyncio.ensure_future(each.settle()) for each in (has, waits)]
    await asyncio.sleep(STEP_S / 2)
    steps.close()
    for error in await asyncio.gather(*settling, return_exceptions=True):
        assert isinstance(error, EngineDead)
    late = stream("c")
    late.feed(silence(0.1))
    with pytest.raises(EngineDead):
        await late.settle()
    for each in (has, waits, late):
        each.cancel()
    assert steps.slots.in_use == 0


async def test_while_nobody_waits_a_step_gathers_calls() -> None:
    """One that began at once for each chunk would keep the device busy with steps for one call."""
    model, clock = FakeModel(), asyncio.get_running_loop().time
    _, stream = opened(model, gather_s=0.2)
    streams = [stream(f"call {number}") for number in range(3)]
    for each in streams:
        each.feed(silence(1))
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    assert [len(step) for step in model.steps] == [1, 2], "the first found nobody before it"
    streams[0].feed(silence(1))
    streams[1].feed(silence(1))
    began = clock()
    await streams[1].settle()
    assert clock() - began < 0.2, "who waits for words does not wait for others"
    for each in streams:
        each.cancel()


async def test_a_call_that_is_behind_catches_up_while_steps_gather() -> None:
    """The longest `gather_ms` that the shortest chunk allows."""
    with pytest.raises(ValueError, match="gather_ms"):
        NemotronConfig(chunk_ms=160, gather_ms=81)
    config, told = NemotronConfig(chunk_ms=160, gather_ms=80), list[Hypothesis]()
    _, stream = opened(FakeModel(), gather_s=config.gather_ms / 1000)
    one = stream("a", told.append)
    one.feed(silence(20))
    for _ in range(30):
        one.feed(silence(1))
        await asyncio.sleep(0.16)
    assert told[-1].until >= (50 - 2) * CHUNK
    one.cancel()


async def test_nothing_rings_for_calls_that_are_over() -> None:
    model = FakeModel()
    steps, stream = opened(model, gather_s=0.2)
    first, second = stream("a"), stream("b")
    first.feed(silence(1))
    second.feed(silence(1))
    await asyncio.sleep(0.06)
    second.cancel()
    steps.close()
    await asyncio.sleep(1)
    assert len(model.steps) == 1

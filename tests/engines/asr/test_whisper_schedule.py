"""Whose turn it is at the model. The model is a stand-in that takes time; the time is virtual."""

import asyncio
from functools import partial
from typing import Any

import numpy as np
import pytest

from voicepipe.base.errors import EngineError
from voicepipe.base.queues import QueueFigures
from voicepipe.engines.asr.whisper_model import Passage, WhisperReading
from voicepipe.engines.asr.whisper_schedule import PARTIALS_S, Passes, PassSchedule, Purpose

SETTLE_S, EACH_S = 0.02, 0.01


def test_words_that_are_waited_for_go_first_in_the_order_in_which_they_were_asked_for() -> None:
    schedule: PassSchedule[str] = PassSchedule(batch=2)
    for who in "abcde":
        schedule.ask(who, Purpose.WORDS if who in "bde" else Purpose.PARTIAL)
    assert [schedule.next() for _ in range(5)] == [["b", "d"], ["e"], ["a"], ["c"], []]


def test_a_gap_goes_before_partials_and_after_words_that_are_waited_for() -> None:
    schedule: PassSchedule[str] = PassSchedule(batch=1)
    for who, purpose in (("a", Purpose.PARTIAL), ("b", Purpose.GAP), ("c", Purpose.WORDS), ("d", Purpose.GAP)):
        schedule.ask(who, purpose)
    schedule.ask("d", Purpose.PARTIAL)
    schedule.ask("a", Purpose.WORDS)
    assert [schedule.next() for _ in range(5)] == [["c"], ["a"], ["b"], ["d"], []]


def test_partials_leave_one_of_several_passes_to_the_others() -> None:
    schedule: PassSchedule[str] = PassSchedule(batch=1, passes=3)
    for who in "abcd":
        schedule.ask(who)
    assert [schedule.next(running) for running in range(4)] == [["a"], ["b"], [], []]
    schedule.ask("e", Purpose.GAP)
    assert [schedule.next(3), schedule.next(2)] == [[], ["e"]]


def test_nobody_is_read_twice_for_one_request() -> None:
    schedule: PassSchedule[str] = PassSchedule(batch=8)
    schedule.ask("a")
    schedule.ask("a", Purpose.WORDS)
    schedule.ask("a")
    schedule.ask("b", Purpose.WORDS)
    schedule.withdraw("b")
    schedule.withdraw("c")
    assert [schedule.next(), schedule.next()] == [["a"], []]


def test_those_of_a_pass_that_failed_are_read_one_by_one_before_all_others() -> None:
    schedule: PassSchedule[str] = PassSchedule(batch=8)
    for who in "abcd":
        schedule.ask(who, Purpose.WORDS)
    failed = schedule.next()
    schedule.ask("e", Purpose.WORDS)
    schedule.again(failed)
    schedule.withdraw("b")
    assert [schedule.next() for _ in range(5)] == [["a"], ["c"], ["d"], ["e"], []]


@pytest.mark.parametrize(("each_s", "most"), [(0.001, (8,)), (PARTIALS_S / 3, (3, 4)), (1.0, (1,))])
def test_a_pass_for_partials_is_as_large_as_there_is_time_for_it(each_s: float, most: tuple[int, ...]) -> None:
    schedule: PassSchedule[int] = PassSchedule(batch=8)
    sizes = []
    for _ in range(20):
        for who in range(20):
            schedule.ask(who)
        sizes.append(len(schedule.next()))
        schedule.took(sizes[-1], each_s * sizes[-1])
    assert sizes[0] == 1 and set(sizes[10:]) == set(most)


def test_a_call_that_ends_a_hundred_utterances_at_once_does_not_hold_up_another() -> None:
    schedule: PassSchedule[str] = PassSchedule(batch=2)
    for n in range(100):
        schedule.ask(f"flood {n}", Purpose.WORDS, "flood")
    schedule.ask("one", Purpose.WORDS, "other")
    assert "one" in schedule.next()


class FakeWorker:
    """Takes SETTLE_S and EACH_S more for each utterance of a pass."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.fails = False

    def ask(self, read: "partial[list[WhisperReading]]", *, within_s: float) -> "asyncio.Future[Any]":
        return asyncio.ensure_future(self._run(read))

    async def _run(self, read: "partial[list[WhisperReading]]") -> list[WhisperReading]:
        (given,) = read.args
        self.batches.append(len(given))
        await asyncio.sleep(SETTLE_S + EACH_S * len(given))
        if self.fails:
            raise RuntimeError("out of memory")
        return read()


class Caller:
    """Speaks for ever; asks for a partial each 200 ms, and after each second for its words."""

    owner = ""

    def __init__(self, passes: Passes) -> None:
        self.partials, self.waits, self.errors = 0, [0.0], list[Exception]()
        self._passes = passes
        self._fed = 0
        self._waiting: asyncio.Future[None] | None = None

    async def speak(self, seconds: int) -> None:
        for _ in range(seconds):
            for _ in range(4):
                await asyncio.sleep(0.2)
                self._fed += 1
                self._passes.ask(self)
            await asyncio.sleep(0.2)
            self._fed += 1
            asked = asyncio.get_running_loop().time()
            self._waiting = asyncio.get_running_loop().create_future()
            self._passes.ask(self, Purpose.WORDS)
            await self._waiting
            self.waits.append(asyncio.get_running_loop().time() - asked)

    def next_input(self) -> Passage:
        return Passage(np.zeros(0, np.int16), upto=self._fed)

    def on_result(self, given: Passage, made: WhisperReading) -> None:
        if self._waiting and not self._waiting.done() and given.upto == self._fed:
            self._waiting.set_result(None)
        else:
            self.partials += 1

    def on_abandoned(self, given: Passage) -> None:
        raise AssertionError("nobody was asked whether the words are wanted")

    def on_failure(self, error: Exception) -> None:
        self.errors.append(error)


async def spoken(callers: int) -> tuple[list[Caller], FakeWorker, QueueFigures]:
    worker = FakeWorker()
    clock = asyncio.get_running_loop().time
    passes = Passes(worker, lambda given: [WhisperReading(())] * len(given), 8, clock, Passage(np.zeros(0, np.int16)))  # type: ignore[arg-type]
    calls = [Caller(passes) for _ in range(callers)]

    async def join(number: int, call: Caller) -> None:
        await asyncio.sleep(0.037 * number % 1)
        await call.speak(20)

    await asyncio.gather(*(join(number, call) for number, call in enumerate(calls)))
    figures = passes.figures()
    assert figures
    return calls, worker, figures


@pytest.mark.virtual_time
async def test_under_load_there_are_fewer_partials_and_final_words_are_as_soon_as_ever() -> None:
    """40 calls want 160 partials a second, and 40 times words, of a model that reads 66 to 80."""
    (alone,), _, waits = await spoken(1)
    many, worker, long_waits = await spoken(40)
    assert alone.partials == 80 and max(alone.waits) < 0.07
    assert all(0 < call.partials < 60 for call in many), "fewer, and some for everyone"
    assert max(max(call.waits) for call in many) < 0.3
    assert 4 < max(worker.batches) <= 8
    assert (waits.begun, long_waits.begun, long_waits.waiting) == (20, 800, 0), "those whose words were waited for"
    assert waits.waited_s / 20 < 0.01 < long_waits.waited_s / 800 < 0.1


@pytest.mark.virtual_time
async def test_who_took_part_in_a_pass_that_failed_is_told_and_the_next_pass_runs() -> None:
    worker = FakeWorker()
    clock = asyncio.get_running_loop().time
    passes = Passes(worker, lambda given: [WhisperReading(())] * len(given), 8, clock, Passage(np.zeros(0, np.int16)))  # type: ignore[arg-type]
    caller, other = Caller(passes), Caller(passes)
    worker.fails = True
    passes.ask(caller, Purpose.WORDS)
    passes.ask(other, Purpose.WORDS)
    await asyncio.sleep(0.035)
    worker.fails = False
    await asyncio.sleep(1)
    assert [str(error) for error in caller.errors] == ["Whisper failed: out of memory"]
    assert not other.errors and other.partials == 1
    assert isinstance(caller.errors[0], EngineError)


@pytest.mark.virtual_time
async def test_one_that_cannot_be_read_is_no_matter_of_the_others_of_its_pass() -> None:
    def read(given: list[Passage]) -> list[WhisperReading]:
        if any(passage.upto == 13 for passage in given):
            raise RuntimeError("no such sound")
        return [WhisperReading(())] * len(given)

    worker = FakeWorker()
    passes = Passes(worker, read, 8, asyncio.get_running_loop().time, Passage(np.zeros(0, np.int16)))  # type: ignore[arg-type]
    callers = [Caller(passes) for _ in range(5)]
    callers[2]._fed = 13
    for caller in callers:
        passes.ask(caller, Purpose.WORDS)
    await asyncio.sleep(1)
    assert worker.batches == [1, 4, 1, 1, 1, 1]
    assert [caller.partials for caller in callers] == [1, 1, 0, 1, 1]
    assert [len(caller.errors) for caller in callers] == [0, 0, 1, 0, 0]
    assert not passes.failures.broken


@pytest.mark.virtual_time
@pytest.mark.parametrize("all_fail", [False, True])
async def test_passes_that_fail_in_a_row_are_the_model_s_end_only_if_a_trial_fails_too(all_fail: bool) -> None:
    """One caller's sound may be to blame."""

    def read(given: list[Passage]) -> list[WhisperReading]:
        if all_fail or any(passage.upto == 13 for passage in given):
            raise RuntimeError("no such sound")
        return [WhisperReading(())] * len(given)

    clock = asyncio.get_running_loop().time
    passes = Passes(FakeWorker(), read, 8, clock, Passage(np.zeros(0, np.int16)))  # type: ignore[arg-type]
    caller = Caller(passes)
    caller._fed = 13
    for _ in range(5):
        passes.ask(caller, Purpose.WORDS)
        await asyncio.sleep(1)
    assert len(caller.errors) == 5
    assert passes.failures.broken is all_fail

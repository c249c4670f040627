import asyncio
import gc
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from tests.support.waiting import until
from voicepipe.base import queues
from voicepipe.base.cpu_steal import CpuSteal
from voicepipe.base.errors import EngineBusy, EngineDead, EngineError, OverQueued
from voicepipe.base.round_robin import Ring, RoundRobin, owned_by
from voicepipe.base.worker import EACH, Job, Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("test", 2, limit=8)
    yield worker
    worker.close()


async def test_a_job_returns_its_result_or_raises(worker: Worker) -> None:
    assert await worker.submit(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await worker.submit(divmod, 7, 0)


async def test_the_loop_goes_on_meanwhile(worker: Worker) -> None:
    free = threading.Event()
    waiting = worker.submit(free.wait, 5)
    await asyncio.sleep(0)
    free.set()
    assert await waiting


async def test_too_many_jobs_are_refused_at_once(worker: Worker) -> None:
    free = threading.Event()
    jobs = [worker.submit(free.wait, 5) for _ in range(8)]
    with pytest.raises(EngineBusy):
        worker.submit(free.wait)
    free.set()
    await asyncio.gather(*jobs)
    await asyncio.sleep(0.01)
    assert await worker.submit(free.is_set)


async def test_it_tells_how_full_it_is_and_how_long_jobs_waited(worker: Worker) -> None:
    free = threading.Event()
    jobs = [worker.submit(free.wait, 5) for _ in range(8)]
    with pytest.raises(EngineBusy):
        worker.submit(free.wait)
    await until(lambda: len(worker._running) == 2)
    assert (figures := worker.figures())
    assert (figures.name, figures.waiting, figures.running, figures.limit, figures.refused) == ("test", 6, 2, 8, 1)
    assert figures.begun == 2
    await asyncio.sleep(0.05)
    free.set()
    await asyncio.gather(*jobs)
    assert (figures := worker.figures())
    assert (figures.waiting, figures.begun) == (0, 8)
    assert figures.waited_s > 6 * 0.05, "six of them waited for the first two"
    assert figures in queues.shown()
    worker.close()
    assert worker.figures() is None


async def test_after_close_there_is_a_clear_error(worker: Worker) -> None:
    worker.close()
    worker.close()
    with pytest.raises(EngineError):
        worker.submit(time.time)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a niceness of their own on Linux only")
async def test_only_the_threads_yield() -> None:
    worker = Worker("nice", nice=3)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    inside = await worker.submit(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
    worker.close()
    assert inside == min(before + 3, 19)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


async def test_an_urgent_job_overtakes_those_that_wait() -> None:
    worker = Worker("one", 1)
    free = threading.Event()
    ran: list[str] = []
    busy = worker.submit(free.wait, 5)
    others = [worker.submit(ran.append, "other") for _ in range(3)]
    urgent = worker.ask(lambda: ran.append("urgent"), urgent=True)
    free.set()
    await asyncio.gather(busy, *others, urgent)
    worker.close()
    assert ran == ["urgent", "other", "other", "other"]


async def test_a_cancelled_job_does_not_run() -> None:
    worker = Worker("one", 1)
    free = threading.Event()
    ran: list[int] = []
    busy = worker.submit(free.wait, 5)
    cancelled = worker.submit(ran.append, 1)
    cancelled.cancel()
    await asyncio.sleep(0)  # The worker is told in the loop's next turn.
    free.set()
    assert await busy
    await worker.submit(ran.append, 2)
    worker.close()
    assert ran == [2]


async def test_a_call_with_a_thousand_jobs_delays_another_calls_one_by_one() -> None:
    worker = Worker("fair", 1)
    free = threading.Event()
    ran: list[str] = []
    busy = worker.submit(free.wait, 5)
    with owned_by("flood"):
        flood = [worker.submit(ran.append, "flood") for _ in range(EACH)]
        with pytest.raises(OverQueued, match="One call has"):
            worker.submit(ran.append, "flood")
    with owned_by("other"):
        one = worker.submit(ran.append, "other")
    free.set()
    await asyncio.gather(busy, one, *flood)
    worker.close()
    assert ran.index("other") <= 1, "it waits for the job that runs, and for one of the flood's"


async def test_what_a_call_gave_up_counts_for_nothing() -> None:
    """Settings that are replaced all the time cancel what was begun for them."""
    worker = Worker("given-up", 1)
    free = threading.Event()
    busy = worker.submit(free.wait, 5)
    for _ in range(20 * EACH):
        worker.submit(time.sleep, 0.1).cancel()
        await asyncio.sleep(0)
    assert len(worker._queue) == 0
    one = worker.submit(divmod, 7, 2)
    free.set()
    assert await busy and await one == (3, 1)
    worker.close()


def test_what_is_urgent_goes_first_and_is_fair_and_stops_nobody_for_ever() -> None:
    fair: RoundRobin[str] = RoundRobin()
    for n in range(8):
        fair.put(f"a{n}", "a", urgent=True)
    fair.put("b0", "b", urgent=True)
    fair.put("c0", "c")
    fair.put("c1", "c")
    fair.put("c1", "c", urgent=True)
    assert [fair.pop() for _ in range(5)] == ["a0", "b0", "c1", "c0", "a1"]
    fair.remove("a2")
    assert fair.pop() == "a3" and len(fair) == fair.of("a") == 4


def test_taking_turns_costs_the_same_however_much_waits() -> None:
    """Work is counted: how often an item is compared or hashed, which is all that the structure does with it."""

    class Item:
        looked = 0

        def __hash__(self) -> int:
            Item.looked += 1
            return id(self)

        def __eq__(self, other: object) -> bool:
            Item.looked += 1
            return self is other

    costs = []
    for count in (1000, 4000):
        ring: Ring[Item] = Ring()
        items = [Item() for _ in range(count)]
        Item.looked = 0
        for n, item in enumerate(items):
            ring.put(item, f"call {n % 7}")
        for item in items[::3]:
            ring.remove(item)
        while ring.pop() is not None:
            pass
        costs.append(Item.looked / count)
    assert costs[1] < 1.5 * costs[0]


async def test_a_job_that_hangs_is_told_and_left_behind() -> None:
    worker = Worker("hangs", 1)
    free = threading.Event()
    hangs = worker.ask(free.wait, within_s=0.05)
    waits = worker.ask(lambda: None, within_s=60)
    while not worker.overdue():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    worker.close(EngineDead("it hangs"))
    with pytest.raises(EngineDead, match="it hangs"):
        worker.submit(len, "who comes later is told the same")
    for job in (hangs, waits):
        with pytest.raises(EngineDead, match="it hangs"):
            await job
    free.set()  # What it brings in the end interests nobody.
    await asyncio.to_thread(worker.join, 5)
    assert not worker.overdue()


async def test_where_one_thread_hangs_who_waits_for_another_is_told_too() -> None:
    """A library that hangs as a whole holds up all threads; their limits end at other moments."""
    worker = Worker("hangs", 2)
    free = threading.Event()
    first, other = worker.ask(free.wait, within_s=0.05), worker.ask(free.wait, within_s=600)
    await until(lambda: len(worker._running) == 2 and worker.overdue())
    worker.close(EngineDead("it hangs"))
    ends = await asyncio.wait_for(asyncio.gather(first, other, return_exceptions=True), 60)
    free.set()
    assert [str(end) for end in ends] == ["it hangs"] * 2


def test_what_was_found_to_hang_is_not_well_again_while_its_engine_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(lambda: None, within_s=1.0)
    job.begin(100.0)
    monkeypatch.setattr(CpuSteal, "seconds", lambda cpu_steal: 0.0)
    assert job.overdue(101.1)
    monkeypatch.setattr(CpuSteal, "seconds", lambda cpu_steal: 60.0)
    assert job.overdue(101.2)


def test_a_healthy_job_is_not_overdue_for_waiting() -> None:
    job = Job(lambda: None, within_s=1.0)
    assert not job.overdue(1e9)
    job.begin(100.0)
    assert not job.overdue(100.9) and job.overdue(101.1)


async def test_a_process_that_was_stopped_does_not_wake_up_to_jobs_that_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_s, real = 0.0, time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + stopped_s)
    worker, free = Worker("stopped", 1), threading.Event()
    asked = worker.ask(lambda: free.wait(60), within_s=10.0)
    await until(lambda: any(job.due < math.inf for job in worker._running))
    assert not worker.overdue()
    stopped_s = 15.0
    assert not worker.overdue(), "it had no time to end"
    for _ in range(100):
        stopped_s += 0.9
        worker.overdue()
    assert worker.overdue(), "whoever looks again and again finds it"
    free.set()
    assert await asked
    worker.close()


async def test_the_loop_does_not_wait_for_a_job_that_begins(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads files first."""
    begins, free, freed = threading.Event(), threading.Event(), []

    class Slow(CpuSteal):
        def __init__(self) -> None:
            begins.set()
            freed.append(free.wait(20))
            super().__init__()

    monkeypatch.setattr("voicepipe.base.worker.CpuSteal", Slow)
    slow = worker.ask(time.time, within_s=60)
    await asyncio.to_thread(begins.wait, 20)
    other = worker.submit(divmod, 7, 2)
    free.set()
    assert await other == (3, 1) and await slow and freed == [True]


async def test_two_jobs_of_one_step_wake_two_threads() -> None:
    worker = Worker("two", 2)
    await worker.submit(time.sleep, 0)
    await until(lambda: worker._idle == 1)
    meet = threading.Barrier(2, timeout=20)
    await asyncio.gather(worker.submit(meet.wait), worker.submit(meet.wait))
    worker.close()


async def test_a_system_without_threads_is_told_and_another_thread_takes_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    none, some = Worker("none", 2), Worker("some", 2)
    free = threading.Event()
    busy = some.submit(free.wait, 20)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(EngineBusy, match="cannot have a thread"):
        none.submit(time.time)
    waits = some.submit(divmod, 7, 2)
    free.set()
    assert await waits == (3, 1) and await busy
    monkeypatch.undo()
    assert await none.submit(divmod, 7, 2) == (3, 1)
    none.close()
    some.close()


async def test_each_who_waits_at_the_end_is_told_by_an_error_of_its_own() -> None:
    """One that all share would keep what each of them knows, by its traceback."""
    worker = Worker("ends", 1)
    free = threading.Event()
    running = worker.submit(free.wait, 20)
    await until(lambda: bool(worker._running))
    waiting = [worker.submit(time.time) for _ in range(3)]
    worker.close(EngineDead("It is over."))
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(end) for end in ends] == ["It is over."] * 3 and len(set(map(id, ends))) == 3
    free.set()
    await running


async def test_what_a_job_knew_is_freed_without_the_garbage_collector(worker: Worker) -> None:
    class Known:
        def work(self) -> int:
            return 7

    gc.disable()
    try:
        known = Known()
        kept = weakref.ref(known)
        assert await worker.submit(known.work) == 7
        del known
        await until(lambda: kept() is None)
    finally:
        gc.enable()

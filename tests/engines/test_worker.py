import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from voicepipe.engines.worker import Worker
from voicepipe.errors import EngineBusy, EngineError


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


async def test_after_close_there_is_a_clear_error(worker: Worker) -> None:
    worker.close()
    worker.close()
    with pytest.raises(EngineError):
        worker.submit(time.time)
    with pytest.raises(EngineError):
        await worker.lane().post(time.time)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a niceness of their own on Linux only")
async def test_only_the_threads_yield() -> None:
    worker = Worker("nice", nice=3)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    inside = await worker.submit(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
    worker.close()
    assert inside == min(before + 3, 19)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


async def test_a_lane_keeps_order_and_never_overlaps(worker: Worker) -> None:
    done: list[int] = []
    inside = threading.Lock()

    def job(number: int) -> None:
        assert inside.acquire(blocking=False)
        time.sleep(0.002)
        done.append(number)
        inside.release()

    lane = worker.lane()
    await asyncio.gather(*(lane.post(job, number) for number in range(20)))
    assert done == list(range(20))


async def test_lanes_do_not_wait_for_each_other(worker: Worker) -> None:
    free = threading.Event()
    slow = worker.lane().post(free.wait, 5)
    assert await worker.lane().post(divmod, 7, 2) == (3, 1)
    free.set()
    assert await slow


async def test_what_is_urgent_overtakes_other_lanes_and_takes_its_own_along() -> None:
    worker = Worker("one", 1)
    free = threading.Event()
    ran: list[str] = []

    def slow(name: str) -> None:
        time.sleep(0.02)
        ran.append(name)

    busy = worker.submit(free.wait, 5)
    others = [worker.lane().post(slow, "other") for _ in range(9)]
    lane = worker.lane()
    mine = [lane.post(ran.append, "before"), lane.post_urgent(ran.append, "urgent"), lane.post(ran.append, "after")]
    free.set()
    await asyncio.gather(busy, *others, *mine)
    worker.close()
    assert ran[0] == "before"
    assert ran.index("urgent") < len(others), (
        "one job may begin before the loop has handed the next one of the lane over"
    )
    assert ran.index("urgent") < ran.index("after")


async def test_an_urgent_job_overtakes_those_that_wait() -> None:
    worker = Worker("one", 1)
    free = threading.Event()
    ran: list[str] = []
    busy = worker.submit(free.wait, 5)
    others = [worker.submit(ran.append, "other") for _ in range(3)]
    urgent = worker.submit_urgent(ran.append, "urgent")
    free.set()
    await asyncio.gather(busy, *others, urgent)
    worker.close()
    assert ran == ["urgent", "other", "other", "other"]


async def test_a_job_that_fails_does_not_stop_its_lane(worker: Worker) -> None:
    lane = worker.lane()
    failing, working = lane.post(divmod, 7, 0), lane.post(divmod, 7, 2)
    assert await working == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await failing


async def test_dropped_and_cancelled_jobs_do_not_run(worker: Worker) -> None:
    free = threading.Event()
    ran: list[int] = []
    lane = worker.lane()
    running = lane.post(free.wait, 5)
    cancelled, dropped = lane.post(ran.append, 1), lane.post(ran.append, 2)
    cancelled.cancel()
    lane.drop()
    assert dropped.cancelled()
    free.set()
    assert await running
    await lane.post(ran.append, 3)
    assert ran == [3]


async def test_a_cancelled_wait_leaves_the_lane_in_order(worker: Worker) -> None:
    free = threading.Event()
    lane = worker.lane()
    running = lane.post(free.wait, 5)
    await asyncio.sleep(0.01)
    running.cancel()
    after = lane.post(free.is_set)
    await asyncio.sleep(0.01)
    assert not after.done()
    free.set()
    assert await after

"""The clock of the other tests."""

import asyncio
import time

import pytest

from tests.support import virtual_time
from voicepipe.base.errors import EngineError
from voicepipe.base.worker import Worker


@pytest.mark.virtual_time
async def test_an_hour_takes_no_time_and_ends_on_the_dot() -> None:
    began, loop = time.monotonic(), asyncio.get_running_loop()
    order: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        order.append(f"{name} at {loop.time() - virtual_time.START:g}")

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("slow", 3600))
        group.create_task(sleeper("quick", 0.02))
    assert order == ["quick at 0.02", "slow at 3600"]
    assert time.monotonic() - began < 5


@pytest.mark.virtual_time
async def test_timeouts_fire() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await asyncio.Event().wait()


def test_a_wait_that_nothing_can_end_is_an_error() -> None:
    async def stuck() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="never happen"):
        virtual_time.run(stuck())


@pytest.mark.virtual_time
async def test_a_moment_nearer_than_a_nanosecond_comes() -> None:
    loop = asyncio.get_running_loop()
    until, woken = loop.time() + 1e-13, 0
    while loop.time() < until:
        await asyncio.sleep(until - loop.time())
        woken += 1
        assert woken < 10, "the clock stands still"


def test_threads_are_refused() -> None:
    with pytest.raises(RuntimeError, match="no threads"):
        virtual_time.run(asyncio.to_thread(time.time))


async def test_other_tests_keep_the_real_clock() -> None:
    assert not isinstance(asyncio.get_running_loop(), virtual_time.VirtualTimeLoop)


@pytest.mark.virtual_time
async def test_what_a_worker_does_takes_no_time_however_slow_its_machine_is() -> None:
    began = asyncio.get_running_loop().time()
    ticks = asyncio.create_task(asyncio.sleep(0.02))
    worker = Worker("slow")
    assert await worker.submit(lambda: sum(range(1_000_001))) == 500_000_500_000
    with pytest.raises(ZeroDivisionError):
        await worker.submit(lambda: 1 / 0)
    worker.close()
    with pytest.raises(EngineError, match="closed"):
        worker.submit(time.time)
    assert asyncio.get_running_loop().time() == began and not ticks.done()
    await ticks

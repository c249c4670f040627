"""A group of tasks that is cancelled leaves nothing that waits for the cycle collector. A background job that fails is
told of, begun again, and ends nothing else."""

import asyncio
import gc
import logging
import weakref
from itertools import pairwise

import pytest

from voicepipe.base.tasks import FIRST_PAUSE_S, LONGEST_PAUSE_S, TaskGroup, supervised


class Job:
    async def run(self, *, waits_inside: bool) -> None:
        async with TaskGroup() as tasks:
            tasks.create_task(asyncio.sleep(3600))
            if waits_inside:
                await asyncio.sleep(3600)


@pytest.mark.parametrize("waits_inside", [True, False])
@pytest.mark.parametrize("is_awaited", [True, False])
async def test_one_that_is_cancelled_is_freed_at_once(waits_inside: bool, is_awaited: bool) -> None:
    job = Job()
    left = weakref.ref(job)
    gc.disable()
    try:
        task = asyncio.create_task(job.run(waits_inside=waits_inside))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        if is_awaited:
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await asyncio.wait({task})
        assert task.cancelled()
        del task, job
        await asyncio.sleep(0)
        assert left() is None
    finally:
        gc.enable()


async def test_what_fails_in_it_is_told_as_ever() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(ExceptionGroup) as caught:
        async with TaskGroup() as tasks:
            tasks.create_task(fail())
            await asyncio.sleep(3600)
    assert [str(error) for error in caught.value.exceptions] == ["'x'"]


@pytest.mark.virtual_time
async def test_a_job_that_fails_is_begun_again_and_told(caplog: pytest.LogCaptureFixture) -> None:
    runs = 0

    async def job() -> None:
        nonlocal runs
        runs += 1
        if runs < 4:
            raise OSError(24, "Too many open files")

    async with asyncio.TaskGroup() as group:
        group.create_task(supervised("rereading agents", job))
    assert runs == 4
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 3
    assert "rereading agents failed and is begun again in 0.05 s: OSError(24" in caplog.text


@pytest.mark.virtual_time
async def test_one_that_always_fails_writes_a_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def job() -> None:
        raise ValueError

    task = asyncio.create_task(supervised("x", job))
    await asyncio.sleep(3600)
    assert not task.done()
    task.cancel()
    assert 60 <= len(caplog.records) <= 75


@pytest.mark.virtual_time
async def test_one_that_held_out_is_begun_again_at_once() -> None:
    loop = asyncio.get_running_loop()
    began: list[float] = []

    async def job() -> None:
        began.append(loop.time())
        await asyncio.sleep(2 * LONGEST_PAUSE_S)
        raise ValueError

    task = asyncio.create_task(supervised("x", job))
    await asyncio.sleep(20 * LONGEST_PAUSE_S)
    task.cancel()
    assert [round(later - sooner - 2 * LONGEST_PAUSE_S, 3) for sooner, later in pairwise(began)] == [FIRST_PAUSE_S] * 9


@pytest.mark.virtual_time
async def test_cancelling_ends_it() -> None:
    task = asyncio.create_task(supervised("x", asyncio.Event().wait))  # type: ignore[arg-type]
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

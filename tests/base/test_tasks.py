"""A group of tasks that is cancelled leaves nothing that waits for the cycle collector."""

import asyncio
import gc
import weakref

import pytest

from voicepipe.base.tasks import TaskGroup


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

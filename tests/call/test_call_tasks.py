"""The tasks of one call: they end with it, and if one fails, the call does."""

import asyncio

import pytest

from voicepipe.base.errors import EngineError, cause
from voicepipe.base.round_robin import owner
from voicepipe.call.call_tasks import CallTasks

pytestmark = pytest.mark.virtual_time


async def works(result: str = "done", takes_s: float = 1.0) -> str:
    await asyncio.sleep(takes_s)
    return result


async def test_a_job_is_the_call_s_and_leaving_waits_for_it() -> None:
    async def whose() -> str:
        return owner()

    async with CallTasks("rtc_1") as tasks:
        its, slow = tasks.spawn(whose()), tasks.spawn(works())
        assert tasks.running
    assert (await its, await slow) == ("rtc_1", "done")
    assert not tasks.running and owner() == ""


async def test_one_that_fails_ends_the_others_and_what_it_met_is_raised() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        async with CallTasks("rtc_1") as tasks:
            slow = tasks.spawn(works(takes_s=60))
            tasks.fail(EngineError("it broke"))
            await asyncio.sleep(0.1)
    assert slow.cancelled() and str(cause(raised.value)) == "it broke"


async def test_nothing_is_begun_once_the_call_is_over() -> None:
    async with CallTasks("rtc_1") as tasks:
        slow = tasks.spawn(works(takes_s=60))
        tasks.cancel()
        never = tasks.spawn(works())
    assert slow.cancelled() and never.cancelled() and tasks.over


async def test_nothing_is_begun_while_the_others_end_since_one_has_failed() -> None:
    begun: list[asyncio.Future[str]] = []

    async def begins_another() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            begun.append(tasks.spawn(works()))

    with pytest.raises(ExceptionGroup):
        async with CallTasks("rtc_1") as tasks:
            tasks.spawn(begins_another())
            await asyncio.sleep(0)
            tasks.fail(EngineError("it broke"))
    assert [never.cancelled() for never in begun] == [True]


async def test_an_error_that_comes_when_the_call_is_over_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with CallTasks("rtc_1") as tasks:
        tasks.cancel()
        tasks.fail(EngineError("it broke"))
    assert caplog.messages == ["rtc_1: it broke"]


async def test_jobs_are_not_begun_before_the_call() -> None:
    with pytest.raises(RuntimeError):
        CallTasks("rtc_1").spawn(works())

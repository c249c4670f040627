"""Who pays for a piece of work is told what each of its steps took."""

import asyncio
from collections.abc import Generator

import pytest

from voicepipe.base.cpu_metering import Metered, PaidBy, Payer, charged


class Account:
    """A clock that each step of a job turns on, and what was told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.told: list[float] = []
        self.payer = Payer(self.told.append, lambda: self.now)

    async def works(self, *steps: float) -> str:
        for step in steps:
            self.now += step
            await asyncio.sleep(0)
        return "done"


async def test_each_step_is_told_and_no_wait() -> None:
    account = Account()
    with PaidBy(account.payer):
        job = charged(account.works(2.0, 3.0))
    account.now += 100
    assert await asyncio.create_task(job) == "done"
    assert account.told == [2.0, 3.0, 0.0]


async def test_where_nobody_pays_the_job_stays_as_it_is() -> None:
    account = Account()
    with PaidBy(account.payer):
        pass
    job = account.works(1.0)
    assert charged(job) is job
    await job
    assert account.told == []


async def test_of_two_who_pay_the_inner_one_does() -> None:
    outer, inner = Account(), Account()
    with PaidBy(outer.payer):
        with PaidBy(inner.payer):
            job = charged(inner.works())
        outer_job = charged(outer.works())
    for each in (job, outer_job):
        assert await asyncio.create_task(each) == "done"
    assert (inner.told, outer.told) == ([0.0], [0.0])


async def test_a_cancellation_is_a_step_too() -> None:
    account = Account()

    async def tidies_up() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            account.now += 4.0

    task = asyncio.create_task(Metered(tidies_up(), account.payer))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert account.told == [0.0, 4.0]


def test_a_step_that_fails_is_told() -> None:
    account = Account()

    def fails() -> Generator[None, None, None]:
        account.now += 1.5
        raise ValueError("no")
        yield

    with pytest.raises(ValueError, match="no"):
        next(Metered(fails(), account.payer))
    assert account.told == [1.5]

"""Calls that a provider tells twice, or to two directories, are seen to once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from voicepipe.directory import call_claims
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.call_claims import CLAIMS, CallClaims


@asynccontextmanager
async def directories(bus: MemoryBus, count: int) -> AsyncIterator[list[CallClaims]]:
    made = [CallClaims(bus) for _ in range(count)]
    async with asyncio.TaskGroup() as group:
        jobs = [group.create_task(each.run()) for each in made]
        await asyncio.sleep(0)
        yield made
        for job in jobs:
            job.cancel()


def is_wanted(by: CallClaims, call: str) -> bool:
    with by.seeing_to(call) as wanted:
        return wanted


async def test_a_call_that_was_seen_to_is_wanted_by_no_directory() -> None:
    async with directories(MemoryBus(), 2) as (one, other):
        with one.seeing_to("call") as wanted:
            assert wanted
            await one.done("call")
        await asyncio.sleep(0.01)
        assert not is_wanted(one, "call") and not is_wanted(other, "call")
        assert is_wanted(other, "another")


async def test_while_a_call_is_seen_to_it_is_told_again_in_vain() -> None:
    async with directories(MemoryBus(), 2) as (one, other):
        with one.seeing_to("call"):
            assert not is_wanted(one, "call")
            assert is_wanted(other, "call"), "nobody has said that it is done"
            assert not is_wanted(one, "call"), "who was told in vain changes nothing"


async def test_a_call_that_was_not_seen_to_is_wanted_again() -> None:
    async with directories(MemoryBus(), 1) as (one,):
        with pytest.raises(ConnectionError), one.seeing_to("call") as wanted:
            assert wanted
            raise ConnectionError
        assert is_wanted(one, "call")


async def test_the_oldest_calls_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_claims, "KEPT", 3)
    async with directories(MemoryBus(), 1) as (one,):
        for number in range(4):
            await one.done(str(number))
        assert [is_wanted(one, str(number)) for number in range(4)] == [True, False, False, False]


async def test_what_cannot_be_read_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    bus = MemoryBus()
    async with directories(bus, 2) as (one, other):
        for data in (b"", b"{}", b"[", b"\xff"):
            await bus.publish(CLAIMS, data)
        await one.done("call")
        await asyncio.sleep(0.01)
        assert not is_wanted(other, "call")
    assert "cannot be read" in caplog.text

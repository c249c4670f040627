"""A PoP that hears another one again reports at once: whoever stands behind it has missed this one, too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from tests.directory.reports import condition, report
from voicepipe.config import Config
from voicepipe.directory import subjects
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.fleet_view import LEASE_S
from voicepipe.directory.reporter import EVERY_S, UNEVEN
from voicepipe.pop.membership import ANSWERED_S, Membership

pytestmark = pytest.mark.virtual_time
OURS = Config().pop.id


class Site:
    """Our PoP on a bus, and when it reported."""

    def __init__(self) -> None:
        self.bus = MemoryBus()
        self.reported: list[float] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        member = Membership(self.bus, Config(), condition, asyncio.get_running_loop().time)
        async with asyncio.TaskGroup() as group:
            jobs = [group.create_task(job) for job in (self._watch(), member.listen(), member.reporter.run())]
            await asyncio.sleep(0.3)
            yield
            for job in jobs:
                job.cancel()

    async def _watch(self) -> None:
        async with self.bus.listen(subjects.of_pop(subjects.REPORTS, OURS)) as messages:
            async for _ in messages:
                self.reported.append(asyncio.get_running_loop().time())

    async def say(self, pop: str, seq: int) -> None:
        await self.bus.publish(subjects.of_pop(subjects.REPORTS, pop), msgspec.json.encode(report(seq)))

    def since(self, at: float) -> int:
        """Reports of ours."""
        return sum(reported >= at for reported in self.reported)


async def test_who_was_silent_is_answered() -> None:
    site, clock = Site(), asyncio.get_running_loop().time
    async with site.running():
        for seq in (0, round(2 * LEASE_S)):
            at = clock()
            await site.say("iad", seq)
            await asyncio.sleep(ANSWERED_S)
            assert site.since(at) > 0
            await asyncio.sleep(LEASE_S)


async def test_who_goes_on_is_not_answered_nor_are_we_ourselves() -> None:
    site, clock = Site(), asyncio.get_running_loop().time
    async with site.running():
        await site.say("iad", 0)
        await asyncio.sleep(1)
        at = clock()
        for seq in range(1, 60):
            await site.say("iad", seq)
            await asyncio.sleep(1)
        assert site.since(at) <= 60 / (EVERY_S * (1 - UNEVEN))


async def test_one_report_answers_a_whole_region() -> None:
    site, clock = Site(), asyncio.get_running_loop().time
    async with site.running():
        at = clock()
        for number in range(50):
            await site.say(f"pop{number}", 0)
            await asyncio.sleep(0.001)
        await asyncio.sleep(3 * ANSWERED_S)
        assert site.since(at) == 1

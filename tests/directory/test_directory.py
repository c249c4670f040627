"""Directories and PoPs' reporters on one bus, in virtual time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.directory.reports import FRANKFURT, LONDON, VIRGINIA, condition, report
from voicepipe.base.errors import NoPop, Refused
from voicepipe.call_api import Grant
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import Directory, Placement
from voicepipe.directory.fleet_view import LEASE_S, PENDING_S
from voicepipe.directory.report import Condition
from voicepipe.directory.reporter import Reporter
from voicepipe.directory.router import WantedCall
from voicepipe.directory.tokens import Signer, TokenVerifier, audience

pytestmark = pytest.mark.virtual_time
SIGNER = Signer("k", Ed25519PrivateKey.generate())
WANTED = WantedCall(kind="websocket", place=FRANKFURT)
GRANT = Grant(id="", tenant="acme")
SOON_S = 0.01


class FakePop:
    """One that tells how it is and takes calls with tokens, as long as it has room."""

    def __init__(self, bus: MemoryBus, name: str, clock_off_s: float = 0.0, **changes: Any) -> None:
        self.name = name
        self.condition: Condition = condition(**changes)

        def clock() -> float:
            return 1_800_000_000 + clock_off_s + now()

        self.reporter = Reporter(bus, name, lambda: self.condition, now, clock, Random(name))
        self.verifier = TokenVerifier(audience(name, self.reporter.epoch), {"k": SIGNER.key.public_key()}, clock)

    def takes(self, token: str) -> None:
        """Raises Refused."""
        grant = self.verifier.read(token)
        if self.condition.calls >= self.condition.slots:
            raise Refused("full")
        self.verifier.use(grant)
        self.condition = msgspec.structs.replace(self.condition, calls=self.condition.calls + 1)
        self.reporter.began(grant.id)


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def fleet(bus: MemoryBus, *pops: FakePop, directories: int = 1) -> AsyncIterator[list[Directory]]:
    """All of them run; the directories have heard of every PoP."""
    made = [Directory(bus, SIGNER, Random(number), now) for number in range(directories)]
    async with asyncio.TaskGroup() as group:
        jobs = [group.create_task(directory.run()) for directory in made]
        await asyncio.sleep(SOON_S)
        jobs += [group.create_task(pop.reporter.run()) for pop in pops]
        await asyncio.sleep(SOON_S)
        yield made
        for job in jobs:
            job.cancel()


def first(placement: Placement) -> str:
    return placement.offers[0].pop


async def test_a_caller_gets_the_nearest_pop_and_a_token_for_each_candidate() -> None:
    bus = MemoryBus()
    fra, lhr = FakePop(bus, "fra"), FakePop(bus, "lhr", place=LONDON, url="https://lhr.example")
    async with fleet(bus, fra, lhr) as (directory,):
        placement = await directory.place(WANTED, GRANT)
        assert [offer.pop for offer in placement.offers] == ["fra", "lhr"]
        assert placement.offers[1].url == "wss://lhr.example/v1/realtime"
        assert not placement.degraded
        for pop, offer in zip((fra, lhr), placement.offers, strict=True):
            assert pop.verifier.read(offer.token) == msgspec.structs.replace(GRANT, id=placement.placement_id)


async def test_an_order_that_nobody_hears_is_refused() -> None:
    """It was told as given while the directory had lost its bus."""
    bus = MemoryBus()
    directory = Directory(bus, Signer("k", Ed25519PrivateKey.generate()), clock=lambda: 1000.0)
    directory.take(BusMessage("vp.pop.fra.report", msgspec.json.encode(report())))
    bus.is_connected = lambda: False  # type: ignore[method-assign]
    assert [seen.pop for seen in directory.pops()] == ["fra"]
    with pytest.raises(NoPop, match="lost the bus"):
        await directory.drain("fra")


@pytest.mark.parametrize("heard", [1, 3], ids=["at once", "after two that were lost"])
async def test_an_order_to_drain_is_given_until_its_pop_says_that_it_drains(heard: int) -> None:
    bus = MemoryBus()
    fra = FakePop(bus, "fra")

    async def obeys() -> None:
        async with bus.listen("vp.cmd.fra") as orders:
            for _ in range(heard):
                assert (await anext(orders)).data == b'{"do":"drain"}'
        fra.condition = msgspec.structs.replace(fra.condition, status="draining")
        fra.reporter.report_now()

    async with fleet(bus, fra) as (directory,):
        obeying = asyncio.create_task(obeys())
        await asyncio.sleep(SOON_S)
        await directory.drain("fra")
        assert [seen.condition.status for seen in directory.pops()] == ["draining"]
        await obeying


async def test_an_order_to_drain_that_its_pop_does_not_obey_is_told_of() -> None:
    """It was told as done, though the PoP had never heard of it."""
    bus = MemoryBus()
    async with fleet(bus, FakePop(bus, "fra")) as (directory,):
        with pytest.raises(NoPop, match="has not reported within 3 s"):
            await directory.drain("fra")


async def test_one_that_has_left_drains_no_more() -> None:
    bus = MemoryBus()
    fra = FakePop(bus, "fra")
    async with fleet(bus) as (directory,):
        reporting = asyncio.create_task(fra.reporter.run())
        await asyncio.sleep(SOON_S)

        async def leaves() -> None:
            async with bus.listen("vp.cmd.fra") as orders:
                await anext(orders)
            reporting.cancel()

        leaving = asyncio.create_task(leaves())
        await asyncio.sleep(SOON_S)
        await directory.drain("fra")
        assert directory.pops() == []
        await leaving


async def test_a_pop_that_drains_gets_no_call_as_soon_as_it_says_so() -> None:
    bus = MemoryBus()
    fra, lhr = FakePop(bus, "fra"), FakePop(bus, "lhr", place=LONDON)
    async with fleet(bus, fra, lhr) as (directory,):
        fra.condition = msgspec.structs.replace(fra.condition, status="draining")
        fra.reporter.report_now()
        await asyncio.sleep(SOON_S)
        assert first(await directory.place(WANTED, GRANT)) == "lhr"


async def test_a_pop_that_ends_says_goodbye_and_one_that_dies_is_gone_when_its_lease_is_over() -> None:
    bus = MemoryBus()
    fra, lhr = FakePop(bus, "fra"), FakePop(bus, "lhr", place=LONDON)
    async with fleet(bus, lhr) as (directory,):
        reporting = asyncio.create_task(fra.reporter.run())
        await asyncio.sleep(3)
        assert first(await directory.place(WANTED, GRANT)) == "fra"
        reporting.cancel()
        await asyncio.sleep(SOON_S)
        assert first(await directory.place(WANTED, GRANT)) == "lhr"
        await bus.publish("vp.pop.nrt.report", msgspec.json.encode({**vars_of(fra), "epoch": 1}))
        await asyncio.sleep(LEASE_S - 0.1)
        assert "nrt" in {seen.pop for seen in directory.pops()}
        await asyncio.sleep(0.2)
        assert "nrt" not in {seen.pop for seen in directory.pops()}


def vars_of(pop: FakePop) -> dict[str, Any]:
    """Of a report that it could send."""
    made: dict[str, Any] = msgspec.to_builtins(pop.reporter._report())
    return made


async def test_what_cannot_be_read_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bus = MemoryBus()
    async with fleet(bus, FakePop(bus, "fra")) as (directory,):
        for subject in ("vp.pop.fra.report", "vp.pop.fra.bye", "vp.asg.fra", "vp.pop.x y.report"):
            for data in (b"", b"\\xff", b"{}", b'{"epoch": "x"}', b'{"x":' + b"[" * 5000, b'{"x":"\xff"}'):
                await bus.publish(subject, data)
        await asyncio.sleep(SOON_S)
        assert [seen.pop for seen in directory.pops()] == ["fra"]
        assert "cannot be read" in caplog.text


@pytest.mark.parametrize("off_s", [-300.0, 300.0])
async def test_a_pop_whose_clock_is_wrong_takes_its_tokens(off_s: float) -> None:
    bus = MemoryBus()
    fra = FakePop(bus, "fra", off_s)
    async with fleet(bus, fra) as (directory,):
        await asyncio.sleep(3.3)
        fra.takes((await directory.place(WANTED, GRANT)).offers[0].token)


async def test_directories_know_of_one_anothers_calls_before_they_begin() -> None:
    bus = MemoryBus()
    fra, iad = FakePop(bus, "fra", slots=1), FakePop(bus, "iad", place=VIRGINIA, slots=1)
    async with fleet(bus, fra, iad, directories=2) as (one, other):
        assert first(await one.place(WANTED, GRANT)) == "fra"
        await asyncio.sleep(SOON_S)
        assert first(await other.place(WANTED, GRANT)) == "iad"
        with pytest.raises(NoPop):
            await other.place(WANTED, GRANT)
        await asyncio.sleep(PENDING_S)
        assert first(await other.place(WANTED, GRANT)) == "fra"


@pytest.mark.parametrize("seed", range(5))
async def test_a_hundred_callers_at_once_get_every_place_that_there_is(seed: int) -> None:
    """100 calls within a second on 64 places of four PoPs, by three directories whose messages take time."""
    lots = Random(seed)
    bus = MemoryBus()
    pops = {f"p{number}": FakePop(bus, f"p{number}", slots=16, place=FRANKFURT) for number in range(4)}
    ends: Counter[str] = Counter()

    async def calls(directory: Directory, at: float) -> None:
        await asyncio.sleep(at)
        tried: set[str] = set()
        while True:
            try:
                wanted = WantedCall(kind="websocket", place=FRANKFURT, tried=frozenset(tried))
                placement = await directory.place(wanted, GRANT)
            except NoPop:
                ends["refused"] += 1
                return
            for offer in placement.offers:
                await asyncio.sleep(lots.uniform(0.02, 0.1))
                room = any(pop.condition.calls < pop.condition.slots for pop in pops.values())
                try:
                    pops[offer.pop].takes(offer.token)
                except Refused:
                    ends["bounced with room elsewhere" if room else "bounced"] += 1
                    tried.add(offer.pop)
                else:
                    ends["placed"] += 1
                    return

    async with fleet(bus, *pops.values(), directories=3) as directories:
        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(calls(directories[number % 3], lots.uniform(0, 1)))
    assert all(pop.condition.calls <= pop.condition.slots for pop in pops.values())
    assert ends["placed"] == 64
    assert ends["refused"] == 36
    assert ends["bounced with room elsewhere"] <= 3


async def test_a_bus_that_is_cut_is_told() -> None:
    bus = MemoryBus()
    async with fleet(bus, FakePop(bus, "fra")) as (directory,):
        assert not directory.is_cut_off
        bus.is_connected = lambda: False  # type: ignore[method-assign]
        assert directory.is_cut_off


async def test_messages_about_pops_without_a_proper_name_are_passed_over() -> None:
    directory = Directory(MemoryBus(), SIGNER)
    directory.take(BusMessage("vp.pop.FRA.report", b"{}"))
    assert directory.pops() == []

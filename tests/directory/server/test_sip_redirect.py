"""Telephones that ask a directory where to call, and the PoPs that they then call."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.directory.fleets import FRANKFURT, LONDON, SIGNER, VIRGINIA, fleet, public_key, settings
from tests.directory.reports import report
from tests.directory.stub_pops import Bounced
from tests.ingress.sip.baresip import baresip
from tests.ingress.sip.peer import Phone, Said
from tests.ingress.sip.sipp import pytestmark as needs_sipp
from tests.ingress.sip.sipp import sipp
from tests.ingress.sip.test_sip_access import digest
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe.config import Config
from voicepipe.config.directory_config import (
    DirectoryConfig,
    DirectoryRoute,
    DirectorySection,
    DirectorySipConfig,
    DirectoryTenant,
    DirectoryTrunk,
)
from voicepipe.config.phone_config import SipUser
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory.server.call_placement import DirectoryRules
from voicepipe.directory.server.relay_drain import RelayDrain
from voicepipe.directory.server.sip_redirect import redirecting

TRUNK = DirectoryTrunk(name="carrier", addresses=("127.0.0.1",), place=FRANKFURT)
ELSEWHERE = DirectoryTrunk(name="other", addresses=("192.0.2.0/24",))


def asking(**changes: Any) -> DirectoryConfig:
    """A directory's configuration, with SIP on a free port."""
    sip = {"port": free_port(), "trunks": (TRUNK,), **changes.pop("sip", {})}
    return DirectoryConfig(directory=DirectorySection(place=VIRGINIA), sip=DirectorySipConfig(**sip), **changes)


@asynccontextmanager
async def telephone(
    config: DirectoryConfig, directory: Directory, relay_drain: RelayDrain | None = None
) -> AsyncIterator[Phone]:
    """One that knows the directory."""
    async with redirecting(DirectoryRules(config, {}), directory, relay_drain or RelayDrain()):
        async with Phone(("127.0.0.1", config.sip.port)) as phone:
            yield phone


def knowing(*pops: str, **changes: Any) -> Directory:
    """A directory that has heard of these PoPs; each one's address has its place in the list as its last number."""
    directory = Directory(MemoryBus(), SIGNER)
    for number, pop in enumerate(pops):
        at = {"kinds": ("sip",), "sip": f"203.0.113.{number}:5060", "region": pop, **changes.get(pop, {})}
        directory._view.heard(pop, report(**at), directory._clock())
    return directory


def contacts(answer: Said) -> list[str]:
    return [value.partition("@")[2].partition(";")[0] for value in answer.all("contact")]


def phones(name: str, public: str, place: tuple[float, float], **changes: Any) -> Config:
    """Of a PoP that telephones reach."""
    return settings(name, public, place, sip={"port": free_port()}, **changes)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Config, Config]:
    """PoPs in Frankfurt and in London."""
    public = public_key(tmp_path)
    return phones("fra", public, FRANKFURT), phones("lhr", public, LONDON)


@pytest.mark.e2e
async def test_a_call_by_way_of_the_directory(two: tuple[Config, Config]) -> None:
    """The nearest PoP to the trunk's gateway is named first; there the call begins, and the directory hears of it."""
    fra, lhr = two
    async with fleet(lhr, fra) as (directory, pops), telephone(asking(), directory) as phone:
        answer = await phone.dial(uri="sip:front-desk@127.0.0.1;user=phone")
        assert answer.code == 302
        assert contacts(answer) == [f"127.0.0.1:{one.sip.port}" for one in (fra, lhr)]
        assert [value.rpartition(";q=")[2] for value in answer.all("contact")] == ["1.0", "0.9"]
        [placed] = directory.placed
        assert (placed.kind, placed.pop) == ("sip", "fra")

        phone.server, phone.to_tag = ("127.0.0.1", fra.sip.port), ""
        uri = answer.all("contact")[0].partition("<")[2].partition(">")[0]
        assert (await phone.dial(uri=uri)).code == 200
        assert pops[1].calls == 1
        await until(lambda: all(seen.pending == 0 and (seen.condition.calls == 1) == (seen.pop == "fra")
                                for seen in directory.pops()), 10)  # fmt: skip
        await phone.hang_up()


async def test_users_ask_with_their_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_PASSWORD", "s3cret")
    desk = SipUser(name="desk", password_env="DESK_PASSWORD")
    async with telephone(asking(sip={"trunks": (), "users": (desk,)}), knowing("fra")) as phone:
        asked = await phone.dial()
        assert asked.code == 401
        phone.to_tag = ""
        answer = digest(asked.header("www-authenticate"), "INVITE", "sip:front@127.0.0.1")
        assert (await phone.dial(headers=[("Authorization", answer)])).code == 302


async def test_strangers_are_told_nothing() -> None:
    directory = knowing("fra")
    told = Bounced(directory)
    async with telephone(asking(sip={"trunks": (ELSEWHERE,)}), directory) as phone:
        assert (await phone.dial()).code == 403
    assert not directory.placed and told.refusals == [("sip", "forbidden")]


@pytest.mark.parametrize(
    ("called", "order"),
    [("+4930123", ["fra", "iad"]), ("+1202555", ["iad", "fra"]), ("front", ["fra", "iad"])],
)
async def test_a_route_pins_numbers_to_a_region(called: str, order: Sequence[str]) -> None:
    routes = (DirectoryRoute(called="+49*"), DirectoryRoute(called="+1*", region="iad"), DirectoryRoute(called="front"))
    directory = knowing("fra", "iad", iad={"place": None})
    async with telephone(asking(routes=routes), directory) as phone:
        answer = await phone.dial(uri=f"sip:{called}@127.0.0.1")
    numbers = {"fra": "203.0.113.0:5060", "iad": "203.0.113.1:5060"}
    assert contacts(answer) == [numbers[pop] for pop in order]


async def test_a_region_without_room_is_not_waited_for() -> None:
    routes = (DirectoryRoute(region="iad"),)
    full = {"slots": 4, "calls": 4, "status": "full"}
    async with telephone(asking(routes=routes), knowing("fra", "iad", iad=full)) as phone:
        assert contacts(await phone.dial()) == ["203.0.113.0:5060"]


async def test_a_tenants_zone_is_never_left() -> None:
    tenants = (DirectoryTenant(name="clinic", key_env="CLINIC_KEY", zone="eu"),)
    directory = knowing("fra", "iad", iad={"zone": "us"})
    async with telephone(asking(tenants=tenants), directory) as phone:
        assert contacts(await phone.dial()) == ["203.0.113.0:5060"]
        [placed] = directory.placed
        assert placed.tenant == "clinic"


@pytest.mark.e2e
async def test_a_redirected_call_is_its_tenants_at_a_pop_that_has_none(two: tuple[Config, Config]) -> None:
    fra, lhr = two
    config = asking(tenants=(DirectoryTenant(name="clinic", key_env="CLINIC_KEY"),))
    async with fleet(lhr, fra) as (directory, pops), telephone(config, directory) as phone:
        answer = await phone.dial(uri="sip:front-desk@127.0.0.1")
        uri = answer.all("contact")[0].partition("<")[2].partition(">")[0]
        for asked, tenant in ((uri, "clinic"), ("sip:front-desk@127.0.0.1", "local")):
            async with Phone(("127.0.0.1", fra.sip.port)) as there:
                assert (await there.dial(uri=asked)).code == 200
                [row] = pops[1].dashboard.view(None, 5).calls
                assert row.tenant == tenant
                await there.hang_up()
                await until(lambda: not pops[1].calls)


async def test_whom_nobody_takes() -> None:
    """No route: 404. No room: 503, and when to ask again. No PoP for such calls: 480."""
    told = Bounced(directory := knowing("fra"))
    async with telephone(asking(routes=(DirectoryRoute(called="+49*"),)), directory) as phone:
        assert (await phone.dial(uri="sip:+1202@127.0.0.1")).code == 404
    assert told.refusals == [("sip", "no_route")]
    told = Bounced(directory := knowing("fra", fra={"status": "full", "calls": 36}))
    async with telephone(asking(), directory) as phone:
        answer = await phone.dial()
        assert not told.refusals, "a PoP was looked for"
        assert answer.code == 503
        assert int(answer.header("retry-after")) > 0
    async with telephone(asking(), knowing("fra", fra={"kinds": ("websocket",)})) as phone:
        answer = await phone.dial()
        assert (answer.code, answer.header("retry-after")) == (480, ""), "of this call alone: the server is well"
        phone.to_tag = ""
        phone.request("OPTIONS")
        assert (await phone.final("OPTIONS")).code == 503, "no call finds a PoP"


async def test_whether_calls_are_taken_is_told_to_load_balancers() -> None:
    relay_drain = RelayDrain()
    async with telephone(asking(), knowing("fra"), relay_drain) as phone:
        phone.request("OPTIONS")
        assert (await phone.final("OPTIONS")).code == 200
        relay_drain.has_begun = True
        after = len(phone.said)
        phone.request("OPTIONS")
        assert (await phone.final("OPTIONS", after)).code == 503
        assert (await phone.dial()).code == 503
    async with telephone(asking(), knowing()) as phone:
        phone.request("OPTIONS")
        assert (await phone.final("OPTIONS")).code == 503


async def test_the_same_invite_is_placed_once() -> None:
    directory = knowing("fra")
    async with telephone(asking(), directory) as phone:
        sent = phone.invite()
        phone.send(sent)
        await phone.final("INVITE")
        phone.send(sent)
        phone.request("ACK", seq=phone.seq, branch=phone.branch)
        phone.request("OPTIONS")
        await phone.final("OPTIONS")
    assert len(directory.placed) == 1


async def test_who_is_sent_to_a_pop_and_comes_here_again_is_told_so() -> None:
    """Some telephones send all that goes to their registrar's host by that one."""
    directory = knowing("fra")
    async with telephone(asking(), directory) as phone:
        uri = (await phone.dial()).all("contact")[0].partition("<")[2].partition(">")[0]
        phone.to_tag = ""
        assert (await phone.dial(uri=uri)).code == 482
    assert len(directory.placed) == 1


@pytest.mark.parametrize(("method", "code"), [("BYE", 481), ("SUBSCRIBE", 405), ("REGISTER", 200)])
async def test_other_requests(method: str, code: int) -> None:
    async with telephone(asking(), knowing("fra")) as phone:
        phone.request(method)
        assert (await phone.final(method)).code == code


@pytest.mark.e2e
@needs_sipp
async def test_sipp_follows(two: tuple[Config, Config], tmp_path: Path) -> None:
    config = asking()
    async with fleet(*two) as (directory, pops), redirecting(DirectoryRules(config, {}), directory, RelayDrain()):
        calling = asyncio.create_task(sipp("redirected", config.sip.port, tmp_path, calls=3, held_ms=3000))
        await until(lambda: calling.done() or [pop.calls for pop in pops] == [3, 0], 60)
        await calling
        assert [(placed.kind, placed.pop) for placed in directory.placed] == [("sip", "fra")] * 3
        await until(lambda: pops[0].calls == 0, 10)


@needs_sipp
async def test_a_trunk_that_follows_nothing_is_done_with_its_302(tmp_path: Path) -> None:
    """It acknowledges it, and is told nothing more."""
    config, directory = asking(), knowing("fra")
    async with redirecting(DirectoryRules(config, {}), directory, RelayDrain()):
        await sipp("not_redirected", config.sip.port, tmp_path, "-nr", calls=3, held_ms=1500)
        assert len(directory.placed) == 3


@pytest.mark.e2e
@pytest.mark.skipif(shutil.which("baresip") is None, reason="baresip is not installed: apt install baresip-core")
async def test_baresip_follows(two: tuple[Config, Config], tmp_path: Path) -> None:
    config = asking()
    async with fleet(*two) as (directory, pops), redirecting(DirectoryRules(config, {}), directory, RelayDrain()):
        async with baresip(tmp_path / "phone", "<sip:ann@127.0.0.1>;regint=0") as ann:
            await ann.dial(config.sip.port, "front-desk")
            assert [pop.calls for pop in pops] == [1, 0]
            await ann.hang_up()
        await until(lambda: pops[0].calls == 0, 10)

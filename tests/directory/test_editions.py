"""Agents, routes and tenants that are pushed to a fleet: taken over by all PoPs that are well, or by none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.directory.fleets import (
    FRANKFURT,
    LONDON,
    LONG_S,
    OWNERS,
    SIGNER,
    public_key,
    settings,
)
from tests.waiting import until
from voicepipe.config import Config
from voicepipe.config.directory_config import DirectoryConfig, DirectorySection
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.directory_server.rules import Rules
from voicepipe.editions.directory_editions import DirectoryEditions, shelf_of
from voicepipe.editions.edition import Edition, Head, check, gathered, packed, unpacked
from voicepipe.editions.shelf import MOST, Shelf
from voicepipe.errors import ConfigError, NoPop
from voicepipe.pop import Pop
from voicepipe.running import member

AGENT = 'name = "{name}"\ngreeting = "{greeting}"\n'
HELLO, GOOD_DAY = ({"agents/front-desk.toml": AGENT.format(name="front-desk", greeting=said)}
                   for said in ("Hello.", "Good day."))  # fmt: skip
ROUTES = '[[routes]]\ncalled = "+49*"\nagent = "sales"\nregion = "eu"\n'
SALES = {"agents/sales.toml": AGENT.format(name="sales", greeting="Sales.")}


@pytest.fixture
def public(tmp_path: Path) -> str:
    return public_key(tmp_path)


class OwnWay:
    """One host's way to the bus; it can be cut."""

    def __init__(self, bus: MemoryBus) -> None:
        self.is_cut = False
        self._bus = bus

    async def publish(self, subject: str, data: bytes) -> None:
        if not self.is_cut:
            await self._bus.publish(subject, data)

    @asynccontextmanager
    async def listen(self, *patterns: str) -> AsyncIterator[AsyncIterator[BusMessage]]:
        async with self._bus.listen(*patterns) as messages:
            yield self._heard(messages)

    def is_connected(self) -> bool:
        return not self.is_cut

    async def _heard(self, messages: AsyncIterator[BusMessage]) -> AsyncIterator[BusMessage]:
        async for message in messages:
            if not self.is_cut:
                yield message


@asynccontextmanager
async def taking(
    bus: MemoryBus, folder: Path, name: str = "directory", **tables: Any
) -> AsyncIterator[tuple[DirectoryEditions, Directory, Rules]]:
    """A directory that takes pushes; not over HTTP."""
    config = DirectoryConfig(directory=DirectorySection(id=name, editions=str(folder / name)), **tables)
    shelf, way = shelf_of(config), OwnWay(bus)
    assert shelf
    directory, rules = Directory(way, SIGNER), Rules(config, OWNERS if config.tenants else {})
    current = await asyncio.to_thread(shelf.current)
    editions = DirectoryEditions(way, directory, config, shelf, current, rules.become)
    async with asyncio.TaskGroup() as group:
        jobs = [group.create_task(job) for job in (directory.run(), editions.run(), editions.listen())]
        yield editions, directory, rules
        for job in jobs:
            job.cancel()


async def pop_settings(name: str, public: str, folder: Path, **changes: Any) -> Config:
    its = {"editions": str(folder / name), **changes.pop("fleet", {})}
    return await asyncio.to_thread(settings, name, public, FRANKFURT, fleet=its, **changes)


@asynccontextmanager
async def pops(bus: MemoryBus, directory: Directory, *configs: Config) -> AsyncIterator[tuple[list[Pop], list[OwnWay]]]:
    """They run, and the directory has heard of them."""
    async with AsyncExitStack() as stack:
        ways = [OwnWay(bus) for _ in configs]
        made = [await stack.enter_async_context(member(config, way))
                for config, way in zip(configs, ways, strict=True)]  # fmt: skip
        await until(lambda: len(directory.pops()) == len(configs), LONG_S)
        yield made, ways


def numbers(directory: Directory) -> dict[str, int]:
    """Which edition each PoP has reported."""
    return {seen.pop: seen.condition.edition.number for seen in directory.heard() if seen.condition.edition}


# --- an edition, and where it is kept


def test_a_folder_is_gathered_with_what_its_agents_name(tmp_path: Path) -> None:
    (tmp_path / "agents" / "intents").mkdir(parents=True)
    (tmp_path / "agents" / "desk.toml").write_text('name = "desk"\nintents_file = "intents/desk.toml"\n')
    (tmp_path / "agents" / "intents" / "desk.toml").write_text("[[intents]]\n")
    (tmp_path / "agents" / "tools.py").write_text("def book(): ...\n")
    (tmp_path / "fleet.toml").write_text(ROUTES)
    files = gathered(tmp_path / "agents", tmp_path / "fleet.toml")
    assert sorted(files) == ["agents/desk.toml", "agents/intents/desk.toml", "fleet.toml"]
    edition = Edition(3, files, 1.0)
    assert unpacked(packed(edition)) == edition
    assert (
        edition.digest == Edition(4, dict(reversed(files.items())), 2.0, like=3).digest != Edition(3, HELLO, 1.0).digest
    )


@pytest.mark.parametrize("path", ["agents/../x.toml", "/etc/x.toml", "agents/a/b/c.toml", "agents/x.py", "x.toml",
                                  "agents/.hidden.toml", "agents//x.toml", "agents/x.toml\n"])  # fmt: skip
def test_no_file_is_taken_that_would_lie_elsewhere(path: str) -> None:
    with pytest.raises(ConfigError, match="cannot be pushed"):
        check({**HELLO, path: ""})


@pytest.mark.parametrize("said", [b"", b"x", b"\x78\x9c\x03\x00\x00\x00\x00\x01"])
def test_what_is_no_edition_is_told(said: bytes) -> None:
    with pytest.raises(ValueError, match="no edition"):
        unpacked(said)


def test_a_shelf_knows_what_counts_after_a_restart(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "editions", "fleet.editions")
    assert shelf.current() is None and shelf.all() == [] and shelf.find(1) is None
    one, two = Edition(1, HELLO, 1.0), Edition(2, GOOD_DAY, 2.0)
    for edition in (one, two):
        folder = shelf.keep(edition)
        shelf.go_by(edition)
    assert (folder / "agents" / "front-desk.toml").read_text() == GOOD_DAY["agents/front-desk.toml"]
    again = Shelf(tmp_path / "editions", "fleet.editions")
    assert again.current() == two and again.find(1) == one and again.all() == [two, one]


def test_a_shelf_keeps_the_last_ones_and_the_one_that_counts(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "fleet.editions")
    editions = [Edition(number, HELLO, 1.0) for number in range(1, MOST + 4)]
    for edition in editions:
        shelf.keep(edition)
    shelf.go_by(editions[0])
    assert [edition.number for edition in shelf.all()] == [*range(MOST + 3, 3, -1), 1]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "editions").write_text("a file")
    with pytest.raises(ConfigError, match="fleet.editions: editions cannot be kept in .*: give a folder"):
        Shelf(tmp_path / "editions", "fleet.editions").keep(Edition(1, HELLO, 1.0))


# --- a fleet


@pytest.mark.e2e
async def test_a_push_is_live_everywhere_and_calls_in_progress_keep_their_agent(tmp_path: Path, public: str) -> None:
    bus = MemoryBus()
    names = [f"pop{number}" for number in range(1, 10)]
    async with (
        taking(bus, tmp_path) as (editions, directory, _),
        pops(bus, directory, *[await pop_settings(name, public, tmp_path) for name in names]) as (made, _),
    ):
        before = made[0].agent(None)
        pushed = await editions.push(HELLO)
        assert pushed.edition.number == 1 and pushed.unheard == ()
        await until(lambda: all(pop.agent(None).greeting == "Hello." for pop in made), LONG_S)
        await until(lambda: set(numbers(directory).values()) == {1}, LONG_S)
        assert before.greeting != "Hello."  # Whoever has it, as a live call has, keeps it.
        await editions.push(GOOD_DAY)
        await until(lambda: all(pop.agent(None).greeting == "Good day." for pop in made), LONG_S)
        back = await editions.roll_back(1)
        assert (back.edition.number, back.edition.like, back.edition.digest) == (3, 1, pushed.edition.digest)
        await until(lambda: all(pop.agent(None).greeting == "Hello." for pop in made), LONG_S)
        with pytest.raises(ConfigError, match="There is no edition 9 here; kept: 3, 2, 1"):
            await editions.roll_back(9)


@pytest.mark.e2e
async def test_what_one_host_would_not_take_nobody_takes(tmp_path: Path, public: str) -> None:
    bus = MemoryBus()
    odd = await pop_settings(
        "odd", public, tmp_path, pop={"default_agent": "front-desk"}, routes=[{"agent": "front-desk"}]
    )
    plain = await pop_settings("fra", public, tmp_path)
    async with (
        taking(bus, tmp_path) as (editions, directory, _),
        pops(bus, directory, plain, odd) as (made, _),
    ):
        await editions.push(HELLO)
        await until(lambda: set(numbers(directory).values()) == {1}, LONG_S)
        bad = {**GOOD_DAY, "agents/bad.toml": 'name = "bad"\nspeed = "fast"\n'}
        with pytest.raises(ConfigError, match=r"^agents/bad.toml: speed: cannot be .* \(so fra, odd\)$"):
            await editions.push(bad)
        with pytest.raises(ConfigError, match="front-desk"):  # Both begin with it where nobody says more.
            await editions.push(SALES)
        with pytest.raises(ConfigError, match="no function|there is no module"):
            await editions.push(
                {**HELLO, "agents/t.toml": 'name = "t"\n[[tools]]\nname = "x"\nfunction = "nowhere:x"\n'}
            )
        await asyncio.sleep(0.5)
        assert {pop.agent(None).greeting for pop in made} == {"Hello."} and set(numbers(directory).values()) == {1}
        assert [edition.number for edition in await editions.kept()] == [1]


@pytest.mark.e2e
async def test_routes_and_tenants_reach_pops_and_directories(
    tmp_path: Path, public: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARBOUR_KEY", "k-harbour")
    bus, rules_file = MemoryBus(), ROUTES + '[[tenants]]\nname = "harbour"\nkey_env = "HARBOUR_KEY"\nzone = "eu"\n'
    async with (
        taking(bus, tmp_path) as (editions, directory, rules),
        taking(bus, tmp_path, "second") as (second, _, other_rules),
        pops(bus, directory, await pop_settings("fra", public, tmp_path)) as ([pop], _),
    ):
        with pytest.raises(ConfigError, match=r"fleet.toml: routes\[0\].agent: there is no agent sales"):
            await editions.push({**HELLO, "fleet.toml": ROUTES})
        files = {**HELLO, **SALES, "fleet.toml": rules_file}
        await editions.push(files)
        await until(lambda: pop.config.routes and second.current, LONG_S)
        assert pop.tenant("k-harbour").name == "harbour" and pop.config.routes[0].agent == "sales"
        for each in (rules, other_rules):
            assert each.config.routes[0].region == "eu" and each.keys.tenant("k-harbour").name == "harbour"
            tenant = each.tenant("harbour")
            assert tenant and tenant.zone == "eu"
        monkeypatch.delenv("HARBOUR_KEY")
        with pytest.raises(ConfigError, match="fleet.toml: .*HARBOUR_KEY"):
            await editions.push({**files, **GOOD_DAY})


@pytest.mark.e2e
async def test_who_was_cut_off_takes_it_over_later_and_is_seen_to_differ(tmp_path: Path, public: str) -> None:
    bus = MemoryBus()
    configs = [await pop_settings(name, public, tmp_path) for name in ("fra", "lhr", "iad")]
    async with taking(bus, tmp_path) as (editions, directory, _), pops(bus, directory, *configs) as (made, ways):
        await editions.push(HELLO)
        await until(lambda: set(numbers(directory).values()) == {1}, LONG_S)
        ways[2].is_cut = True
        pushed = await editions.push(GOOD_DAY)
        assert pushed.unheard == ("iad",)
        await until(lambda: numbers(directory) == {"fra": 2, "lhr": 2, "iad": 1}, LONG_S)
        assert made[2].agent(None).greeting == "Hello."
        ways[2].is_cut = False
        await until(lambda: numbers(directory)["iad"] == 2, LONG_S)
        assert made[2].agent(None).greeting == "Good day."


@pytest.mark.e2e
async def test_a_pop_begins_with_the_last_good_edition_without_a_bus(tmp_path: Path, public: str) -> None:
    bus, config = MemoryBus(), await pop_settings("fra", public, tmp_path)
    async with taking(bus, tmp_path) as (editions, directory, _), pops(bus, directory, config):
        await editions.push(HELLO)
        await until(lambda: numbers(directory) == {"fra": 1}, LONG_S)
    async with member(config, None) as pop:
        assert pop.agent(None).greeting == "Hello."


@pytest.mark.e2e
async def test_a_pop_that_stays_at_one_edition_is_asked_for_nothing(tmp_path: Path, public: str) -> None:
    bus = MemoryBus()
    async with taking(bus, tmp_path) as (editions, directory, _):
        await editions.push(HELLO)
        await editions.push(GOOD_DAY)
        stays = await pop_settings("stays", public, tmp_path, fleet={"edition": 1})
        alone = await asyncio.to_thread(settings, "alone", public, LONDON)
        async with pops(bus, directory, stays, alone, await pop_settings("fra", public, tmp_path)) as (made, _):
            await until(lambda: numbers(directory) == {"stays": 1, "fra": 2}, LONG_S)
            await editions.push(HELLO)
            await until(lambda: numbers(directory) == {"stays": 1, "fra": 3}, LONG_S)
            assert [pop.agent(None).greeting == "Hello." for pop in made] == [True, False, True]


@pytest.mark.e2e
async def test_a_directory_that_begins_later_has_what_others_have_and_counts_on(tmp_path: Path) -> None:
    bus = MemoryBus()
    async with taking(bus, tmp_path) as (editions, _, _):
        await editions.push(HELLO)
        async with taking(bus, tmp_path, "second") as (second, _, _):
            await until(lambda: second.current, LONG_S)
            assert (await second.push(GOOD_DAY)).edition.number == 2
            await until(
                lambda: editions.current and editions.current.head == Head(2, Edition(2, GOOD_DAY, 0).digest), LONG_S
            )
    async with taking(bus, tmp_path, "second") as (second, _, _):
        assert second.current and second.current.number == 2


@pytest.mark.e2e
async def test_a_directory_without_its_disk_counts_on_from_what_pops_have(tmp_path: Path, public: str) -> None:
    bus, config = MemoryBus(), await pop_settings("fra", public, tmp_path)
    async with taking(bus, tmp_path) as (editions, directory, _), pops(bus, directory, config):
        await editions.push(HELLO)
        await until(lambda: numbers(directory) == {"fra": 1}, LONG_S)
    async with taking(bus, tmp_path, "new") as (editions, directory, _), pops(bus, directory, config) as ([pop], _):
        assert (await editions.push(GOOD_DAY)).edition.number == 2
        await until(lambda: pop.agent(None).greeting == "Good day.", LONG_S)


@pytest.mark.e2e
async def test_nothing_is_pushed_while_the_bus_is_lost(tmp_path: Path) -> None:
    bus = MemoryBus()
    async with taking(bus, tmp_path) as (editions, _, _):
        editions._bus.is_cut = True  # type: ignore[attr-defined]
        with pytest.raises(NoPop, match="has lost the bus"):
            await editions.push(HELLO)


@pytest.mark.e2e
async def test_an_edition_that_a_pop_cannot_keep_is_told_in_its_reports(
    tmp_path: Path, public: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = MemoryBus()
    (tmp_path / "fra").mkdir()

    async with taking(bus, tmp_path) as (editions, directory, _):
        async with pops(bus, directory, await pop_settings("fra", public, tmp_path)) as ([pop], _):
            (tmp_path / "fra").rmdir()
            (tmp_path / "fra").write_text("a file")
            await editions.push(HELLO)

            def problem() -> str:
                [state] = [seen.condition.edition for seen in directory.heard()]
                return state.problem if state else ""

            await until(problem, LONG_S)
            assert problem().startswith("fleet.editions: editions cannot be kept in")
            assert numbers(directory) == {"fra": 0} and pop.agent(None).greeting != "Hello."

"""Agents, routes and tenants that are pushed to a fleet: taken over by all PoPs that are well, or by none."""

import asyncio
import threading
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from tests.directory.fleets import (
    LONDON,
    LONG_S,
    SIGNER,
    public_key,
    settings,
)
from tests.directory.pushing import (
    CODE,
    GOOD_DAY,
    HELLO,
    ROUTES,
    RULED,
    SALES,
    TENANTS,
    WITH_KEY,
    numbers,
    pop_settings,
    pops,
    taking,
)
from tests.support.waiting import until
from voicepipe.base.errors import ConfigError, NoPop, Unauthorized
from voicepipe.call_api import Grant
from voicepipe.config import Config
from voicepipe.config.directory_config import CanaryConfig
from voicepipe.config.reloader import Reloader
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.editions import directory_editions
from voicepipe.directory.editions.edition import Edition, EditionId
from voicepipe.directory.editions.pop_editions import PopEditions
from voicepipe.pop.running import member

pytestmark = pytest.mark.e2e


@pytest.fixture
def public(tmp_path: Path) -> str:
    return public_key(tmp_path)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every host has them."""
    monkeypatch.setenv("HARBOUR_KEY", "k-harbour")
    monkeypatch.setenv("OPS_KEY", "k-ops")
    return monkeypatch


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
        with pytest.raises(ConfigError, match=r"^agents/bad.toml: speed: cannot be"):
            await editions.push(bad)
        with pytest.raises(ConfigError, match="front-desk"):  # Both begin with it where nobody says more.
            await editions.push(SALES)
        for function in ("nowhere:x", "subprocess:getoutput", "/tmp/x.py:x"):
            told = rf"^agents/t.toml: tools\[0\].function: a pushed agent may not name {function}; .* \(so fra, odd\)$"
            with pytest.raises(ConfigError, match=told):
                await editions.push({**HELLO, "agents/t.toml": CODE.format(function)})
        for hook in ("before_call", "on_turn", "after_call"):
            told = rf"^agents/t.toml: hooks.{hook}: a pushed agent may not name subprocess:getoutput; "
            with pytest.raises(ConfigError, match=told):
                hooks = f'name = "t"\n[hooks]\n{hook} = "subprocess:getoutput"\n'
                await editions.push({**HELLO, "agents/t.toml": hooks})
        await asyncio.sleep(0.5)
        assert {pop.agent(None).greeting for pop in made} == {"Hello."} and set(numbers(directory).values()) == {1}
        assert [edition.number for edition in await editions.kept()] == [1]


async def test_routes_and_tenants_reach_pops_and_directories(
    tmp_path: Path, public: str, keys: pytest.MonkeyPatch
) -> None:
    bus = MemoryBus()
    async with (
        taking(bus, tmp_path, http=WITH_KEY) as (editions, directory, rules),
        taking(bus, tmp_path, "second", http=WITH_KEY) as (second, _, other_rules),
        pops(bus, directory, await pop_settings("fra", public, tmp_path)) as ([pop], _),
    ):
        with pytest.raises(ConfigError, match=r"fleet.toml: routes\[0\].agent: there is no agent sales"):
            await editions.push({**HELLO, "fleet.toml": ROUTES})
        await editions.push(RULED)
        await until(lambda: pop.config.routes and second.current, LONG_S)
        assert pop.tenant("k-harbour").name == "harbour" and pop.config.routes[0].agent == "sales"
        for each in (rules, other_rules):
            assert each.config.routes[0].region == "eu" and each.keys.tenant("k-harbour").name == "harbour"
            tenant = each.tenant("harbour")
            assert tenant and tenant.zone == "eu"
        keys.delenv("HARBOUR_KEY")
        with pytest.raises(ConfigError, match="fleet.toml: .*HARBOUR_KEY"):
            await editions.push({**RULED, **GOOD_DAY})


async def test_every_host_reads_the_keys_of_pushed_tenants_from_its_own_files(
    tmp_path: Path, public: str, keys: pytest.MonkeyPatch
) -> None:
    bus, key = MemoryBus(), tmp_path / "harbour.key"
    tenants = TENANTS.replace('key_env = "HARBOUR_KEY"', f'key_file = "{key}"')
    async with (
        taking(bus, tmp_path, http=WITH_KEY) as (editions, directory, rules),
        pops(bus, directory, await pop_settings("fra", public, tmp_path)) as ([pop], _),
    ):
        with pytest.raises(ConfigError, match=rf"fleet.toml: tenants\[0\].key_file: there is no {key}: write the key"):
            await editions.push({**HELLO, "fleet.toml": tenants})
        key.write_text("k-harbour\n")
        await editions.push({**HELLO, "fleet.toml": tenants})
        await until(lambda: pop.config.tenants, LONG_S)
        assert pop.tenant("k-harbour").name == rules.keys.tenant("k-harbour").name == "harbour"
        with pytest.raises(ConfigError, match="would be somewhere else at each host; give an absolute path"):
            await editions.push({**HELLO, "fleet.toml": TENANTS.replace("key_env", "key_file")})
        hooks = '[hooks]\nafter_call = "https://example.com/"\nsecret_file = "hook.key"\n'
        with pytest.raises(ConfigError, match="Agent front-desk: hooks.secret_file: no secret is pushed along"):
            await editions.push({"agents/front-desk.toml": HELLO["agents/front-desk.toml"] + hooks})


async def test_agents_alone_leave_routes_and_tenants_as_they_were_pushed(
    tmp_path: Path, public: str, keys: pytest.MonkeyPatch
) -> None:
    bus = MemoryBus()
    async with (
        taking(bus, tmp_path, http=WITH_KEY) as (editions, directory, rules),
        pops(bus, directory, await pop_settings("fra", public, tmp_path)) as ([pop], _),
    ):
        await editions.push(RULED)
        await editions.push({**GOOD_DAY, **SALES})
        await until(lambda: numbers(directory) == {"fra": 2}, LONG_S)
        assert pop.config.tenants and pop.config.routes and rules.config.tenants
        await editions.push({**GOOD_DAY, **SALES, "fleet.toml": "routes = []\n" + TENANTS})
        await until(lambda: numbers(directory) == {"fra": 3}, LONG_S)
        assert pop.config.tenants and not pop.config.routes and not rules.config.routes
        await editions.push(GOOD_DAY, own_rules=True)
        await until(lambda: numbers(directory) == {"fra": 4}, LONG_S)
        assert not pop.config.tenants and not rules.config.tenants


async def test_a_share_is_changed_while_directories_run(tmp_path: Path) -> None:
    bus = MemoryBus()
    async with taking(bus, tmp_path) as (editions, first, _), taking(bus, tmp_path, "second") as (_, second, _):
        for share in (0.1, 0.25):
            trial = f'[[canaries]]\nversion = "2.1"\nshare = {share}\n'
            await editions.push({**HELLO, "fleet.toml": trial})
            await until(lambda: second.shares.canaries == (CanaryConfig(share=share, version="2.1"),), LONG_S)  # noqa: B023
            assert first.shares.canaries == second.shares.canaries
        await editions.push({**HELLO, "fleet.toml": "canaries = []"})
        await until(lambda: not second.shares.canaries, LONG_S)


async def test_tenants_do_not_lock_the_operator_out(tmp_path: Path, keys: pytest.MonkeyPatch) -> None:
    async with taking(MemoryBus(), tmp_path) as (editions, _, rules):
        with pytest.raises(ConfigError, match="fleet.toml: tenants: .* set http.operator_key_env"):
            await editions.push(RULED)
        assert not rules.config.tenants and not editions.current


async def test_a_pop_that_is_heard_and_says_nothing_does_not_agree(
    tmp_path: Path, public: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_editions, "VERDICTS_S", 1.0)
    bus, over = MemoryBus(), threading.Event()
    configs = [await pop_settings(name, public, tmp_path) for name in ("fra", "lhr")]

    def says_nothing(*_: object) -> None:
        over.wait(60)

    async with taking(bus, tmp_path) as (editions, directory, _), pops(bus, directory, *configs) as (made, _):
        monkeypatch.setattr(PopEditions, "_problem_of", says_nothing)
        with pytest.raises(ConfigError, match=r"says nothing within .* vp.fleet.> on the bus \(so fra, lhr\)"):
            await editions.push(HELLO)
        assert not editions.current
        over.set()
        monkeypatch.undo()


async def test_what_breaks_a_hosts_reader_is_a_verdict_as_well(tmp_path: Path, public: str) -> None:
    bus = MemoryBus()
    async with (
        taking(bus, tmp_path) as (editions, directory, _),
        pops(bus, directory, await pop_settings("fra", public, tmp_path)),
    ):
        nul = 'name = "x"\nintents_file = "intents/a\\u0000.toml"\n'
        with pytest.raises(ConfigError, match="cannot be read here"):
            await editions.push({**HELLO, "agents/x.toml": nul})


async def test_a_push_that_another_one_has_overtaken_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = MemoryBus()
    async with taking(bus, tmp_path) as (editions, _, _), taking(bus, tmp_path, "second") as (second, _, _):
        await until(lambda: editions._there() and second._there(), LONG_S)
        judge = editions._judged

        async def slowly(edition: Edition) -> tuple[bytes, tuple[str, ...]]:
            judged = await judge(edition)
            await second.push(GOOD_DAY)
            await second.push(GOOD_DAY)
            await until(lambda: editions.current and editions.current.number == 2, LONG_S)
            return judged

        monkeypatch.setattr(editions, "_judged", slowly)
        with pytest.raises(ConfigError, match="Another push came meanwhile, and is edition 2: push again"):
            await editions.push(HELLO)
        assert editions.current and editions.current.number == 2


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


async def test_a_pop_begins_with_the_last_good_edition_without_a_bus(tmp_path: Path, public: str) -> None:
    bus, config = MemoryBus(), await pop_settings("fra", public, tmp_path)
    async with taking(bus, tmp_path) as (editions, directory, _), pops(bus, directory, config):
        await editions.push(HELLO)
        await until(lambda: numbers(directory) == {"fra": 1}, LONG_S)
    async with member(config, None) as pop:
        assert pop.agent(None).greeting == "Hello."


async def test_a_pop_that_stays_at_one_edition_is_asked_for_nothing(tmp_path: Path, public: str) -> None:
    bus = MemoryBus()
    async with taking(bus, tmp_path) as (editions, directory, _):
        await editions.push(HELLO)
        await editions.push(GOOD_DAY)
        stays = await pop_settings("stays", public, tmp_path, fleet={"edition": 1})
        alone = await asyncio.to_thread(settings, "alone", public, LONDON)
        async with pops(bus, directory, stays, alone, await pop_settings("fra", public, tmp_path)) as (made, _):
            await until(lambda: numbers(directory) == {"stays": 1, "fra": 2}, LONG_S)
            for_all = {**HELLO, **SALES, "fleet.toml": "[[routes]]\nagent = 'sales'\n"}
            await editions.push(for_all)
            await until(lambda: numbers(directory) == {"stays": 1, "fra": 3}, LONG_S)
            assert [pop.agent(None).greeting == "Hello." for pop in made] == [True, False, True]


async def test_a_directory_that_begins_later_has_what_others_have_and_counts_on(tmp_path: Path) -> None:
    bus = MemoryBus()
    async with taking(bus, tmp_path) as (editions, _, _):
        await editions.push(HELLO)
        async with taking(bus, tmp_path, "second") as (second, _, _):
            await until(lambda: second.current, LONG_S)
            assert (await second.push(GOOD_DAY)).edition.number == 2
            await until(
                lambda: editions.current and editions.current.head == EditionId(2, Edition(2, GOOD_DAY, 0).digest),
                LONG_S,
            )
    async with taking(bus, tmp_path, "second") as (second, _, _):
        assert second.current and second.current.number == 2


async def test_a_directory_without_its_disk_counts_on_from_what_pops_have(tmp_path: Path, public: str) -> None:
    bus, config = MemoryBus(), await pop_settings("fra", public, tmp_path)
    async with taking(bus, tmp_path) as (editions, directory, _), pops(bus, directory, config):
        await editions.push(HELLO)
        await until(lambda: numbers(directory) == {"fra": 1}, LONG_S)
    async with taking(bus, tmp_path, "new") as (editions, directory, _), pops(bus, directory, config) as ([pop], _):
        assert (await editions.push(GOOD_DAY)).edition.number == 2
        await until(lambda: pop.agent(None).greeting == "Good day.", LONG_S)


async def test_nothing_is_pushed_while_the_bus_is_lost(tmp_path: Path) -> None:
    bus = MemoryBus()
    async with taking(bus, tmp_path) as (editions, _, _):
        editions._bus.is_cut = True  # type: ignore[attr-defined]
        with pytest.raises(NoPop, match="has lost the bus"):
            await editions.push(HELLO)


async def test_an_edition_that_a_pop_cannot_keep_is_told_in_its_reports(
    tmp_path: Path, public: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = MemoryBus()
    async with taking(bus, tmp_path) as (editions, directory, _):
        async with pops(bus, directory, await pop_settings("fra", public, tmp_path)) as ([pop], _):
            (tmp_path / "editions").write_text("a file")
            await editions.push(HELLO)

            def problem() -> str:
                [state] = [seen.condition.edition for seen in directory.heard()]
                return state.problem if state else ""

            await until(problem, LONG_S)
            assert problem().startswith("edition 1: fleet.editions: editions cannot be written into")
            assert numbers(directory) == {"fra": 0} and pop.agent(None).greeting != "Hello."


async def test_a_reload_takes_a_pops_own_files_and_leaves_the_edition(
    tmp_path: Path, public: str, keys: pytest.MonkeyPatch
) -> None:
    bus = MemoryBus()
    own = await pop_settings("pop1", public, tmp_path, pop={"default_agent": "front-desk"})
    files = [replace(own, http=replace(own.http, operator_key_env="OPS_KEY"), pop=replace(own.pop, slots=1))]
    reloader = Reloader[Config](lambda running: files[-1], lambda config: None)
    async with (
        taking(bus, tmp_path, http=WITH_KEY) as (editions, directory, _),
        member(own, bus, reloader=reloader) as pop,
    ):
        await until(lambda: len(directory.pops()) == 1, LONG_S)
        await editions.push(RULED)
        await until(lambda: "sales" in [agent.name for agent in pop.agents()], LONG_S)
        reloader.ask()
        await until(lambda: pop.may_scrape("k-ops"), LONG_S)
        assert pop.tenant("k-harbour").name == "harbour" and pop.config.routes, "those are the edition's"
        assert pop.config.pop.slots == own.pop.slots
        assert [agent.name for agent in pop.agents()] == ["front-desk", "sales"]
        await editions.push(HELLO, own_rules=True)
        await until(lambda: not pop.config.tenants, LONG_S)
        assert pop.may_scrape("k-ops"), "the next edition is laid over the files as they are now"
        other = Ed25519PrivateKey.generate().public_key()
        (tmp_path / "other.pem").write_bytes(
            other.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        assert pop.membership
        files.append(replace(files[0], fleet=replace(own.fleet, keys=(str(tmp_path / "other.pem"),))))
        token = SIGNER.sign(Grant(id="1", tenant=""), "pop1", pop.membership.reporter.epoch, time.time())
        assert pop.membership.read(token).id == "1"
        reloader.ask()
        await until(lambda: pop.config.fleet.keys != own.fleet.keys, LONG_S)
        with pytest.raises(Unauthorized, match="not made by a directory that this PoP knows"):
            pop.membership.read(token)
        files.append(replace(files[0], pop=replace(own.pop, default_agent="nobody")))
        reloader.ask()
        await until(lambda: pop.rereads.problem, LONG_S)
        assert "there is no agent nobody" in pop.health().warning and pop.config.pop.default_agent == "front-desk"

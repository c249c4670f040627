"""Records are deleted through a directory: of one call at the PoP that has it, of a caller at all PoPs."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tests.directory.fleets import FRANKFURT, LONDON, LONG_S, OPERATOR, Served, fleet, public_key, served, settings
from tests.records.phoning import NUMBER, phoning
from tests.support.ports import free_port
from voicepipe.commands import cli
from voicepipe.directory import subjects
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.pop.pop import Pop

pytestmark = pytest.mark.e2e
Fleet = tuple[Served, list[Pop]]


@pytest_asyncio.fixture
async def of_two(tmp_path: Path) -> AsyncIterator[Fleet]:
    """A directory, and two PoPs that keep records."""
    public = await asyncio.to_thread(public_key, tmp_path)
    bus, keeps = MemoryBus(), {"folder": str(tmp_path / "kept")}
    configs = [settings("fra", public, FRANKFURT, records=keeps), settings("lhr", public, LONDON, records=keeps)]
    async with asyncio.timeout(LONG_S), fleet(*configs, bus=bus) as (directory, pops), served(directory, bus) as at:
        yield at, pops


async def phoned(pop: Pop, number: int, **its: Any) -> str:
    """The id of a call that has ended and is kept."""
    with phoning(pop, number, **its) as call_id:
        pass
    assert pop.records
    await pop.records.writer.carried_out(lambda store: None)
    return call_id


async def dies(at: Served, pop: Pop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers nobody any more, and the directory hears no more of it."""
    name, view = pop.config.pop.id, at.directory._view
    hear = view.heard
    monkeypatch.setattr(view, "heard", lambda its, *rest: its != name and hear(its, *rest))
    seen = view._known[name]
    seen.sent_at -= 600
    gone = msgspec.structs.replace(seen.report.condition, url=f"http://127.0.0.1:{free_port()}")
    seen.report = msgspec.structs.replace(seen.report, condition=gone)


def says_goodbye(at: Served, pop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the directory hears no more of it."""
    ends, view = subjects.PopGoodbye(at.directory._view._known[pop].report.epoch), at.directory._view
    at.directory.take(BusMessage(subjects.of_pop(subjects.GOODBYES, pop), msgspec.json.encode(ends)))
    hear = view.heard
    monkeypatch.setattr(view, "heard", lambda name, *rest: name != pop and hear(name, *rest))


async def kept(at: Served, key: str = "k-acme") -> list[str]:
    """Ids."""
    async with at.client(key) as client:
        return [row["id"] for row in (await client.get("/v1/records")).json()["data"]]


async def test_one_call_at_the_pop_that_has_it(of_two: Fleet) -> None:
    at, (fra, lhr) = of_two
    one, other = await phoned(fra, 1), await phoned(lhr, 2)
    async with at.client("k-clinic") as client:
        assert (await client.delete(f"/v1/records/{one}")).status_code == 404
    async with at.client() as client:
        with phoning(fra, 3) as goes_on:
            assert (await client.delete(f"/v1/records/{goes_on}")).status_code == 409
        said = await client.delete(f"/v1/records/{one}")
        assert (said.status_code, said.json()["deleted"]) == (200, True)
        assert (await client.delete(f"/v1/records/{one}")).status_code == 404
        assert (await client.delete("/v1/records/rtc_ber.000000000000")).status_code == 404
        assert sorted(await kept(at)) == sorted([goes_on, other])


async def test_a_caller_at_all_pops(of_two: Fleet) -> None:
    at, (fra, lhr) = of_two
    for number, pop in enumerate((fra, fra, lhr)):
        await phoned(pop, number)
    theirs, other = await phoned(lhr, 7, tenant="clinic"), await phoned(fra, 8, caller="+1")
    async with at.client() as client:
        with phoning(lhr, 9) as goes_on:
            said = await client.delete("/v1/records?caller=%2B4930123456")
        assert (said.status_code, said.json()) == (200, {
            "object": "records.deleted", "caller": NUMBER, "tenant": "", "since": None, "until": None, "deleted": 3,
            "in_progress": 1, "calls_in_progress": [goes_on], "not_permitted": 0, "complete": False,
            "deleted_at": {"fra": 2, "lhr": 1}, "not_permitted_at": [], "missing": [], "unsure": ""})  # fmt: skip
        assert (await client.delete("/v1/records?caller=%2B4930123456")).json()["complete"], "once it has ended"
        for asked in ("", "?caller=", "?caller=1&agent=x"):
            assert (await client.delete(f"/v1/records{asked}")).status_code == 400
    assert await kept(at) == [other] and await kept(at, "k-clinic") == [theirs]


async def test_pops_that_do_not_answer_are_named(of_two: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    at, (fra, lhr) = of_two
    there, _ = await phoned(fra, 1), await phoned(lhr, 2)
    await dies(at, fra, monkeypatch)
    async with at.client() as client:
        said = (await client.delete("/v1/records?caller=%2B4930123456")).json()
        assert (said["deleted"], said["missing"], said["complete"]) == (1, ["fra"], False)
        one = await client.delete(f"/v1/records/{there}")
        assert one.status_code == 503 and "'fra' does not answer" in one.json()["error"]["message"]


async def test_a_pop_that_said_goodbye_is_named_too(of_two: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    at, (fra, lhr) = of_two
    there, _ = await phoned(fra, 1), await phoned(lhr, 2)
    says_goodbye(at, "fra", monkeypatch)
    async with at.client() as client:
        for path in ("/v1/records", "/v1/costs"):
            assert (await client.get(path)).json()["missing"] == ["fra"]
        said = (await client.delete("/v1/records?caller=%2B4930123456")).json()
        assert (said["deleted"], said["missing"]) == (1, ["fra"])
        for one in (await client.get(f"/v1/records/{there}"), await client.delete(f"/v1/records/{there}")):
            assert one.status_code == 503 and "'fra' does not answer" in one.json()["error"]["message"]
    async with at.client(OPERATOR) as client:
        assert (await client.get("/v1/pops")).json()["lost"] == [], "it has said that it ends"


async def test_a_tenant_is_told_which_pops_keep_calls_of_no_tenant(of_two: Fleet) -> None:
    """A PoP that leaves keys to its directory takes phone calls for no tenant."""
    at, (fra, lhr) = of_two
    one = await phoned(fra, 1, tenant="local")
    await phoned(fra, 2), await phoned(lhr, 3), await phoned(lhr, 4, tenant="clinic")
    with phoning(fra, 5, tenant="local"):
        async with at.client() as client:
            said = (await client.delete("/v1/records?caller=%2B4930123456")).json()
            assert (said["deleted"], said["in_progress"], said["not_permitted"]) == (2, 0, 2)
            assert said["not_permitted_at"] == ["fra"], "nobody is told of another tenant's calls"
            its = await client.delete(f"/v1/records/{one}")
            assert its.status_code == 403 and "only the operator can delete it" in its.json()["error"]["message"]


async def test_who_fell_silent_and_still_answers_is_asked(of_two: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its way to the bus is cut, or the directory's."""
    at, (fra, _) = of_two
    there = await phoned(fra, 1), await phoned(fra, 2, caller="+1")
    view = at.directory._view
    monkeypatch.setattr(view, "heard", lambda *rest: False)
    view._known["fra"].sent_at -= 600
    async with at.client() as client:
        said = (await client.delete("/v1/records?caller=%2B4930123456")).json()
        assert (said["deleted_at"], said["missing"]) == ({"fra": 1}, [])
        assert (await client.delete(f"/v1/records/{there[1]}")).status_code == 200


async def test_a_directory_that_cannot_know_all_pops_says_so(
    of_two: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at, _ = of_two
    monkeypatch.setenv("VOICEPIPE_KEY", "k-acme")
    argv = ["records", "--url", at.url, "--delete-caller", NUMBER]
    assert await asyncio.to_thread(cli.main, argv) == 0
    at.directory.known = None
    assert await asyncio.to_thread(cli.main, argv) == 1
    assert "Set directory.known_pops." in capsys.readouterr().out.replace("\n", " ")
    monkeypatch.setattr(type(at.directory), "is_cut_off", True)
    assert await asyncio.to_thread(cli.main, [*argv, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["complete"], said["unsure"], said["missing"]) == (False, "cut_off", [])


async def test_a_pop_that_was_taken_away_is_named_until_it_is_forgotten(
    of_two: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at, (fra, lhr) = of_two
    await phoned(fra, 1)
    await dies(at, fra, monkeypatch)
    monkeypatch.setenv("VOICEPIPE_OPERATOR_KEY", OPERATOR)
    monkeypatch.setenv("VOICEPIPE_KEY", "k-acme")
    forgets = ["pops", "--directory", at.url, "--forget"]
    assert await asyncio.to_thread(cli.main, [*forgets, "lhr"]) == 2
    assert "reports, so it is there" in capsys.readouterr().err
    assert await asyncio.to_thread(cli.main, ["records", "--url", at.url, "--delete-caller", NUMBER]) == 1
    assert await asyncio.to_thread(cli.main, [*forgets, "fra"]) == 0
    assert await asyncio.to_thread(cli.main, [*forgets, "fra"]) == 2
    assert await asyncio.to_thread(cli.main, ["records", "--url", at.url, "--delete-caller", NUMBER]) == 0
    async with at.client() as client:
        assert (await client.delete("/v1/pops/lhr")).status_code == 401, "a tenant asks"


async def test_the_operator_reads_and_deletes_everyones(of_two: Fleet) -> None:
    at, (fra, lhr) = of_two
    ids = [await phoned(pop, number, tenant=tenant) for number, (pop, tenant) in enumerate(
        ((fra, "local"), (fra, "acme"), (lhr, "clinic"), (lhr, "gone")))]  # fmt: skip
    assert sorted(await kept(at, OPERATOR)) == sorted(ids)
    async with at.client(OPERATOR) as client:
        assert (await client.get(f"/v1/records/{ids[0]}")).json()["tenant"] == "local"
        rows = (await client.get("/v1/records?tenant=clinic")).json()["data"]
        assert [row["id"] for row in rows] == [ids[2]]
        costs = (await client.get("/v1/costs?by=tenant")).json()
        assert {row["name"] for row in costs["data"]} <= {"local", "acme", "clinic", "gone"}
        assert costs["host_cost"] is None, "no PoP has a price"
        assert (await client.delete(f"/v1/records/{ids[3]}")).status_code == 200
        said = (await client.delete("/v1/records?tenant=clinic")).json()
        assert (said["deleted_at"], said["complete"]) == ({"lhr": 1}, True)
        said = (await client.delete("/v1/records?caller=%2B4930123456")).json()
        assert (said["deleted"], said["deleted_at"], said["complete"]) == (2, {"fra": 2}, True)
    assert await kept(at, OPERATOR) == []
    async with at.client("wrong") as client:
        assert (await client.delete("/v1/records?caller=%2B4930123456")).status_code == 401
    async with at.client() as client:
        assert (await client.delete("/v1/records?tenant=clinic")).status_code == 403


async def test_a_directory_without_tenants_deletes_everyones(tmp_path: Path) -> None:
    """Who asks there without a key is its operator, on its own machine."""
    public = await asyncio.to_thread(public_key, tmp_path)
    bus, keeps = MemoryBus(), {"folder": str(tmp_path / "kept")}
    config = settings("fra", public, FRANKFURT, records=keeps)
    async with asyncio.timeout(LONG_S), fleet(config, bus=bus) as (directory, (fra,)):
        async with served(directory, bus, owners={}, operator="") as at, at.client() as client:
            await phoned(fra, 1, tenant="local"), await phoned(fra, 2, tenant="acme")
            assert len((await client.get("/v1/records")).json()["data"]) == 2
            said = (await client.delete("/v1/records?caller=%2B4930123456")).json()
            assert (said["deleted"], said["complete"]) == (2, True)


async def test_a_terminal_says_what_a_key_may_not_delete(
    of_two: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at, (fra, lhr) = of_two
    await phoned(fra, 1, tenant="local"), await phoned(lhr, 2, tenant="clinic"), await phoned(lhr, 3)
    monkeypatch.setenv("VOICEPIPE_KEY", "k-acme")
    status = await asyncio.to_thread(cli.main, ["records", "--url", at.url, "--delete-caller", NUMBER])
    assert (status, capsys.readouterr().out) == (1, (
        "Deleted: 1 call from +4930123456 (1 at lhr)\n"
        "Kept, since this key may not delete them: 1 call of no tenant. The operator deletes them, with the key of "
        "http.operator_key_env (--key-env).\n"
    ))  # fmt: skip
    status = await asyncio.to_thread(cli.main, ["records", "--url", at.url, "--delete-caller", NUMBER, "--json"])
    assert status == 1 and json.loads(capsys.readouterr().out)["not_permitted_at"] == ["fra"]


async def test_a_pop_that_keeps_none_is_not_missing(tmp_path: Path) -> None:
    public = await asyncio.to_thread(public_key, tmp_path)
    bus = MemoryBus()
    async with asyncio.timeout(LONG_S), fleet(settings("fra", public, FRANKFURT), bus=bus) as (directory, _):
        async with served(directory, bus) as at, at.client() as client:
            said = (await client.delete("/v1/records?caller=1")).json()
            assert (said["deleted"], said["missing"]) == (0, [])


async def test_a_terminal_says_what_is_left(
    of_two: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at, (fra, lhr) = of_two
    await phoned(fra, 1), await phoned(lhr, 2), await phoned(lhr, 3)
    await dies(at, fra, monkeypatch)
    monkeypatch.setenv("VOICEPIPE_KEY", "k-acme")
    status = await asyncio.to_thread(cli.main, ["records", "--url", at.url, "--delete-caller", NUMBER])
    assert (status, capsys.readouterr().out) == (1, (
        "Deleted: 2 calls from +4930123456 (2 at lhr)\n"
        "These PoPs did not answer, and what they keep of such calls may still be there (ask again): fra\n"
    ))  # fmt: skip

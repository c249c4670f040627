"""`voicepipe records`, as somebody at a terminal meets it, with a PoP that runs."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.records.phoning import NUMBER, phoning
from tests.records.test_records import over, secrets, settings
from voicepipe.commands import cli
from voicepipe.commands import records as command
from voicepipe.pop.pop import Pop
from voicepipe.pop.running import running

__all__ = ["secrets"]


async def said(capsys: pytest.CaptureFixture[str], pop: Pop, *argv: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error."""
    url = f"http://127.0.0.1:{pop.config.http.port}"
    status = await asyncio.to_thread(cli.main, ["records", "--url", url, "--key-env", "KEY_A", *argv])
    return status, *capsys.readouterr()


def test_small_amounts_have_three_digits() -> None:
    amounts = [None, 12.3, 1.0, 0.9999, 0.35, 0.0123, 0.00099996, 0.0000162, 0.0, 1e-17]
    shown = ["", "12.30", "1.00", "1.00", "0.350", "0.0123", "0.00100", "0.0000162", "0.00", "0.00"]
    assert [command._money(amount) for amount in amounts] == shown


async def phoned(pop: Pop, calls: int) -> list[str]:
    """Ids of calls that have ended."""
    ids = []
    for number in range(calls):
        with phoning(pop, number) as call_id:
            ids.append(call_id)
    await over(pop, calls)
    return ids


async def test_lists_and_costs_of_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(settings(tmp_path)) as pop:
        (one,) = await phoned(pop, 1)
        assert one in (await said(capsys, pop, "--since", "1h"))[1]
        assert one not in (await said(capsys, pop, "--since", "2h", "--until", "1h"))[1]
        assert one not in (await said(capsys, pop, "--until", "2020-01-01"))[1]
        _, out, _ = await said(capsys, pop, "--costs", "agent", "--since", "2h", "--until", "1h", "--json")
        assert json.loads(out)["data"] == []
        status, _, err = await said(capsys, pop, "--until", "tomorrow")
        assert status == 2 and "--until tomorrow: give a time ago" in err


async def test_a_call_is_shown_with_its_agent_s_variables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"plan": "gold", "empty": "", "card": "4111 1111 1111 1111"}
    async with running(settings(tmp_path)) as pop:
        with phoning(pop, 1, variables=values) as one:
            pass
        await over(pop, 1)
        assert "\nplan: gold, card: [card]\n" in (await said(capsys, pop, one))[1]
        _, out, _ = await said(capsys, pop, one, "--json")
        assert json.loads(out)["variables"] == values | {"card": "[card]"}


async def test_one_call_is_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(settings(tmp_path)) as pop:
        (one,) = await phoned(pop, 1)
        assert await said(capsys, pop, "--delete", one) == (0, f"Deleted: {one}\n", "")
        status, out, err = await said(capsys, pop, "--delete", one)
        assert (status, out) == (2, "") and "No record of a call" in err
        with phoning(pop, 9) as goes_on:
            status, _, err = await said(capsys, pop, "--delete", goes_on)
            assert status == 2 and "wait for its end or hang up" in err
        assert (await said(capsys, pop, "--delete", ""))[0] == 2


async def test_a_caller_is_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(settings(tmp_path)) as pop:
        await phoned(pop, 2)
        with phoning(pop, 9) as goes_on:
            status, out, _ = await said(capsys, pop, "--delete-caller", NUMBER)
            assert (status, out) == (1, (
                "Deleted: 2 calls from +4930123456\n"
                f"Kept, since still in progress: {goes_on}. Delete again after that.\n"))  # fmt: skip
            assert (await said(capsys, pop, "--delete-caller", NUMBER, "--json"))[0] == 1
        assert await said(capsys, pop, "--delete-caller", NUMBER) == (0, "Deleted: 1 call from +4930123456\n", "")
        status, out, _ = await said(capsys, pop, "--delete-caller", NUMBER)
        assert status == 0 and out.startswith("Deleted: 0 calls") and "Give the whole number" in out


async def test_what_deletes_all_or_does_not_belong_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(settings(tmp_path)) as pop:
        (one,) = await phoned(pop, 1)
        for argv in (("--delete-caller", ""), ("--delete-caller", "", "--tenant", "acme"), ("--delete-all",),
                     ("--delete-caller", NUMBER, "--agent", "front-desk"), ("--delete", one, "--since", "2h"),
                     ("--delete", one, "--agent", "front-desk")):  # fmt: skip
            assert (await said(capsys, pop, *argv))[0] == 2
        assert one in (await said(capsys, pop))[1]


async def test_calls_of_a_time_are_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(settings(tmp_path)) as pop:
        await phoned(pop, 2)
        assert (await said(capsys, pop, "--delete-all", "--until", "1h"))[:2] == (0, "Deleted: 0 calls\n")
        status, out, _ = await said(capsys, pop, "--delete-all", "--tenant", "acme", "--since", "1h", "--json")
        assert (status, json.loads(out)["deleted"]) == (0, 2)

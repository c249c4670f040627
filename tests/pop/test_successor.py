"""A process that is to be replaced, with programs in place of a new voicepipe: what it does when they fail."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.support.waiting import until
from voicepipe.base.errors import UpgradeFailed
from voicepipe.base.takeover import TakeoverParts
from voicepipe.config import Config
from voicepipe.pop import successor as module
from voicepipe.pop.successor import Successor

PROGRAM = """
import asyncio, os, sys
from voicepipe.base.errors import ConfigError
from voicepipe.base.takeover import TakeoverParts
from voicepipe.pop.predecessor import Predecessor, inherited

async def run():
    before = Predecessor(inherited())
    before.open()
    {then}

asyncio.run(run())
"""
TAKES_OVER = """parts = TakeoverParts()
    parts.join("words", list[str], lambda: [], lambda words: print(words, file=open(sys.argv[1], "w")))
    taken = await before.sockets(parts)
    before.serving()
    before.pass_on(b"BYE", ("127.0.0.1", 5060))
    taken.http.accept()
    before.end_calls()"""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits 30 s for the sockets' use waits for one."""
    monkeypatch.setattr(module, "SERVES_S", 3.0)


class Front:
    """HTTP's or SIP's server, and what becomes of it."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.did: list[str] = []
        self.passed: list[tuple[bytes, tuple[str, int]]] = []

    def pause(self) -> socket.socket:
        self.did.append("pause")
        return self.socket

    def resume(self) -> None:
        self.did.append("resume")

    def retire(self) -> None:
        self.did.append("retire")

    def private_port(self) -> int:
        return 1

    def close_idle(self) -> None:
        self.did.append("close idle")

    def passed_on(self, data: bytes, source: tuple[str, int]) -> None:
        self.passed.append((data, source))


@pytest.fixture
def fronts() -> Iterator[tuple[Front, Front]]:
    http, phones = Front(), Front()
    yield http, phones
    http.socket.close()
    phones.socket.close()


def starts(monkeypatch: pytest.MonkeyPatch, then: str, *args: str) -> None:
    """The new process is a program that does this, once it runs."""
    command = [sys.executable, "-c", PROGRAM.format(then=then), *args]
    monkeypatch.setattr(module, "own_command", lambda: command)


async def test_a_process_takes_over_with_sockets_and_state(
    fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (http, phones), ended, parts = fronts, list[bool](), TakeoverParts()
    parts.join("words", list[str], lambda: ["one", "two"], lambda words: None)
    its = Successor(parts, Config, lambda: ended.append(True))
    its.fronts(http, phones)
    mains: list[int] = []
    its.main = mains.append
    starts(monkeypatch, TAKES_OVER, f"{tmp_path}/words")
    taken = await its.take_over()
    assert mains == [taken.pid] and taken.pid != os.getpid()
    assert http.did == phones.did == ["pause", "retire"] and parts.is_handed_over
    await until(lambda: phones.passed == [(b"BYE", ("127.0.0.1", 5060))])
    assert (await asyncio.to_thread((tmp_path / "words").read_text)).strip() == "['one', 'two']"
    with socket.create_connection(http.socket.getsockname()):  # The new process accepts it, and ends.
        await until(lambda: ended == [True])


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("sys.exit()", "before its engines were loaded"),
        ('before.failed("engines.llm is misspelt")', "engines.llm is misspelt"),
        ("await before.sockets(TakeoverParts())", "took no calls"),
    ],
)
async def test_a_process_that_fails_changes_nothing(
    fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch, then: str, said: str
) -> None:
    (http, phones), parts = fronts, TakeoverParts()
    its = Successor(parts, Config)
    its.fronts(http, phones)
    its.main = lambda pid: None
    starts(monkeypatch, then)
    for _ in range(2):  # It may be tried again.
        with pytest.raises(UpgradeFailed, match=said):
            await its.take_over()
    assert http.did in ([], ["pause", "resume"] * 2) and phones.did == http.did
    assert not parts.is_handed_over and not its.taken_over.is_set()


async def test_one_that_cannot_be_started_is_said_at_once(
    fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "own_command", lambda: ["/nowhere/voicepipe"])
    its = Successor(TakeoverParts(), Config)
    its.fronts(*fronts)
    its.main = lambda pid: None
    with pytest.raises(UpgradeFailed, match="did not start"):
        await its.take_over()


async def test_a_pop_of_a_fleet_is_not_upgraded_so(fronts: tuple[Front, Front]) -> None:
    config = Config()
    bus = msgspec.structs.replace(config.bus, servers=("nats://127.0.0.1:4222",))
    its = Successor(TakeoverParts(), lambda: msgspec.structs.replace(config, bus=bus))
    its.fronts(*fronts)
    with pytest.raises(UpgradeFailed, match="voicepipe drain local"):
        await its.take_over()


async def test_the_first_process_of_a_container_is_not_upgraded_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getpid", lambda: 1)
    its = Successor(TakeoverParts(), Config)
    its.main = lambda pid: None
    with pytest.raises(UpgradeFailed, match="container"):
        await its.take_over()


async def test_a_pop_that_another_program_has_started_is_not_upgraded_so(fronts: tuple[Front, Front]) -> None:
    its = Successor(TakeoverParts(), Config)
    its.fronts(*fronts)
    with pytest.raises(UpgradeFailed, match="voicepipe pop"):
        await its.take_over()


async def test_two_upgrades_at_a_time_are_one(fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch) -> None:
    its = Successor(TakeoverParts(), Config)
    its.fronts(*fronts)
    its.main = lambda pid: None
    starts(monkeypatch, "await asyncio.sleep(60)")
    first = asyncio.create_task(its.take_over())
    await asyncio.sleep(0)
    with pytest.raises(UpgradeFailed, match="under way"):
        await its.take_over()
    its.withdraw()
    with pytest.raises(UpgradeFailed, match="told to stop"):
        await first
    with pytest.raises(UpgradeFailed, match="takes no calls any more"):
        await its.take_over()


async def test_a_new_process_that_dies_gives_the_sockets_back(
    fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch
) -> None:
    (http, phones), parts = fronts, TakeoverParts()
    its = Successor(parts, Config)
    its.fronts(http, phones)
    its.main = lambda pid: None
    starts(monkeypatch, "await before.sockets(TakeoverParts())\n    before.serving()\n    await asyncio.sleep(60)")
    taken = await its.take_over()
    os.kill(taken.pid, signal.SIGKILL)
    await until(lambda: http.did == phones.did == ["pause", "retire", "resume"])
    assert not parts.is_handed_over

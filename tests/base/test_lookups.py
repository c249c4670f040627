"""Names that others choose, and whose name servers may never answer: nobody waits for another's."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.name_server import HERE, KNOWN, NOBODY, SLOW, NameServer, name_server
from tests.support.waiting import until
from voicepipe.base.lookups import MOST_KNOWN, Found, Limits, Lookups, Question

LIMITS = Limits(threads=3, line=5, wait_s=60.0, found_s=60.0, missing_s=10.0)
QUICK = Limits(threads=3, line=5, wait_s=0.05, found_s=60.0, missing_s=10.0)


@pytest.fixture
def server() -> Iterator[NameServer]:
    with name_server() as made:
        yield made


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def of(name: str) -> Question:
    return (name, 0, socket.SOCK_STREAM, 0, 0)


def asking(lookups: Lookups, *names: str) -> list["asyncio.Task[Found]"]:
    return [asyncio.create_task(lookups.find(of(name))) for name in names]


def address(found: Found) -> str:
    return str(found[0][4][0])


async def test_a_name_that_hangs_has_one_thread_and_delays_no_other(server: NameServer) -> None:
    lookups = Lookups("slow-names", LIMITS)
    waiting = asking(lookups, *[SLOW] * 50)
    await until(lambda: server.now == 1)
    assert address(await lookups.find(of(KNOWN))) == HERE
    with pytest.raises(socket.gaierror, match="not known"):
        await lookups.find(of(NOBODY))
    assert server.asked == [SLOW, KNOWN, NOBODY]
    hung = [thread for thread in threading.enumerate() if thread.name == "slow-names"]
    assert hung and all(thread.daemon for thread in hung), "the process may end"
    server.go_on.set()
    assert {address(found) for found in await asyncio.gather(*waiting)} == {HERE}


async def test_who_gives_up_stops_nobody_else(server: NameServer) -> None:
    lookups = Lookups("names", LIMITS)
    first, second = asking(lookups, SLOW, SLOW)
    await until(lambda: server.now == 1)
    first.cancel()
    await asyncio.wait({first})
    server.go_on.set()
    assert address(await second) == HERE and first.cancelled()


async def test_who_waits_for_a_thread_gets_one_in_order(server: NameServer) -> None:
    lookups = Lookups("names", replace(LIMITS, threads=1))
    names = [f"{n}.invalid" for n in range(1 + LIMITS.line)]
    waiting = asking(lookups, *names)
    await until(lambda: server.now == 1)
    with pytest.raises(socket.gaierror, match=r"x\.invalid is not looked up: name servers do not answer for too many"):
        await lookups.find(of("x.invalid"))
    server.go_on.set()
    await asyncio.gather(*waiting)
    assert server.asked == names and server.most == 1


async def test_nobody_waits_for_long_where_all_threads_hang(server: NameServer) -> None:
    lookups = Lookups("names", QUICK)
    hung = asking(lookups, *(f"{n}.invalid" for n in range(QUICK.threads)))
    await until(lambda: server.now == QUICK.threads)
    failed = await asyncio.gather(*asking(lookups, KNOWN, KNOWN, NOBODY), return_exceptions=True)
    assert [error.errno for error in failed if isinstance(error, socket.gaierror)] == [socket.EAI_AGAIN] * 3
    assert failed[0] is not failed[1]
    server.go_on.set()
    await asyncio.gather(*hung)
    assert address(await lookups.find(of(KNOWN))) == HERE, "it was not remembered that it could not be looked up"
    assert len(server.asked) == QUICK.threads + 1


@pytest.mark.parametrize(("name", "kept_s"), [(KNOWN, LIMITS.found_s), (NOBODY, LIMITS.missing_s)])
async def test_an_answer_is_kept(server: NameServer, name: str, kept_s: float) -> None:
    clock = Clock()
    lookups = Lookups("names", LIMITS, clock)
    for n in range(1, 3):
        for _ in range(20):
            await asyncio.wait(asking(lookups, name))
        assert len(server.asked) == n
        clock.now += kept_s + 0.1


async def test_only_so_many_answers_are_kept(server: NameServer) -> None:
    lookups = Lookups("names", LIMITS)
    server.go_on.set()
    for n in range(MOST_KNOWN + 10):
        await lookups.find(of(f"{n}.invalid"))
    assert len(lookups._known) == MOST_KNOWN and of(f"{MOST_KNOWN + 9}.invalid") in lookups._known


@pytest.mark.parametrize("name", ["a\0b", "ä" * 70, "a" * 300])
async def test_what_is_no_name_has_no_address(name: str) -> None:
    lookups = Lookups("names", LIMITS)
    with pytest.raises(OSError):
        await lookups.find(of(name))
    assert not lookups._running


async def test_a_system_without_threads(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    lookups = Lookups("names", LIMITS)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(socket.gaierror, match="can't start new thread"):
            await lookups.find(of(KNOWN))
    assert address(await lookups.find(of(KNOWN))) == HERE


async def test_once_closed_nothing_more_is_looked_up(server: NameServer) -> None:
    lookups = Lookups("names", QUICK)
    waiting = asking(lookups, *(f"{n}.invalid" for n in range(QUICK.threads + QUICK.line)))
    await until(lambda: server.now == QUICK.threads)
    lookups.close()
    server.go_on.set()
    await until(lambda: not lookups._running)
    assert len(server.asked) == QUICK.threads and not any(task.done() for task in waiting)
    for task in waiting:
        task.cancel()

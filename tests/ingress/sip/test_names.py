"""Hosts that a caller names, and whose name server never answers: nobody else waits, and little is asked."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import calling, phone, sip
from tests.waiting import until
from voicepipe.ingress.sip.names import (
    FOUND_S,
    MISSING_S,
    MOST_DATAGRAMS,
    MOST_KNOWN,
    MOST_NAMES,
    THREADS,
    WAIT_S,
    Names,
)

SLOW, KNOWN, NOBODY = "slow.invalid", "known.invalid", "nobody.invalid"
HERE = "127.0.0.9"


class NameServer:
    """In place of the system's: answers for KNOWN, knows nothing of NOBODY, is silent about other such names."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.now = self.most = 0
        """Lookups at a time."""
        self.go_on = threading.Event()
        self._lock, self._real = threading.Lock(), socket.getaddrinfo

    def look_up(self, host: Any, *more: Any, **named: Any) -> list[Any]:
        if not str(host).endswith(".invalid"):
            return self._real(host, *more, **named)
        with self._lock:
            self.asked.append(host)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            if host not in (KNOWN, NOBODY):
                self.go_on.wait(60)
            if host == NOBODY:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (HERE, 0))]
        finally:
            with self._lock:
                self.now -= 1


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    made = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", made.look_up)
    yield made
    made.go_on.set()


class Sent:
    """What goes out, and the time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.all: list[tuple[bytes, tuple[str, int]]] = []
        self.names = Names(lambda data, address: self.all.append((data, address)), lambda: self.now)


@pytest.mark.usefixtures("hasty")
async def test_goodbyes_to_a_name_that_hangs_take_one_lookup_in_a_thread_of_its_own(server: NameServer) -> None:
    """Three calls, each of whose BYEs is sent seven times."""
    pop = FakePop(sip())
    route = [("Record-Route", f"<sip:{SLOW};lr>")]
    async with calling(pop) as ann, phone(pop) as ben, phone(pop) as cora:
        for caller in (ann, ben, cora):
            assert (await caller.dial(headers=route)).code == 200
        for call in pop.calls:
            await call.line.hang_up()
        await until(lambda: server.asked)
        await settled(pop)  # Each waits 2 s for the answer to its BYE, which is sent seven times in 0.7 s here.
        assert server.asked == [SLOW]
    assert "sip-names" in {thread.name for thread in threading.enumerate()}
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "sip-names")


async def test_only_so_many_names_are_looked_up_at_a_time_and_wait(server: NameServer) -> None:
    sent = Sent()
    for n in range(1000):
        sent.names.send(b"BYE", (f"{n}.invalid", 5060))
    await until(lambda: server.now == THREADS)
    assert len(sent.names._asked) == THREADS + MOST_NAMES
    sent.now += WAIT_S + 1
    server.go_on.set()
    await until(lambda: not sent.names._asked)
    assert server.most == THREADS
    assert len(server.asked) == len(sent.all) == THREADS, "nobody waits any longer for the others"
    sent.names.send(b"BYE", (KNOWN, 5060))
    await until(lambda: sent.all[-1] == (b"BYE", (HERE, 5060)) and len(sent.all) == THREADS + 1)


async def test_what_is_sent_again_waits_once_and_only_so_much_waits(server: NameServer) -> None:
    sent = Sent()
    for n in range(2 * MOST_DATAGRAMS):
        for _ in range(7):
            sent.names.send(b"BYE %d" % n, (SLOW.upper(), 5060 + n))
    server.go_on.set()
    await until(lambda: sent.all)
    assert sent.all == [(b"BYE %d" % n, (HERE, 5060 + n)) for n in range(MOST_DATAGRAMS)]
    assert server.asked == [SLOW]


async def test_an_address_is_kept_and_so_is_that_there_is_none(server: NameServer) -> None:
    sent = Sent()
    for name, kept_s in ((KNOWN, FOUND_S), (NOBODY, MISSING_S)):
        server.asked.clear()
        for _ in range(2):
            for _ in range(20):
                sent.names.send(b"BYE", (name, 5060))
                await until(lambda: not sent.names._asked)
            sent.now += kept_s + 0.1
        assert server.asked == [name, name]
    assert sent.all == [(b"BYE", (HERE, 5060))] * 40


async def test_only_so_many_addresses_are_kept(server: NameServer) -> None:
    sent = Sent()
    server.go_on.set()
    for n in range(MOST_KNOWN + 10):
        sent.names.send(b"BYE", (f"{n}.invalid", 5060))
        await until(lambda: not sent.names._asked)
    assert len(sent.names._known) == MOST_KNOWN and f"{MOST_KNOWN + 9}.invalid" in sent.names._known


@pytest.mark.parametrize("host", ["", "a b", "[::1]", "::1", "1.2.3.4 x.invalid", "\0", "ö.invalid", "a" * 300, "-x"])
async def test_what_is_no_host_is_not_looked_up(server: NameServer, host: str) -> None:
    sent = Sent()
    sent.names.send(b"BYE", (host, 5060))
    assert not sent.names._asked and not server.asked


async def test_once_closed_nothing_is_sent(server: NameServer) -> None:
    sent = Sent()
    for n in range(2 * THREADS):
        sent.names.send(b"BYE", (f"{n}.invalid", 5060))
    await until(lambda: server.now == THREADS)
    sent.names.close()
    server.go_on.set()
    await until(lambda: not sent.names._running)
    assert not sent.all and len(server.asked) == THREADS

"""Hosts that a caller names, and whose name server never answers: nobody else waits, and little is asked."""

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import calling, phone, sip
from tests.support.name_server import HERE, KNOWN, NOBODY, SLOW, NameServer, name_server
from tests.support.waiting import until
from voicepipe.ingress.sip.names import LIMITS, MOST_DATAGRAMS, ResolvingSender


@pytest.fixture
def server() -> Iterator[NameServer]:
    with name_server() as made:
        yield made


class Sent:
    """What goes out, and the time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.all: list[tuple[bytes, tuple[str, int]]] = []
        self.names = ResolvingSender(lambda data, address: self.all.append((data, address)), lambda: self.now)


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
    await until(lambda: server.now == LIMITS.threads)
    assert len(sent.names._waiting) == LIMITS.threads + LIMITS.line
    server.go_on.set()
    await until(lambda: len(sent.all) == LIMITS.threads + LIMITS.line)
    assert server.most == LIMITS.threads and not sent.names._waiting


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
    for name, kept_s in ((KNOWN, LIMITS.found_s), (NOBODY, LIMITS.missing_s)):
        server.asked.clear()
        for _ in range(2):
            for _ in range(20):
                sent.names.send(b"BYE", (name, 5060))
                await until(lambda: not sent.names._waiting)
            sent.now += kept_s + 0.1
        assert server.asked == [name, name]
    assert sent.all == [(b"BYE", (HERE, 5060))] * 40


@pytest.mark.parametrize("host", ["", "a b", "[::1]", "::1", "1.2.3.4 x.invalid", "\0", "ö.invalid", "a" * 300, "-x"])
async def test_what_is_no_host_is_not_looked_up(server: NameServer, host: str) -> None:
    sent = Sent()
    sent.names.send(b"BYE", (host, 5060))
    assert not sent.names._waiting and not server.asked


async def test_once_closed_nothing_is_sent(server: NameServer) -> None:
    sent = Sent()
    for n in range(2 * LIMITS.threads):
        sent.names.send(b"BYE", (f"{n}.invalid", 5060))
    await until(lambda: server.now == LIMITS.threads)
    sent.names.close()
    server.go_on.set()
    await until(lambda: not sent.names._lookups._running)
    assert not sent.all and len(server.asked) == LIMITS.threads


async def test_names_without_an_address_do_not_fill_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever calls may name another host in each call."""

    def unknown(host: str, *_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    sent = Sent()
    for n in range(300):
        sent.names.send(b"BYE", (f"{n}.invalid", 5060))
        await until(lambda: not sent.names._waiting)
    assert "'0.invalid' has no address ([Errno -2] Name or service not known)" in caplog.messages
    assert len(caplog.records) < 200 and "SIP hosts without an address" in caplog.text

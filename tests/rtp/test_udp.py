"""Two ends of a phone call on real sockets, and strangers at their ports."""

import asyncio
import errno
import gc
import socket
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from tests.support.sinks import Media, Packets
from tests.support.waiting import until
from voicepipe.base.errors import NoPort
from voicepipe.rtp import rtcp, sip_sdp, udp
from voicepipe.rtp.codec import PCMU
from voicepipe.rtp.packet import RtpPacket, is_rtcp
from voicepipe.rtp.ports import candidates
from voicepipe.rtp.rtp_session import RtpSession
from voicepipe.rtp.sdes import Srtp, offered
from voicepipe.rtp.udp import LONGEST, MOST, REPORTS, WINDOW_S, UdpMedia

HOST = "127.0.0.1"


def packet(n: int, ssrc: int = 7) -> bytes:
    return bytes(RtpPacket(0, n, n * 160, ssrc, bytes(160)))


class Phone:
    """One end: what it hears, and the description that it gives."""

    def __init__(self, ports: tuple[int, int] = (0, 0)) -> None:
        self.media = UdpMedia(HOST, ports)
        self.port = self.media.open()
        self.local = sip_sdp.LocalDescription(HOST, self.port)
        self.listen()

    def listen(self) -> None:
        packets = Packets()
        self.heard, self.arrived = packets.data, packets.arrived
        self.media.deliver_to(packets)


def agree(caller: Phone, callee: Phone, *, secure: bool = False, mux: bool = False) -> tuple[Srtp, Srtp] | None:
    """As by INVITE and 200."""
    offer = sip_sdp.offer(caller.local, (PCMU,), offered() if secure else ()) + ("a=rtcp-mux\r\n" if mux else "")
    asked = sip_sdp.read(offer)
    ours = Srtp.answering(asked.crypto[0]) if secure else None
    said = sip_sdp.read(sip_sdp.answer(asked, callee.local, ours.ours if ours else None))
    theirs = Srtp.answered(asked.crypto, said.crypto[0]) if secure else None
    callee.media.agree(asked, HOST, ours)
    caller.media.agree(said, HOST, theirs)
    return (theirs, ours) if theirs and ours else None


@asynccontextmanager
async def talking(*, secure: bool = False, mux: bool = False) -> AsyncIterator[tuple[Phone, Phone]]:
    caller, callee = Phone(), Phone()
    try:
        agree(caller, callee, secure=secure, mux=mux)
        yield caller, callee
    finally:
        caller.media.close()
        callee.media.close()


@contextmanager
def stranger() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HOST, 0))
        yield sock


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("mux", [False, True])
async def test_sound_and_reports_go_both_ways(secure: bool, mux: bool) -> None:
    async with talking(secure=secure, mux=mux) as (caller, callee):
        began = time.monotonic()
        sound = [packet(n) for n in range(20)]
        report = rtcp.build(7, "name", None, (), goodbye=False)
        for one in (caller, callee):
            for data in sound:
                one.media.send_rtp(data)
            one.media.send_rtcp(report)
        await until(lambda: len(caller.heard) == len(callee.heard) == 21)
        for one in (caller, callee):
            assert [data for data in one.heard if not is_rtcp(data)] == sound and report in one.heard
            assert all(began <= arrived <= time.monotonic() for arrived in one.arrived)
            assert one.media.invalid == 0 and one.media.refused is None


async def test_rtp_has_an_even_port_of_the_range_and_rtcp_the_next() -> None:
    low = next(port for port in candidates((20_000, 60_000), pairs=True) if free(port))
    one = Phone((low, low + 1))
    assert one.port == low
    with pytest.raises(NoPort, match=r"No pair of UDP ports .*: set sip\.first_port"):
        UdpMedia(HOST, (low, low + 1)).open()
    assert not free(low) and not free(low + 1)
    one.media.close()
    one.media.close()
    assert free(low) and free(low + 1)
    other = UdpMedia(HOST)
    assert other.open() % 2 == 0
    other.close()


def free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind((HOST, port))
        except OSError:
            return False
    return True


@pytest.mark.parametrize("ports", [(20_001, 20_002), (20_000, 20_000)])
async def test_a_range_without_a_pair(ports: tuple[int, int]) -> None:
    with pytest.raises(NoPort, match="the range is too small"):
        UdpMedia(HOST, ports).open()


async def test_an_address_that_is_not_ours_leaves_no_socket_open() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with pytest.raises(NoPort, match=r"192\.0\.2\.1 .*sip\.host"):
            UdpMedia("192.0.2.1").open()
        gc.collect()


async def test_before_and_after_the_call_nothing_is_sent_or_heard() -> None:
    one = Phone()
    one.media.send_rtp(packet(1))
    one.media.send_rtcp(packet(1))
    with stranger() as sock:
        sock.sendto(packet(1), (HOST, one.port))
        await until(lambda: one.media.invalid == 1)
    one.media.close()
    one.media.send_rtp(packet(2))
    assert one.heard == []


async def test_who_is_not_the_peer_is_not_heard() -> None:
    async with talking() as (caller, callee):
        caller.media.send_rtp(packet(1))
        await until(lambda: len(callee.heard) == 1)
        with stranger() as sock:
            for data in (packet(2, ssrc=99), packet(1), b"", b"x", bytes(200), b"\0\1" + bytes(18), bytes(LONGEST + 1)):
                sock.sendto(data, (HOST, callee.port))
            caller.media.send_rtp(packet(2))
            await until(lambda: len(callee.heard) == 2 and callee.media.invalid >= 6)
            assert callee.media.refused == sock.getsockname()
            callee.media.send_rtp(packet(3))
            await until(lambda: len(caller.heard) == 1)
        assert callee.heard == [packet(1), packet(2)]


async def test_a_phone_behind_a_nat_is_answered_where_it_sends_from() -> None:
    """Its SDP names a port that nobody listens on."""
    callee = Phone()
    said = sip_sdp.read(sip_sdp.offer(sip_sdp.LocalDescription(HOST, 9), (PCMU,)))
    callee.media.agree(said, HOST, None)
    with stranger() as phone:
        phone.setblocking(False)
        loop = asyncio.get_running_loop()
        callee.media.send_rtp(packet(1))  # to nobody: what the system tells of it ends nothing
        phone.sendto(packet(1), (HOST, callee.port))
        phone.sendto(rtcp.build(7, "name", None, (), goodbye=False), (HOST, callee.port + 1))
        await until(lambda: len(callee.heard) == 2)
        callee.media.send_rtp(packet(5))
        assert await asyncio.wait_for(loop.sock_recv(phone, 2000), 60) == packet(5)
        callee.media.send_rtcp(packet(6))
        assert await asyncio.wait_for(loop.sock_recv(phone, 2000), 60) == packet(6)
    callee.media.close()


async def test_with_srtp_only_what_is_authentic_is_heard_and_latched() -> None:
    async with talking(secure=True) as (caller, callee):
        with stranger() as sock:
            for n in range(10):
                sock.sendto(packet(n), (HOST, callee.port))
                sock.sendto(packet(n) + bytes(10), (HOST, callee.port))
                sock.sendto(rtcp.build(7, "name", None, (), goodbye=True) + bytes(14), (HOST, callee.port + 1))
            await until(lambda: callee.media.invalid == 30)
            sent: list[bytes] = []
            caller.media._sockets[0].send = lambda data, target: sent.append(data)  # type: ignore[method-assign]
            caller.media.send_rtp(packet(1))
            (data,) = sent
            sock.sendto(data[:20] + bytes([data[20] ^ 1]) + data[21:], (HOST, callee.port))
            await until(lambda: callee.media.invalid == 31)
            sock.sendto(data, (HOST, callee.port))
            await until(lambda: callee.heard == [packet(1)])
            sock.sendto(data, (HOST, callee.port))
            await until(lambda: callee.media.invalid == 32)


async def test_a_new_description_with_the_same_key_goes_on() -> None:
    async with talking(secure=True) as (caller, callee):
        for n in range(5):
            caller.media.send_rtp(packet(65_533 + n if n < 3 else n - 3))
        asked = sip_sdp.read(sip_sdp.offer(caller.local, (PCMU,), (caller.media._srtp.ours,)))  # type: ignore[union-attr]
        before = callee.media._srtp
        callee.media.agree(asked, HOST, Srtp.answering(asked.crypto[0], before))
        assert callee.media._srtp is before
        caller.media.send_rtp(packet(2))
        await until(lambda: len(callee.heard) == 6)


async def test_hold_by_an_empty_address_sends_nothing_and_comes_back() -> None:
    async with talking() as (caller, callee):
        offer = sip_sdp.offer(caller.local, (PCMU,))
        callee.media.agree(sip_sdp.read(offer.replace(HOST, "0.0.0.0")), HOST, None)
        callee.media.send_rtcp(rtcp.build(7, "name", None, (), goodbye=False))
        callee.media.agree(sip_sdp.read(offer), HOST, None)
        callee.media.send_rtp(packet(2))
        await until(lambda: caller.heard == [packet(2)])


async def test_a_flood_at_one_port_does_not_starve_another_call() -> None:
    """Nor the loop: what is more than a call can have stays in the socket, and the system drops what does not fit."""
    async with talking() as (_, flooded), talking() as (caller, callee):
        loop, flooding = asyncio.get_running_loop(), True

        def flood() -> int:
            sent = 0
            with stranger() as sock:
                while flooding:
                    for _ in range(100):
                        sock.sendto(packet(sent % 65_536), (HOST, flooded.port))
                        sent += 1
                    time.sleep(0.001)
            return sent

        began, flooder = time.monotonic(), loop.run_in_executor(None, flood)
        for n in range(100):
            caller.media.send_rtp(packet(n))
            await asyncio.sleep(0.01)
        await until(lambda: len(callee.heard) == 100)
        read, windows = flooded.media.invalid + len(flooded.heard), (time.monotonic() - began) / WINDOW_S
        flooding = False
        assert await flooder > read
        assert 0 < read <= 3 * MOST * (windows + 2)  # timers are late, and windows begin with a datagram
        assert callee.heard == [packet(n) for n in range(100)]


@pytest.mark.parametrize("which", [0, 1])
async def test_a_flood_of_reports_is_read_no_further_than_any_phone_sends_them(which: int) -> None:
    """At both ports together; sound goes on beside it."""
    async with talking() as (caller, callee):
        session = RtpSession(PCMU, 0, callee.media, Media())
        costly = rtcp.build(7, "name", None, (), goodbye=False) + bytes([0x80, 205, 0, 0]) * 350
        source, began = (HOST, caller.port), time.monotonic()
        before = time.thread_time()
        for n in range(100):  # Of these windows each is full: 2 s.
            for _ in range(MOST):
                (callee.media.rtcp if which else callee.media.rtp)(costly, source, began + n * WINDOW_S)
        took_s = time.thread_time() - before
        assert callee.media.invalid >= 100 * MOST - REPORTS.burst - 2 * REPORTS.per_s - 1
        assert took_s < 0.2, "it was 0.9 s"
        for n in range(10):
            caller.media.send_rtp(packet(n))
        await until(lambda: session.statistics().received == 10)


@pytest.mark.parametrize("mux", [False, True])
async def test_a_report_each_100_ms_and_what_comes_in_one_go_is_read(mux: bool) -> None:
    async with talking(mux=mux) as (caller, callee):
        data, source, began = rtcp.build(7, "name", None, (), goodbye=True), (HOST, caller.port), time.monotonic()
        came = callee.media.rtp if mux else callee.media.rtcp
        for n in range(600):
            came(data, source, began + n * 0.1)
        for _ in range(40):
            came(data, source, began + 60.0)
        assert len(callee.heard) == 640 and callee.media.invalid == 0


async def test_strangers_reports_take_nothing_from_the_peers() -> None:
    async with talking() as (caller, callee):
        data, now = rtcp.build(7, "name", None, (), goodbye=False), time.monotonic()
        for _ in range(1000):
            callee.media.rtcp(data, ("192.0.2.1", 9), now)
        callee.media.rtcp(data, (HOST, caller.port + 1), now)
        assert callee.heard == [data] and callee.media.invalid == 1000


async def test_a_call_does_not_fall_behind_while_the_loop_is_slow() -> None:
    """With one datagram a wake-up it did, by seconds, where wake-ups were more than a packet's 20 ms apart."""
    async with talking() as (caller, callee):
        for n in range(90):
            caller.media.send_rtp(packet(n))
            if n % 3 == 2:
                time.sleep(0.005)  # noqa: ASYNC251
                await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(callee.heard) == 90


async def test_after_a_flood_the_call_goes_on() -> None:
    async with talking() as (caller, callee):
        with stranger() as sock:
            for n in range(3 * MOST):
                sock.sendto(packet(n, ssrc=5), (HOST, callee.port))
        caller.media.send_rtp(packet(1))
        await until(lambda: packet(1) in callee.heard)
        for n in range(10):
            await asyncio.sleep(WINDOW_S / 2)
            caller.media.send_rtp(packet(2 + n))
        await until(lambda: len(callee.heard) >= 11)


async def test_a_call_that_ends_in_a_flood_leaves_nothing() -> None:
    one = Phone()
    with stranger() as sock:
        for n in range(2 * MOST):
            sock.sendto(packet(n), (HOST, one.port))
        await until(lambda: one.media.invalid >= MOST)
    one.media.close()
    await asyncio.sleep(2 * WINDOW_S)
    assert one.media.invalid == MOST and free(one.port)


async def test_the_last_free_pair_of_a_wide_range_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def bound(address: str, port: int) -> tuple[socket.socket, socket.socket]:
        if port != 20_400:
            raise OSError(errno.EADDRINUSE, "taken")
        return found(address, 0)

    found = udp._bound_pair
    monkeypatch.setattr(udp, "_bound_pair", bound)
    for _ in range(10):
        media = UdpMedia(HOST, (20_000, 20_599))
        media.open()
        media.close()


async def test_an_address_that_is_not_ours_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def bound(address: str, port: int) -> None:
        tried.append(port)
        raise OSError(errno.EADDRNOTAVAIL, "not ours")

    tried: list[int] = []
    monkeypatch.setattr(udp, "_bound_pair", bound)
    with pytest.raises(NoPort, match="not ours"):
        UdpMedia(HOST, (20_000, 40_000)).open()
    assert len(tried) == 1

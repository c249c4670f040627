"""The socket takes turns with all else of the event loop."""

import asyncio
import socket
from types import SimpleNamespace

import pytest

from tests.support.waiting import until
from voicepipe.ingress.sip import transactions
from voicepipe.ingress.sip.transactions import READING, UdpSocket


async def test_after_each_datagram_that_is_no_junk_there_is_a_look_at_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And what it took is owed in full, also if it ends in an exception."""
    worked_s, read = 0.0, 0

    def works(data: bytes, source: tuple[str, int]) -> bool:
        nonlocal worked_s, read
        worked_s, read = worked_s + 3.0, read + 1
        if data == b"fails":
            raise ValueError("on purpose")
        return True

    # As long on the wall's clock as on the thread's.
    clock = SimpleNamespace(thread_time=lambda: worked_s, monotonic=lambda: 1000.0 + worked_s)
    monkeypatch.setattr(transactions, "time", clock)
    for data in (b"x", b"fails"):
        ours = UdpSocket(works, lambda data, address: None)
        ours.open(("127.0.0.1", 0))
        ours.resume()
        worked_s, read = 0.0, 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as theirs:
            for _ in range(4):
                theirs.sendto(data, ours.address)
            before = asyncio.get_running_loop().time()
            try:
                ours._readable()
            except ValueError:
                assert data == b"fails"
            assert read == 1
            assert ours._resume and 2.5 < ours._resume.when() - before < 3.5, "it was 20 ms"
        ours.close()
    assert READING.per_s == 500


async def test_while_it_is_paused_another_may_read_and_both_may_send() -> None:
    def socket_of(came: list[bytes]) -> UdpSocket:
        def take(data: bytes, source: tuple[str, int]) -> bool:
            came.append(data)
            return True

        return UdpSocket(take, lambda data, address: None)

    came: list[bytes] = []
    ours = socket_of(came)
    ours.open(("127.0.0.1", 0))
    ours.resume()
    another: list[bytes] = []
    its = socket_of(another)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as theirs:
        theirs.bind(("127.0.0.1", 0))
        theirs.settimeout(10)
        shared = ours.pause().dup()
        theirs.sendto(b"one", ours.address)
        await asyncio.sleep(0.1)
        assert not came
        its.open(("127.0.0.1", 0), shared)
        its.resume()
        assert its.address == ours.address
        await until(lambda: another == [b"one"])
        ours.send(b"from ours", theirs.getsockname())
        assert theirs.recvfrom(100) == (b"from ours", ours.address)
        its.close()
        ours.resume()
        theirs.sendto(b"two", ours.address)
        await until(lambda: came == [b"two"])
    ours.close()


@pytest.mark.slow
async def test_datagrams_that_come_one_by_one_have_half_of_the_time_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is all that waits in the socket, so that no portion of them ends by its time."""
    worked_s = 0.0

    def works(data: bytes, source: tuple[str, int]) -> bool:
        nonlocal worked_s
        worked_s += 0.0009
        return False

    monkeypatch.setattr(transactions, "time", SimpleNamespace(thread_time=lambda: worked_s, monotonic=lambda: 1.0))
    ours = UdpSocket(works, lambda data, address: None)
    ours.open(("127.0.0.1", 0))
    ours.resume()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as theirs:
        for _ in range(100):
            theirs.sendto(b"x", ours.address)
            ours._readable()
            if ours._resume:
                break
    ours.close()
    assert READING.burst <= worked_s * 1000 <= READING.burst + 2

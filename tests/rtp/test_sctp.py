"""What a peer may do to us through its data channels: by the rules everything, else next to nothing."""

import asyncio
import math
import struct
import time
from collections.abc import Callable

import pytest
from aiortc import RTCDataChannel

from tests.attacks.sctp_forge import DCEP, FIRST, chunk, data, next_tsn, opening, sack, send
from tests.rtp.ends import Ends, connected
from tests.support.waiting import until
from voicepipe.base.token_bucket import Allowance, Bucket, Rate
from voicepipe.rtp import ice, sctp
from voicepipe.rtp.sctp import MOST_AHEAD, MOST_CHANNELS, MOST_WAITING, WINDOW
from voicepipe.rtp.sctp_packet import is_fit

HEADER = bytes(12)


@pytest.fixture
def all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor's time is no limit: what is looked at is what else is."""
    for limit in ("ONE_PEER", "SURE"):
        monkeypatch.setattr(ice, limit, Rate(1e9, 1e9))


async def settled(ends: Ends) -> None:
    """Everything that the caller has sent has been worked through."""
    answerer = ends.answerer._ice
    for _ in range(2):
        await until(lambda: not answerer._queue.qsize())
        await asyncio.sleep(0.01)


async def established(ends: Ends) -> None:
    for end in (ends.caller, ends.answerer):
        await until(lambda end=end: end.sctp.state == "connected")  # type: ignore[misc]
    await settled(ends)


def listens(said: list[str]) -> Callable[[RTCDataChannel], None]:
    """Who writes down what comes by any channel."""

    def opened(channel: RTCDataChannel) -> None:
        channel.on("message", said.append)

    return opened


# --- packets


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(4, b"\0\1\0\0")],  # aiortc would never come to the end of this parameter
        [chunk(4, b"\0\1\0\3")],
        [chunk(4, b"\0\1\0\5")],
        [chunk(1, bytes(16) + b"\0\1\0\0")],
        [chunk(4, b"")] * 3,
        [data(n, b"x") for n in range(75)],
        [chunk(130, (b"\0\x0d\0\x10" + bytes(12)) * 3)],
        [chunk(130, b"\0\x0d\0\x08" + bytes(4))],
        [chunk(130, b"\0\x0d\0\x11" + bytes(13) + bytes(3))],
        [chunk(0, bytes(12))],
        [chunk(3, struct.pack("!LLHH", 1, 1, 2, 0) + bytes(4))],
        [chunk(192, bytes(6))],
        [chunk(1, bytes(12))],
        [chunk(6, b"\0\1\0\4" * 17)],
        [b"\0\0\0\3"],
        [b"\0\0\0\x20" + bytes(8)],
        [],
    ],
    ids=lambda chunks: f"{len(chunks)} of {chunks[0][:8].hex() if chunks else ''}",
)
def test_a_packet_that_no_honest_peer_sends(chunks: list[bytes]) -> None:
    assert not is_fit(HEADER + b"".join(chunks))


@pytest.mark.parametrize(
    "chunks",
    [
        [data(n, b"{}") for n in range(74)],
        [sack(7, [(2, 3), (5, 5)]), data(1, b"x" * 900), chunk(4, b"\0\1\0\x0c" + bytes(8))],
        [chunk(1, bytes(16) + b"\x80\x08\0\x06\x82\xc0\0\0" + b"\xc0\0\0\4")],
        [chunk(130, b"\0\x0d\0\x12" + bytes(14) + bytes(2) + b"\0\x10\0\x0c" + bytes(8))],
        [chunk(10, bytes(200)), data(1, b"x")],
        [chunk(63, b"unknown"), chunk(6, b"")],
    ],
    ids=lambda chunks: f"{len(chunks)} of {chunks[0][0]}",
)
def test_a_packet_that_one_sends(chunks: list[bytes]) -> None:
    assert is_fit(HEADER + b"".join(chunks))


# --- what a connected peer sends


@pytest.mark.usefixtures("all_the_time")
async def test_gaps_keep_no_more_than_a_window_and_close_again() -> None:
    async with connected() as ends:
        await established(ends)
        far, first = ends.answerer.sctp, next_tsn(ends.caller)
        for n in range(1, 2000, 2):
            await send(ends.caller, data(first + n, b"x", seq=n))
            if n % 50 == 1:
                await settled(ends)
                assert len(far._sack_misordered) <= MOST_AHEAD
        await settled(ends)
        assert len(far._sack_misordered) <= MOST_AHEAD // 2 and far.unplaced > 500
        for n in range(0, MOST_AHEAD, 2):
            await send(ends.caller, data(first + n, b"x", seq=n))
            if n % 50 == 0:
                await settled(ends)
        await settled(ends)
        assert not far._sack_misordered and far._last_received_tsn == (first + MOST_AHEAD - 1) % 2**32


@pytest.mark.usefixtures("all_the_time")
@pytest.mark.parametrize("seq", [0, 5], ids=["never ended", "never begun"])
@pytest.mark.parametrize("size", [1, 1100])
async def test_what_waits_for_the_rest_is_bounded(seq: int, size: int) -> None:
    """Fragments of a message without an end, or messages behind one that never comes."""
    async with connected() as ends:
        await established(ends)
        far, first = ends.answerer.sctp, next_tsn(ends.caller)
        flags = FIRST if not seq else FIRST | 1
        for n in range(2000):
            await send(ends.caller, data(first + n, b"x" * size, flags if n == 0 or seq else 0, seq=seq))
            if n % 50 == 0:
                await settled(ends)
        waiting = [one for stream in far._inbound_streams.values() for one in stream.reassembly]
        assert len(waiting) <= MOST_WAITING
        assert sum(len(one.user_data) for one in waiting) <= WINDOW + 1500
        assert far.unplaced > 0 or far._is_deaf


async def test_a_message_that_is_too_long_is_told_before_it_is_here() -> None:
    told = []
    async with connected() as ends:
        await established(ends)
        far, first = ends.answerer.sctp, next_tsn(ends.caller)
        far.message_bytes = 4096
        far.on_overlong = lambda: told.append(far._advertised_rwnd)
        for n in range(30):
            await send(ends.caller, data(first + n, bytes(1000), 0 if n else FIRST))
        await settled(ends)
        assert told == [WINDOW - 5000], "once, as soon as it was"


@pytest.mark.parametrize("order", [[0, 2, 3, 4, 1], [0, 1, 2, 3, 4]], ids=["a gap is closed last", "in order"])
async def test_a_message_that_is_too_long_is_never_handed_on(order: list[int]) -> None:
    """The chunk that makes it too long may be the one that makes it whole."""
    told, received = list[bool](), list[int]()

    async def receive(stream_id: int, pp_id: int, data: bytes) -> None:
        received.append(len(data))

    async with connected() as ends:
        await established(ends)
        far, first = ends.answerer.sctp, next_tsn(ends.caller)
        far.message_bytes = 4096
        far.on_overlong = lambda: told.append(True)
        far._data_channel_receive = receive  # type: ignore[method-assign]
        for n in order:
            await send(ends.caller, data(first + n, bytes(1000), FIRST if n == 0 else 1 if n == 4 else 0))
        await settled(ends)
        assert told == [True] and received == []


async def test_a_sack_of_what_was_never_sent_changes_nothing() -> None:
    async with connected() as ends:
        await established(ends)
        far = ends.answerer.sctp
        acked, before = far._last_sacked_tsn, far.refused
        forged = [
            sack(acked, [(1, 65535)] * 280),
            sack(acked, [(3, 2)]),
            sack(acked, [(0, 0)]),
            sack(acked + 1000, []),
        ]
        for one in forged:
            await send(ends.caller, one)
        await settled(ends)
        assert (far._last_sacked_tsn, far.refused) == (acked, before + len(forged))


async def test_an_association_does_not_begin_anew() -> None:
    async with connected() as ends:
        await established(ends)
        far, first = ends.answerer.sctp, next_tsn(ends.caller)
        received, before = far._last_received_tsn, far.refused
        init = chunk(1, struct.pack("!LLHHL", 1, 1, 1, 1, 5))
        await send(ends.caller, init, tag=0)
        await send(ends.caller, chunk(192, struct.pack("!L", first + 9) + bytes(4)))  # FORWARD-TSN
        await settled(ends)
        assert (far._last_received_tsn, far.refused) == (received, before + 2)
        assert not far._inbound_streams
        await send(ends.caller, chunk(6, b""), chunk(10, bytes(24)))
        await until(lambda: far.state == "closed")
        await send(ends.caller, init, tag=0)
        await settled(ends)
        assert far.state == "closed"


async def test_streams_and_channels_are_counted() -> None:
    async with connected() as ends:
        await established(ends)
        far, first = ends.answerer.sctp, next_tsn(ends.caller)
        for n in range(100):
            await send(ends.caller, data(first + n, opening(), stream=n, kind=DCEP))
        await settled(ends)
        for n in range(100, 200):
            await send(ends.caller, data(first + n, b"x", stream=2000 + n))
        await settled(ends)
        assert len(far._data_channels) == MOST_CHANNELS and len(far._inbound_streams) <= 100
        assert far._last_received_tsn == (first + 199) % 2**32, "what is dropped for good is acknowledged"


async def test_what_cannot_be_read_is_lost_and_nothing_else() -> None:
    async with connected() as ends:
        await established(ends)
        said: list[str] = []
        ends.answerer.on_channel = listens(said)
        first = next_tsn(ends.caller)
        await send(ends.caller, data(first, opening(), kind=DCEP))
        await send(ends.caller, data(first + 1, opening(), seq=1, kind=DCEP))  # open already
        await send(ends.caller, data(first + 2, b"\xff\xfe", seq=2))  # no UTF-8
        await send(ends.caller, data(first + 3, opening(b"x" * 900)[:900], stream=3, kind=DCEP))
        await send(ends.caller, data(first + 4, b"still here", seq=3))
        await until(lambda: said)
        assert said == ["still here"]


# --- what honest peers notice: nothing


async def test_a_peer_is_held_up_while_nobody_reads_and_all_of_it_arrives() -> None:
    ends, opened, waiting = Ends(), list[RTCDataChannel](), list[str]()
    far = ends.answerer.sctp

    def take(message: str) -> None:
        far.reserve(message)
        waiting.append(message)

    ends.answerer.on_channel = opened.append
    channel = ends.caller.open_channel("oai-events")
    try:
        await ends.connect()
        await until(lambda: opened and channel.readyState == "open")
        opened[0].on("message", take)
        said = [f"{n:06}" + "x" * 9000 for n in range(120)]
        for message in said:
            channel.send(message)
        await until(lambda: far._room <= sctp.LITTLE)
        await settled(ends)
        assert sum(map(len, waiting)) < WINDOW + 20_000
        heard = list[str]()
        while len(heard) < len(said):
            await until(lambda: waiting)
            heard.append(waiting.pop(0))
            far.release(heard[-1])
        assert heard == said
    finally:
        await ends.close()


async def test_a_long_message_and_many_short_ones_arrive() -> None:
    ends, said = Ends(), list[str]()
    ends.answerer.on_channel = listens(said)
    channel = ends.caller.open_channel("oai-events")
    try:
        await ends.connect()
        await until(lambda: channel.readyState == "open")
        sent = ["x" * 200_000, *(str(n) for n in range(300))]
        for message in sent:
            channel.send(message)
        await until(lambda: len(said) == len(sent))
        assert said == sent and not ends.answerer.sctp.refused
    finally:
        await ends.close()


# --- the processor's time


def of(commons: Bucket, sure: Rate = ice.SURE) -> Allowance:
    """One peer's."""
    return Allowance(commons, Bucket(ice.ONE_PEER, owes=math.inf), Bucket(sure))


def test_a_share_is_ones_own_and_a_little_of_it_is_sure() -> None:
    commons = Bucket(Rate(0.2, 0.2))
    *greedy, modest = [of(commons, Rate(0.05, 0.005)) for _ in range(5)]
    used = 0.0
    for tick in range(2000):
        now = tick * 0.01
        for one in greedy:
            while one.has(now):
                one.take(0.005)
                used += 0.005
        assert modest.has(now)
        if tick % 100 == 0:
            modest.take(0.004)
    assert used < 0.4 + 20 * 0.25, "20 s: what all have at once, and a quarter of the processor"


def test_what_the_greedy_took_is_not_owed_by_those_who_come_after_them() -> None:
    commons = Bucket(ice.ALL_PEERS)
    greedy = [of(commons) for _ in range(36)]
    for tick in range(6000):
        for one in greedy:
            if one.has(tick * 0.1):
                one.take(0.005)
    honest, heard = of(commons), 0
    for tick in range(6000, 6100):
        if honest.has(tick * 0.1):
            honest.take(0.004)
            heard += 1
    assert heard > 80, "what all of them owed is paid within a second or two"


def test_who_costs_more_than_their_share_pays_for_all_of_it() -> None:
    """Otherwise datagrams that take long would take more of the processor than it is worth."""
    share = of(Bucket(ice.ALL_PEERS))
    assert share.has(0.0)
    share.take(1.0)
    assert not share.has(17.0) and share.has(19.0)


def test_what_is_sure_comes_back_soon_to_who_had_more() -> None:
    commons = Bucket(ice.ALL_PEERS, owes=math.inf)
    share = of(commons)
    for tick in range(6000):
        if share.has(tick * 0.01):
            share.take(0.0003)
    commons.take(1e9)
    assert share.has(66.0)


async def test_who_has_used_their_share_up_waits_and_is_heard() -> None:
    ends, said = Ends(), list[str]()
    ends.answerer.on_channel = listens(said)
    channel = ends.caller.open_channel("oai-events")
    try:
        await ends.connect()
        await until(lambda: channel.readyState == "open")
        ends.answerer._ice._allowance.take(0.2)
        assert not ends.answerer._ice._allowance.has(time.monotonic())
        channel.send("late")
        await until(lambda: said == ["late"])
    finally:
        await ends.close()


async def test_who_floods_and_hangs_up_is_gone_soon() -> None:
    async with connected() as ends:
        await established(ends)
        ends.answerer._ice._allowance.take(0.15)
        for n in range(2000):
            await send(ends.caller, chunk(4, b"\0\1\0\x08" + bytes(4)))
            if n % 20 == 0:
                await asyncio.sleep(0.001)
        await until(lambda: ends.answerer._ice.refused)
        await ends.caller.close()
        await asyncio.wait_for(ends.answerer.gone(), 60)


def test_the_peers_of_one_pop_share_what_those_of_another_do_not_take() -> None:
    one, other = ice.UdpNetwork(), ice.UdpNetwork()
    one.commons.has(1.0)
    one.commons.take(1.0)
    assert not one.commons.has(1.0) and other.commons.has(1.0) and one == other

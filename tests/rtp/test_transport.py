"""Two ends of our own transport, and what of aiortc's insides it stands on."""

import asyncio
import random
import re
import socket
import struct
from importlib.metadata import version
from itertools import count
from pathlib import Path

import pytest
from aioice import Candidate
from aioice.ice import CandidatePair, StunProtocol
from aioice.stun import Class, Message, Method
from aiortc import RTCDataChannel, RTCDtlsTransport, RTCIceGatherer, RTCIceTransport, RTCSctpTransport
from aiortc.rtcsctptransport import InboundStream

from tests.rtp.ends import LOOPBACK, Ends, connected
from tests.support.sinks import Packets
from tests.support.waiting import until
from voicepipe.base.errors import NoPort
from voicepipe.rtp import ice, sdp, transport
from voicepipe.rtp.codec import OPUS
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.transport import Transport, UdpNetwork

ROOT = Path(__file__).parents[2]


def test_aiortc_is_the_one_that_this_was_made_with() -> None:
    """An update needs `voicepipe/rtp/transport.py` to be read beside it: it uses what aiortc promises to nobody."""
    pinned = re.search(r'"aiortc==([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert pinned and version("aiortc") == pinned[1] == "1.16.0"
    assert version("aioice") == "0.13.0"


async def test_what_it_uses_of_them_is_there() -> None:
    gatherer = RTCIceGatherer(iceServers=[])
    ice_transport = RTCIceTransport(gatherer)
    dtls = RTCDtlsTransport(ice_transport, [transport.certificate()])
    connection = gatherer._connection
    used: list[tuple[object, str]] = [
        (connection, "gather_candidates request_received local_username local_password recv data_received get_event "
                     "check_incoming _add_remote_candidate _emit_event _local_candidates _local_candidates_start "
                     "_local_candidates_end _protocols _nominated _remote_candidates _check_list _check_list_done "
                     "_closing _closed _queue _query_consent_task"),
        (StunProtocol(connection), "datagram_received transactions"),
        (Candidate("1", 1, "udp", 1, "127.0.0.1", 1, "host"), "_network_host"),
        (dtls, "_set_role _setup_srtp _ssl"),
        (gatherer, "_connection"),
        (ice_transport, "_connection _recv _send"),
        (RTCSctpTransport(dtls), "_handle_data _receive_chunk _receive_data_chunk _mark_received _receive _send_sack "
                                 "_receive_sack_chunk _send_chunk _set_state _advertised_rwnd _association_state "
                                 "_local_partial_reliability _inbound_streams_max _inbound_streams _sack_needed "
                                 "_last_received_tsn _sack_misordered _sack_duplicates _sent_queue _last_sacked_tsn "
                                 "_data_channels"),
        (InboundStream(), "reassembly"),
    ]  # fmt: skip
    missing = [name for owner, names in used for name in names.split() if not hasattr(owner, name)]
    assert not missing, f"aiortc or aioice has changed: {missing}; see voicepipe/rtp: transport.py, ice.py, sctp.py"


async def test_media_and_events_go_both_ways_past_aiortcs_queues() -> None:
    ends = Ends()
    packets_back = Packets()
    ends.caller.deliver_to(packets_back)
    back = packets_back.data
    opened: list[RTCDataChannel] = []
    ends.answerer.on_channel = opened.append
    channel = ends.caller.open_channel("oai-events")
    try:
        await ends.connect()
        packets = [bytes(RtpPacket(96, n, n * 960, 5, b"sound")) for n in range(20)]
        for packet in packets:
            ends.caller.send_rtp(packet)
            ends.answerer.send_rtp(packet)
        await until(lambda: len(ends.heard) == len(back) == 20 and opened)
        assert ends.heard == back == packets
        assert opened[0].label == "oai-events"
        said: list[str] = []
        channel.on("message", said.append)
        opened[0].send("hello")
        await until(lambda: said == ["hello"])
    finally:
        await ends.close()


async def test_the_other_end_knows_when_one_hangs_up() -> None:
    async with connected() as ends:
        await ends.caller.close()
        await asyncio.wait_for(ends.answerer.gone(), 60)
        ends.answerer.send_rtp(bytes(RtpPacket(96, 1, 1, 1, b"x")))  # nobody is there: nothing happens


async def test_a_chosen_port_range_and_the_address_in_front_of_a_nat() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        full = Transport(UdpNetwork(ports=(port, port)), controlling=False)
        with pytest.raises(NoPort, match=r"webrtc\.addresses .*webrtc\.first_port"):
            await full.gather()
        await full.close()
    low = port if port < 65_000 else port - 500
    async with connected(answerer=UdpNetwork(ports=(low, low + 400))) as ends:
        told = sdp.read(ends.answer).remote.candidates
        assert told and all(low <= candidate.port <= low + 400 for candidate in told)
    behind = Transport(UdpNetwork(public="203.0.113.7"), controlling=False)
    (candidate,) = await behind.gather()
    assert (candidate.ip, candidate.type) == ("203.0.113.7", "host")
    await behind.close()


async def test_a_port_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr(ice, "candidates", lambda ports: [port, port, 0])
        one = Transport(LOOPBACK, controlling=False)
        (candidate,) = await one.gather()
        assert candidate.port != port
        await one.close()


async def test_an_address_that_is_not_ours_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = iter([0, 0])
    monkeypatch.setattr(ice, "candidates", lambda _: ports)
    elsewhere = Transport(UdpNetwork(("192.0.2.1",)), controlling=False)
    with pytest.raises(NoPort, match=r"192\.0\.2\.1"):
        await elsewhere.gather()
    assert list(ports) == [0]
    await elsewhere.close()


async def test_a_peer_with_another_key_than_it_said() -> None:
    ends = Ends()
    offer = sdp.offer(ends.caller, await ends.caller.gather(), (OPUS,))
    forged = re.sub(r"(a=fingerprint:sha-256) \S+", rf"\1 {':'.join(['00'] * 32)}", offer)
    answer = sdp.answer(sdp.read(forged), ends.answerer, await ends.answerer.gather(), ssrc=7)
    caller = asyncio.create_task(ends.caller.connect(sdp.read(answer).remote))
    with pytest.raises(ConnectionError, match="DTLS"):
        await asyncio.wait_for(ends.answerer.connect(sdp.read(forged).remote), 60)
    caller.cancel()
    await asyncio.wait({caller})
    await ends.close()


async def test_datagrams_of_any_kind_change_nothing() -> None:
    """Random bytes at a call's port, from somewhere else and from the peer's own address: RTP, RTCP, STUN, DTLS."""
    async with connected() as ends:
        candidate = sdp.read(ends.answer).remote.candidates[0]
        rng = random.Random(1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for n in range(600):
                first = bytes([rng.choice([0, 1, 20, 22, 63, 64, 128, 144, 191, 200])])
                body = first + rng.randbytes(rng.randrange(0, 300))
                if n % 3 == 0:  # a STUN header around it
                    body = b"\0\1" + len(body).to_bytes(2) + b"\x21\x12\xa4\x42" + rng.randbytes(12) + body
                stranger.sendto(body, (candidate.ip, candidate.port))
        await until(lambda: ends.answerer.invalid > 0)
        async with asyncio.timeout(60):
            sequence = count(1)
            while not ends.heard:  # What arrives while so much waits to be read may be dropped.
                ends.caller.send_rtp(bytes(RtpPacket(96, next(sequence), 960, 5, b"still here")))
                await asyncio.sleep(0.1)


async def test_the_rest_is_closed_whatever_state_a_peer_has_brought_one_part_into() -> None:
    async with connected() as ends:

        async def fails() -> None:
            raise RuntimeError("OpenSSL wants something else")

        ends.answerer.sctp.stop = ends.answerer._dtls.stop = fails  # type: ignore[method-assign]
        await ends.answerer.close()
        await ends.answerer.close()
        assert not ends.answerer._ice._protocols


async def test_media_go_the_way_that_the_peer_chooses_now() -> None:
    async with connected() as ends:
        ends.answerer._ice._nominated.clear()
        ends.answerer.send_rtp(bytes(RtpPacket(96, 1, 1, 1, b"x")))  # nowhere, and no error
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind(("127.0.0.1", 0))
            other.settimeout(10)
            candidate = Candidate("1", 1, "udp", 1, "127.0.0.1", other.getsockname()[1], "host")
            candidate._network_host = candidate.host
            ends.answerer._ice._nominated[1] = CandidatePair(ends.answerer._ice._protocols[0], candidate)
            ends.answerer.send_rtp(bytes(RtpPacket(96, 2, 2, 1, b"x")))
            assert await asyncio.to_thread(other.recv, 2000)


async def test_a_peer_that_falls_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioice.ice.CONSENT_INTERVAL", 0.05)
    async with connected() as ends:
        for protocol in ends.caller._ice._protocols:
            protocol.transport.abort()
        await asyncio.wait_for(ends.answerer.gone(), 30)


def test_the_certificate_is_made_once() -> None:
    assert transport.certificate() is transport.certificate()


# --- what reaches the port before and beside the peer


def _stun(user: bytes, *, kind: int = 1, attribute: bytes = b"") -> bytes:
    """A binding request of somebody who knows `user` and no password."""
    body = struct.pack("!HH", 6, len(user)) + user + bytes(-len(user) % 4) + attribute
    return struct.pack("!HH", kind, len(body)) + b"\x21\x12\xa4\x42" + bytes(12) + body


async def test_what_comes_before_there_is_a_connection_is_not_kept() -> None:
    one = Transport(LOOPBACK, controlling=False)
    (candidate,) = await one.gather()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for n in range(2000):
            first = [1, 22, 40, 144][n % 4]  # STUN that is none, DTLS 1.2 and 1.3, SRTP
            stranger.sendto(bytes([first]) + b"\xfe" * 1000, (candidate.ip, candidate.port))
            if n % 50 == 0:
                await asyncio.sleep(0)
        await until(lambda: one.invalid > 100)
    assert one._ice._queue.empty()
    await one.close()


async def test_the_queue_to_dtls_has_a_bound_for_the_peer_as_well() -> None:
    one = Transport(LOOPBACK, controlling=False)
    await one.gather()
    protocol, source = one._ice._protocols[0], ("127.0.0.1", 9)
    one._ice.known.add(source)
    for _ in range(2000):
        protocol.datagram_received(b"\x16\xfe\xfd" + bytes(8) + b"\0\x05hello", source)
    assert one._ice._queue.qsize() <= ice.HANDSHAKE.burst + 5, "before it is up"
    while not one._ice._queue.empty():
        one._ice._queue.get_nowait()
    one._ice.is_up, before = True, one.invalid
    for _ in range(2000):
        protocol.datagram_received(b"\x16\xfe\xfd" + bytes(8) + b"\0\x05hello", source)
    assert one._ice._queue.qsize() == ice.MOST_QUEUED and one.invalid == before + 2000 - ice.MOST_QUEUED
    await one.close()


async def test_strangers_are_dropped_unread_and_get_no_answer() -> None:
    async with connected() as ends:
        far, asked = ends.answerer._ice, list[object]()
        far.request_received = lambda *request: asked.append(request)  # type: ignore[method-assign]
        protocol, stranger = far._protocols[0], ("127.0.0.1", 9)
        known, before = set(far.known), far.refused
        for data in (
            b"", b"\0", b"\x40" * 100, b"\x16" * 100, _stun(b"nobody:here"), _stun(far.user, kind=0x0101),
            _stun(far.user, kind=0x0011), _stun(far.user, kind=3), _stun(far.user)[:30],
            _stun(far.user, attribute=struct.pack("!HH", 0x24, 2) + bytes(4)),  # aioice raises struct.error at it
        ):  # fmt: skip
            protocol.datagram_received(data, stranger)
        assert not asked and far.refused == before + 10
        for _ in range(1000):
            protocol.datagram_received(_stun(far.user + b"x"), stranger)
        assert len(asked) <= ice.STRANGE_CHECKS.burst + 5
        assert far.known == known, "only who knows the password has an address"


async def test_sound_from_elsewhere_is_looked_at_now_and_then_and_the_peers_always() -> None:
    async with connected() as ends:
        protocol = ends.answerer._ice._protocols[0]
        for _ in range(3000):
            protocol.datagram_received(b"\x80" + bytes(60), ("127.0.0.1", 9))
        assert ends.answerer._unsigned <= ice.STRANGE_MEDIA.burst + 20
        for n in range(300):
            ends.caller.send_rtp(bytes(RtpPacket(96, n, n * 960, 5, b"sound")))
            if n % 25 == 0:
                await asyncio.sleep(0.005)
        await until(lambda: len(ends.heard) == 300)


async def test_a_flood_of_sound_from_the_peer_is_dropped_before_it_is_decrypted() -> None:
    async with connected() as ends:
        for n in range(5000):
            ends.caller.send_rtp(bytes(RtpPacket(96, n, n * 960, 5, b"sound")))
            if n % 50 == 0:
                await asyncio.sleep(0)
        await until(lambda: ends.answerer._ice.refused)
        assert len(ends.heard) <= ice.MEDIA.burst + 20 * ice.MEDIA.per_s


async def test_a_peer_that_shows_ever_new_addresses() -> None:
    async with connected() as ends:
        far, own = ends.answerer._ice, ends.answerer._ice.pair
        assert own
        request = Message(Method.BINDING, Class.REQUEST, attributes={"PRIORITY": 1})
        for port in range(1000, 2000):
            far.check_incoming(request, ("127.0.0.1", port), own.protocol)
        assert len(far.known) <= ice.MOST_REMOTE and len(far._check_list) <= ice.MOST_REMOTE
        assert own.remote_addr in far.known
        far.check_incoming(Message(Method.BINDING, Class.REQUEST), own.remote_addr, own.protocol)  # no PRIORITY
        ends.caller.send_rtp(bytes(RtpPacket(96, 1, 960, 5, b"still here")))
        await until(lambda: ends.heard)


@pytest.mark.parametrize(
    ("datagram", "sizes"),
    [
        ((b"\x17\xfe\xfd" + bytes(8) + b"\0\x02ab") * 3, [15, 15, 15]),
        ((b"\x17\xfe\xfd" + bytes(8) + b"\0\0") * 40, [13] * ice.MOST_RECORDS),
        (b"\x2c\0\x01\0\x03abc" * 2, [8, 8]),
        (b"\x24\x01\0\x03abc" * 2, [7, 7]),
        (b"\x28\0\x01abc", [6]),
        (b"\x3c\0\x01\0\x03abc" * 2, [16]),
        (b"\x16\xfe", [2]),
        (b"\x16\xfe\xfd" + bytes(8) + b"\xff\xffab", [15]),
        (b"\x2c\0", [2]),
    ],
)
def test_a_datagram_of_many_records_is_taken_apart(datagram: bytes, sizes: list[int]) -> None:
    assert [len(record) for record in ice.records(datagram)] == sizes


async def test_closing_ends_in_time_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "CLOSE_S", 0.05)
    before = asyncio.all_tasks()
    ends = Ends()
    await ends.connect()
    port = sdp.read(ends.answer).remote.candidates[0].port
    forever = asyncio.Event()
    for part, name in ((ends.answerer.sctp, "stop"), (ends.answerer._dtls, "_write_ssl"),
                       (ends.answerer._ice, "close"), (ends.answerer._ice_transport, "stop")):  # fmt: skip
        monkeypatch.setattr(part, name, forever.wait)
    async with asyncio.timeout(30):
        await ends.answerer.close()
    await ends.caller.close()
    await until(lambda: asyncio.all_tasks() <= before)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
        again.bind(("127.0.0.1", port))
    far = ends.answerer.sctp
    assert far.state == "closed" and not (far._t1_handle or far._t2_handle or far._t3_handle)

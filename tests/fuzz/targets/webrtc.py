"""What a caller by WebRTC sends: an offer, and at the call's port STUN, DTLS, SCTP, RTP and RTCP.

An input is one datagram after another, each behind its length in two bytes; an offer is text. Nothing is sent: what
would be goes nowhere. The corpus was recorded from a stock aiortc peer.
"""

import asyncio
import struct
from collections.abc import Coroutine, Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

from aioice import Candidate
from aioice.stun import Class, Message, Method
from aiortc import RTCDtlsFingerprint, RTCDtlsParameters, RTCDtlsTransport
from aiortc.rtcicetransport import candidate_to_aioice
from google_crc32c import value as crc32c

from tests.attacks.sctp_forge import chunk, data, opening, sack
from tests.fuzz.target import Target
from tests.rtp.test_sdp import BROWSER
from tests.support import virtual_time
from tests.support.sinks import Media, NoSrtp, NoWire
from voicepipe.audio import opus
from voicepipe.rtp import ice, rtcp, sctp, sdp
from voicepipe.rtp.codec import G722, OPUS, PCMA, PCMU, NonAudio
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.rtp_session import RtpSession
from voicepipe.rtp.sdp_text import SdpError
from voicepipe.rtp.telephone_events import KeyFormat
from voicepipe.rtp.transport import Transport, UdpNetwork, certificate

PEER, STRANGER = ("127.0.0.1", 9), ("127.0.0.2", 9)
PASSWORD = "p" * 22
MOST_DATAGRAMS = 60


def framed(*datagrams: bytes) -> bytes:
    return b"".join(len(one).to_bytes(2) + one for one in datagrams)


def unframed(joined: bytes) -> Iterator[bytes]:
    at = 0
    for _ in range(MOST_DATAGRAMS):
        if at + 2 > len(joined):
            return
        end = at + 2 + int.from_bytes(joined[at : at + 2])
        yield joined[at + 2 : min(end, at + 1502)]
        at = end


def in_a_loop(main: Coroutine[Any, Any, None]) -> None:
    virtual_time.run(main)


# --- offers


def offer(text: bytes) -> None:
    """Read, and answered where it can be."""
    try:
        said = sdp.read(text.decode(errors="replace"))
    except SdpError as error:
        assert str(error)
        return
    in_a_loop(_answered(said))


async def _answered(said: sdp.WebRtcDescription) -> None:
    transport = Transport(UdpNetwork(), controlling=False)
    assert sdp.answer(said, transport, [], 7).startswith("v=0")
    for candidate in said.remote.candidates:
        if candidate.protocol.lower() == "udp" and not candidate.ip.endswith(".local"):
            await transport._ice.add_remote_candidate(candidate_to_aioice(candidate))
    assert len(transport._ice.known) <= sdp.MOST_CANDIDATES
    await transport.close()


# --- the port of a call


def _port() -> tuple[ice.IceConnection, ice._Protocol]:
    """Of a call with a path to its peer, and no socket."""
    connection = ice.IceConnection(UdpNetwork(), NoSrtp())
    connection._local_username, connection._local_password, connection.user = "user", PASSWORD, b"user:"
    connection.remote_username, connection.remote_password = "peer", PASSWORD
    connection._tie_breaker, connection._early_checks_done = 1, True
    nowhere: Any = SimpleNamespace(sendto=_nowhere)
    protocol = ice._Protocol(connection, nowhere)
    protocol.connection_made(SimpleNamespace(sendto=_nowhere, abort=_nowhere))  # type: ignore[arg-type]
    protocol.local_candidate = Candidate("1", 1, "udp", 1, "127.0.0.1", 1, "host")
    connection._protocols.append(protocol)
    connection._add_remote_candidate(Candidate("1", 1, "udp", 1, *PEER, "host"), PEER[0])
    connection._nominated[1] = connection._check_list[0]
    return connection, protocol


def _nowhere(*_: object) -> None:
    """Where what is sent goes."""


def port(joined: bytes) -> None:
    """Everything but what is inside of DTLS, from the peer and from a stranger in turn."""
    in_a_loop(_arrives(joined))


async def _arrives(joined: bytes) -> None:
    connection, protocol = _port()
    for number, datagram in enumerate(unframed(joined)):
        protocol.datagram_received(datagram, STRANGER if number % 2 else PEER)
        await asyncio.sleep(0)
    assert len(connection.known) <= ice.MOST_REMOTE
    assert connection._queue.qsize() <= (ice.MOST_QUEUED + ice.MOST_ALERTS) * ice.MOST_RECORDS
    await _ended(connection)


async def _ended(connection: ice.IceConnection) -> None:
    connection.drop()
    for _ in range(3):
        await asyncio.sleep(0)


def _checks(random: Random) -> bytes:
    """Requests with the right password, and whatever attributes."""
    values: list[tuple[str, Any]] = [
        ("PRIORITY", random.choice((0, 1, 2**32 - 1))), ("USE-CANDIDATE", None),
        ("ICE-CONTROLLED", random.getrandbits(64)), ("ICE-CONTROLLING", random.getrandbits(64)),
        ("SOFTWARE", "x" * random.randrange(99)),
        ("XOR-MAPPED-ADDRESS", ("127.0.0.1", 5)), ("ERROR-CODE", (487, "Role Conflict")),
    ]  # fmt: skip
    datagrams = []
    for _ in range(random.randint(1, 6)):
        message = Message(random.choice(tuple(Method)), random.choice(tuple(Class)), random.randbytes(12))
        message.attributes = {"USERNAME": random.choice(("user:peer", "user:other"))}
        message.attributes |= dict(random.sample(values, random.randint(0, len(values))))
        message.add_message_integrity(PASSWORD.encode())
        datagrams.append(bytes(message))
    return framed(*datagrams)


def dtls(joined: bytes) -> None:
    """A handshake by OpenSSL, of which we are the server."""
    in_a_loop(_shakes_hands(joined))


async def _shakes_hands(joined: bytes) -> None:
    connection, protocol = _port()

    async def sent(datagram: bytes) -> None:
        """Nowhere."""

    below: Any = SimpleNamespace(_recv=connection.recv, _send=sent, role="controlled")
    transport = RTCDtlsTransport(below, [certificate()])
    transport._set_role("server")
    begun = asyncio.create_task(transport.start(RTCDtlsParameters([RTCDtlsFingerprint("sha-256", "00")])))
    for datagram in unframed(joined):
        protocol.datagram_received(datagram, PEER)
        for _ in range(3):
            await asyncio.sleep(0)
    assert transport.state in ("new", "connecting", "failed"), "nobody has the keys that a mutated handshake agrees on"
    begun.cancel()
    await asyncio.wait({begun})
    await transport.stop()
    await _ended(connection)


# --- data channels


def association(joined: bytes) -> None:
    """Packets without their header, to an association that is there. None makes it keep more than its limits."""
    in_a_loop(_received(joined))


async def _received(joined: bytes) -> None:
    async def sent(packet: bytes) -> None:
        assert len(packet) <= 1500

    below: Any = SimpleNamespace(state="connected", _role="server", _send_data=sent,
                                 _register_data_receiver=_nowhere, _unregister_data_receiver=_nowhere)  # fmt: skip
    far = sctp.Sctp(below, 4096)
    held = list[str | bytes]()

    def takes(words: str | bytes) -> None:
        held.append(words)
        far.reserve(words)

    far.on("datachannel", lambda channel: channel.on("message", takes))
    far._local_tsn, far._local_verification_tag, far._remote_port = 5000, 7, 5000
    far._last_sacked_tsn = far._advanced_peer_ack_tsn = 4999
    far._data_channel_id, far._ssthresh = 1, 10_000
    packets = list(unframed(joined))
    far._last_received_tsn = 999
    if packets and packets[0][:1] == b"\0" and len(packets[0]) >= 8:  # recorded, with numbers of its own
        far._last_received_tsn = (int.from_bytes(packets[0][4:8]) - 1) % 2**32
    far._set_state(far.State.ESTABLISHED)
    for body in packets:
        head = struct.pack("!HHL", 5000, 5000, 0 if body[:1] == b"\1" else 7)
        await far._handle_data(head + struct.pack("<L", crc32c(head + bytes(4) + body)) + body)
        if held and len(body) % 2:
            far.release(held.pop())
    await asyncio.sleep(0)
    waiting = [one for stream in far._inbound_streams.values() for one in stream.reassembly]
    assert len(waiting) <= sctp.MOST_WAITING and len(far._sack_misordered) <= sctp.MOST_AHEAD
    assert sum(len(one.user_data) for one in waiting) <= sctp.WINDOW + 1500
    assert len(far._data_channels) <= sctp.MOST_CHANNELS and len(far._inbound_streams) <= sctp.MOST_STREAMS
    far.drop()
    for _ in range(3):
        await asyncio.sleep(0)


def _packets(random: Random) -> bytes:
    """Chunks of every kind, with numbers near those that are awaited."""
    tsn, packets = 1000, []
    for _ in range(random.randint(1, 12)):
        chunks = []
        for _ in range(random.choice((1, 1, 2, 5))):
            tsn += random.choice((0, 1, 1, 1, 2, 600))
            payload = random.choice((opening(), b"{}", b"\2", b"\xff", random.randbytes(900)))
            gaps = [tuple(sorted(random.choices((1, 2, 3, 9, 65535), k=2))) for _ in range(random.randrange(4))]
            request = struct.pack("!HHLLLHH", 13, 20, random.randrange(3), 0, tsn, random.randrange(4), 0)
            chunks.append(random.choice((
                data(tsn, payload, random.randrange(8), stream=random.choice((0, 1, 2, 5000)),
                     seq=random.randrange(3), kind=random.choice((50, 51, 53, 56, 57))),
                sack(random.choice((4999, 5000, 4990)), gaps),  # type: ignore[arg-type]
                chunk(130, request), chunk(130, struct.pack("!HHLL", 16, 12, tsn, random.choice((0, 1, 6)))),
                chunk(130, struct.pack("!HHLHH", 17, 12, tsn, 9, 0)), chunk(192, struct.pack("!LHH", tsn + 3, 0, 1)),
                chunk(4, b"\0\1\0\x08" + bytes(4)), chunk(random.choice((5, 6, 7, 8, 9, 10, 11, 14)), bytes(4)),
                chunk(1, struct.pack("!LLHHL", 1, 9999, 9, 9, 5)),
            )))  # fmt: skip
        packets.append(b"".join(chunks))
    return framed(*packets)


# --- media


class _Wire(NoWire):
    def send_rtcp(self, packet: bytes) -> None:
        assert rtcp.parse(packet)


def media(joined: bytes) -> None:
    """RTP and RTCP, decrypted; a packet every 20 ms."""
    now, heard = [100.0], Media()
    opus.load()
    codec = OPUS if len(joined) % 2 else PCMU
    kind = next((one[1] & 0x7F for one in unframed(joined) if len(one) > 1), 111)
    session = RtpSession(codec, kind, _Wire(), heard, lambda: now[0])
    session.change(codec, kind, KeyFormat(101, codec.clock))
    session.listened = True
    session.may_send({0: PCMU, 8: PCMA, 9: G722, 97: OPUS, 102: NonAudio.KEYS})
    for datagram in unframed(joined):
        session.datagram(datagram, now[0])
        now[0] += 0.020
        session.tick(now[0])
    session.statistics()
    session.close()
    assert sum(pcm.size for pcm, _, _ in heard.heard) <= 16_000 * (0.02 * MOST_DATAGRAMS + 7 + 1)


def _stream(random: Random) -> bytes:
    """A stream that jumps."""
    seq, stamp, packets = 65_500, 2**32 - 9999, []
    for _ in range(random.randint(1, 40)):
        seq, stamp = seq + random.choice((0, 1, 1, 2, 11, 400, 4000, -3)), stamp + random.choice((960, 960, 0, 48_000))
        payload = random.choice((b"", b"\xf8\xff\xfe", random.randbytes(random.randrange(200))))
        report = rtcp.RtcpReport(random.getrandbits(32), 0.5, 9, seq, 9, random.getrandbits(32), 0.1)
        packets.append(random.choice((
            bytes(RtpPacket(random.choice((96, 96, 96, 0, 8, 9, 97, 101, 102, 13)), seq & 0xFFFF, stamp & 0xFFFFFFFF,
                            random.choice((5, 5, 5, 6)), payload)),
            rtcp.build(5, "x", rtcp.SenderInfo(random.getrandbits(64), 9, 1, 1), (report,), goodbye=True),
            rtcp.build(5, "x", None, (report,), goodbye=False) + bytes((0x80, 205, 0, 0)) * random.randrange(350),
        )))  # fmt: skip
    return framed(*packets)


SDP_WORDS = tuple(
    b"m=audio 9|m=application 9|a=mid:|a=group:BUNDLE|a=candidate:1 1 udp 1 127.0.0.1 9 typ host|a=setup:active|"
    b"a=fingerprint:sha-256 |a=ice-ufrag:|a=ice-pwd:|a=ice-lite|a=rtpmap:|a=fmtp:|a=ssrc:1 cname:|a=sctp-port:|"
    b"a=max-message-size:0|a=sctpmap:5000|a=sendonly|a=rtcp:|a=rtcp-fb:* nack|a=extmap:|a=simulcast|IN IP6|"
    b"webrtc-datachannel".split(b"|")
)

TARGETS = (
    Target("sdp_offer", "a browser's offer, read and answered", offer, lambda: [BROWSER.encode()], None, SDP_WORDS,
           share=0.3, largest=20_000),
    Target("stun", "what reaches a call's port, up to DTLS", port, lambda: [framed(b"\0\1\0\0")], _checks),
    Target("dtls", "a DTLS handshake", dtls, share=0.2, largest=8192),
    Target("sctp", "SCTP packets and data channels of a peer", association, tuple, _packets, largest=16_384),
    Target("rtp", "RTP and RTCP of a peer", media, tuple, _stream, largest=16_384),
)  # fmt: skip

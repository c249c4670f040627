"""RTCP (RFC 3550, 6): sender and receiver reports, parsed and built. Other packets are skipped."""

import struct
from dataclasses import dataclass

from voicepipe.rtp.packet import PacketError

SENDER, RECEIVER, DESCRIPTION, GOODBYE = 200, 201, 202, 203
MOST_PACKETS = 16
"""Packets of a compound that are read. Peers send a report, a description, a goodbye and some feedback."""
_HEAD = struct.Struct("!BBHI")
_SENDER = struct.Struct("!QIII")
_BLOCK = struct.Struct("!IIIIII")
_TO_1900 = 2_208_988_800
"""Seconds from NTP's epoch to Unix'."""


@dataclass(frozen=True, slots=True)
class RtcpReport:
    """A receiver report about a stream."""

    ssrc: int
    fraction_lost: float
    """Part of the packets since the last report, 0 to 1."""
    lost: int
    """Packets since the beginning."""
    highest_seq: int
    """The highest sequence number, with the number of its cycles in the upper 16 bits."""
    jitter: int
    """Jitter in the codec's RTP clock (RFC 3550, 6.4.1)."""
    last_sr: int
    """Middle 32 bits of the NTP time of the last sender report; 0: none came."""
    since_last_sr: float
    """Seconds since then."""


@dataclass(frozen=True, slots=True)
class SenderInfo:
    """A sender report's position in its stream."""

    ntp: int
    """NTP time, 64 bits."""
    timestamp: int
    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Rtcp:
    """The content of a compound packet."""

    ssrc: int
    """SSRC of its sender."""
    sender: SenderInfo | None = None
    reports: tuple[RtcpReport, ...] = ()


def ntp(unix: float) -> int:
    """A Unix second in NTP's 64 bits. They begin anew in 2036, and a clock that is wrong may be there already."""
    return int((unix + _TO_1900) * 2**32) & (2**64 - 1)


def middle(ntp_time: int) -> int:
    """The 32 bits of an NTP time by which reports name it."""
    return (ntp_time >> 16) & 0xFFFFFFFF


def build(ssrc: int, cname: str, sender: SenderInfo | None, reports: tuple[RtcpReport, ...], *, goodbye: bool) -> bytes:
    """A compound packet: a report, the source's name, and its goodbye if wanted."""
    body = b"".join(map(_block, reports))
    if sender:
        body = _SENDER.pack(sender.ntp, sender.timestamp, sender.packets, sender.bytes) + body
    name = cname.encode()[:255]
    item = struct.pack("!BB", 1, len(name)) + name
    out = _packet(SENDER if sender else RECEIVER, len(reports), ssrc, body)
    out += _packet(DESCRIPTION, 1, ssrc, item + bytes(4 - len(item) % 4))
    return out + _packet(GOODBYE, 1, ssrc, b"") if goodbye else out


def parse(data: bytes) -> Rtcp:
    """Parse a compound packet, up to `MOST_PACKETS`. Raises PacketError."""
    ssrc, sender, reports = 0, None, list[RtcpReport]()
    start = 0
    for _ in range(MOST_PACKETS):
        if start >= len(data):
            break
        if len(data) < start + 4:
            raise PacketError("the RTCP header is cut off")
        flags, kind, words = data[start], data[start + 1], int.from_bytes(data[start + 2 : start + 4])
        end = start + 4 + 4 * words
        if flags >> 6 != 2 or end > len(data):
            raise PacketError("not RTCP, or cut off")
        source, body = int.from_bytes(data[start + 4 : start + 8]), data[start + _HEAD.size : end]
        if kind == SENDER and len(body) >= _SENDER.size:
            sender, body = SenderInfo(*_SENDER.unpack_from(body)), body[_SENDER.size :]
        if kind in (SENDER, RECEIVER) and words:
            ssrc = source
            blocks = min(flags & 0x1F, len(body) // _BLOCK.size)
            reports += [_report(body, at * _BLOCK.size) for at in range(blocks)]
        start = end
    return Rtcp(ssrc, sender, tuple(reports))


def _packet(kind: int, count: int, ssrc: int, body: bytes) -> bytes:
    return _HEAD.pack(0x80 | count, kind, 1 + len(body) // 4, ssrc) + body


def _block(report: RtcpReport) -> bytes:
    fraction = min(255, int(report.fraction_lost * 256))
    lost = max(-(1 << 23), min(report.lost, (1 << 23) - 1)) & 0xFFFFFF
    since = int(report.since_last_sr * 65536) & 0xFFFFFFFF
    return _BLOCK.pack(report.ssrc, fraction << 24 | lost, report.highest_seq & 0xFFFFFFFF, report.jitter & 0xFFFFFFFF,
                       report.last_sr, since)  # fmt: skip


def _report(body: bytes, at: int) -> RtcpReport:
    ssrc, losses, highest, jitter, last_sr, since = _BLOCK.unpack_from(body, at)
    lost = losses & 0xFFFFFF
    lost -= (lost & 0x800000) << 1
    return RtcpReport(ssrc, (losses >> 24) / 256, lost, highest, jitter, last_sr, since / 65536)

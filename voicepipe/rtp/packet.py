"""RTP packets (RFC 3550, 5.1), parsed and built."""

import struct
from typing import NamedTuple

HEADER = 12
_FIXED = struct.Struct("!BBHII")
_EXTENSION = struct.Struct("!HH")


class PacketError(ValueError):
    """The bytes are no RTP or RTCP packet."""


class RtpPacket(NamedTuple):
    """One packet. `timestamp` counts in the codec's RTP clock, modulo 2**32; `seq` modulo 2**16."""

    payload_type: int
    seq: int
    timestamp: int
    ssrc: int
    payload: bytes
    marker: bool = False
    """It is the first after a silence in which nothing was sent (RFC 3551, 4.1)."""

    @classmethod
    def parse(cls, data: bytes) -> "RtpPacket":
        """Parse a packet. Contributing sources, header extensions and padding are skipped. Raises PacketError."""
        if len(data) < HEADER:
            raise PacketError(f"{len(data)} bytes are too few for RTP")
        flags, kind, seq, timestamp, ssrc = _FIXED.unpack_from(data)
        if flags >> 6 != 2:
            raise PacketError(f"RTP version {flags >> 6}, not 2")
        start, end = HEADER + 4 * (flags & 0xF), len(data)
        if flags & 0x10:
            if start + 4 > end:
                raise PacketError("the header extension is cut off")
            start += 4 + 4 * _EXTENSION.unpack_from(data, start)[1]
        if flags & 0x20:
            end -= data[-1]
        if start > end:
            raise PacketError("the payload is cut off")
        return cls(kind & 0x7F, seq, timestamp, ssrc, data[start:end], bool(kind & 0x80))

    def __bytes__(self) -> bytes:
        kind = self.payload_type | (0x80 if self.marker else 0)
        return _FIXED.pack(0x80, kind, self.seq, self.timestamp, self.ssrc) + self.payload


def is_rtcp(data: bytes) -> bool:
    """Whether a datagram is RTCP, on a port that carries both (RFC 5761, 4)."""
    return len(data) > 1 and 192 <= data[1] <= 223


def newer_by(new: int, old: int, bits: int) -> int:
    """How far `new` is ahead of `old` where both count modulo 2**bits; negative: behind."""
    half = 1 << (bits - 1)
    return (new - old + half) % (1 << bits) - half

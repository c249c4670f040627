"""SCTP packets of an authenticated peer that keeps to no rule: our own transport connects, what it sends is forged."""

import struct

from google_crc32c import value as crc32c

from voicepipe.rtp.transport import Transport

FIRST, LAST, UNORDERED = 2, 1, 4
WHOLE = FIRST | LAST
STRING, DCEP = 51, 50


def chunk(kind: int, value: bytes, flags: int = 0) -> bytes:
    return struct.pack("!BBH", kind, flags, 4 + len(value)) + value + bytes(-len(value) % 4)


def data(tsn: int, payload: bytes, flags: int = WHOLE, *, stream: int = 0, seq: int = 0, kind: int = STRING) -> bytes:
    return chunk(0, struct.pack("!LHHL", tsn % 2**32, stream, seq, kind) + payload, flags)


def opening(label: bytes = b"x") -> bytes:
    """The message by which a channel is opened (RFC 8832)."""
    return struct.pack("!BBHLHH", 3, 0, 0, 0, len(label), 0) + label


def sack(tsn: int, gaps: list[tuple[int, int]]) -> bytes:
    blocks = b"".join(struct.pack("!HH", *gap) for gap in gaps)
    return chunk(3, struct.pack("!LLHH", tsn % 2**32, 1 << 20, len(gaps), 0) + blocks)


def packed(peer: Transport, *chunks: bytes, tag: int | None = None) -> bytes:
    """A packet of these chunks, with the ports, tag and checksum that the far end expects."""
    sctp, body = peer.sctp, b"".join(chunks)
    tag = sctp._remote_verification_tag if tag is None else tag
    head = struct.pack("!HHL", sctp._local_port, sctp._remote_port or 0, tag)
    return head + struct.pack("<L", crc32c(head + bytes(4) + body)) + body


async def send(peer: Transport, *chunks: bytes, tag: int | None = None) -> None:
    """In one packet. Raises ConnectionError: the far end has ended it."""
    await peer._dtls._send_data(packed(peer, *chunks, tag=tag))


def next_tsn(peer: Transport) -> int:
    return peer.sctp._local_tsn

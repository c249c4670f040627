"""Packets that no honest peer sends."""

import struct

import pytest

from tests.attacks.sctp_forge import chunk, data, sack
from voicepipe.rtp.sctp_packet import is_fit

HEADER = bytes(12)


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

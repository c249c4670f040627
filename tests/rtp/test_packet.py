"""RTP and RTCP, there and back, and bytes that are neither."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.rtp import rtcp
from voicepipe.rtp.packet import PacketError, RtpPacket, is_rtcp, newer_by

PACKETS = st.builds(
    RtpPacket, st.integers(0, 127), st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1),
    st.binary(max_size=100), st.booleans(),
)  # fmt: skip


@given(PACKETS)
def test_a_packet_there_and_back(packet: RtpPacket) -> None:
    assert RtpPacket.parse(bytes(packet)) == packet


def test_sources_extension_and_padding_are_skipped() -> None:
    plain = bytes(RtpPacket(96, 1, 2, 3, b""))
    dressed = bytes([0x80 | 0x20 | 0x10 | 2]) + plain[1:] + bytes(8) + b"\xbe\xde\x00\x01" + bytes(4) + b"sound\0\0\x03"
    assert RtpPacket.parse(dressed).payload == b"sound"


@given(st.binary(max_size=80))
def test_any_bytes_are_a_packet_or_an_error(data: bytes) -> None:
    for parse in (RtpPacket.parse, rtcp.parse):
        try:
            parse(data)
        except PacketError:
            pass


@given(PACKETS, st.integers(0, 40))
def test_a_packet_that_is_cut_off(packet: RtpPacket, size: int) -> None:
    whole = bytes(packet)
    if size < 12:
        with pytest.raises(PacketError):
            RtpPacket.parse(whole[:size])


@pytest.mark.parametrize(
    ("new", "old", "bits", "ahead"), [(1, 65535, 16, 2), (65535, 1, 16, -2), (5, 5, 16, 0), (0, 2**32 - 960, 32, 960)]
)
def test_counting_around_the_corner(new: int, old: int, bits: int, ahead: int) -> None:
    assert newer_by(new, old, bits) == ahead


@given(PACKETS)
def test_media_is_not_taken_for_reports(packet: RtpPacket) -> None:
    reserved = packet.marker and 64 <= packet.payload_type <= 95  # RFC 5761: not used where both share a port
    assert is_rtcp(bytes(packet)) == reserved

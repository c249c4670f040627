"""Codecs as RTP streams use them."""

import numpy as np
import pytest

from voicepipe.audio import RATE, Pcm, dbfs
from voicepipe.rtp.codec import CODECS, G722, OPUS, PCMA, PCMU, UNMAPPED, Codec, formats

by_name = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
PACKET = RATE // 50


def tone(rate: int, packets: int = 20) -> list[Pcm]:
    """In packets of 20 ms."""
    at = np.arange(packets * rate // 50) / rate
    return list((9000 * np.sin(2 * np.pi * 300 * at)).astype(np.int16).reshape(packets, -1))


def heard(codec: Codec) -> list[Pcm]:
    encode, decode = codec.encoder(), codec.decoder()
    return [decode(encode(pcm)) for pcm in tone(codec.out_rate)]


@by_name
def test_a_packet_is_20_ms_and_as_loud_as_it_was(codec: Codec) -> None:
    packets = heard(codec)
    assert {pcm.size for pcm in packets} == {PACKET}
    assert dbfs(np.concatenate(packets[5:])) == pytest.approx(dbfs(tone(RATE)[5]), abs=1.5)


def test_no_codec_is_taken_for_another() -> None:
    unknown = Codec("speex", 97, 8000, 8000, 0)
    for make in (unknown.encoder, unknown.decoder):
        with pytest.raises(NotImplementedError, match="speex"):
            make()


@pytest.mark.parametrize(("codec", "size"), [(PCMU, 160), (PCMA, 160), (G722, 160)])
def test_codecs_of_one_rate_have_packets_of_one_size(codec: Codec, size: int) -> None:
    encode = codec.encoder()
    assert {len(encode(pcm)) for pcm in tone(codec.out_rate)} == {size}


@pytest.mark.parametrize("codec", [PCMU, PCMA, G722], ids=lambda codec: codec.name)
def test_what_stands_in_for_lost_packets_fades(codec: Codec) -> None:
    encode, decode = codec.encoder(), codec.decoder()
    for pcm in tone(codec.out_rate):
        before = decode(encode(pcm))
    first, second = decode.conceal(PACKET), decode.conceal(2 * PACKET)
    assert (first.size, second.size) == (PACKET, 2 * PACKET)
    assert dbfs(first) == pytest.approx(dbfs(before) - 6, abs=1.5)
    assert dbfs(second) == pytest.approx(dbfs(before) - 12, abs=1.5)


@by_name
def test_what_is_lost_before_the_first_packet_is_silence(codec: Codec) -> None:
    assert not codec.decoder().conceal(PACKET).any()


def test_opus_recovers_a_lost_packet_out_of_the_next_and_others_conceal_it() -> None:
    for codec in CODECS:
        encode, decode = codec.encoder(), codec.decoder()
        payloads = [encode(pcm) for pcm in tone(codec.out_rate)]
        for payload in payloads[:10]:
            decode(payload)
        assert decode.recover(payloads[11], PACKET).size == PACKET
        assert decode(payloads[11]).size == PACKET


@by_name
def test_an_empty_payload_is_no_sound(codec: Codec) -> None:
    with pytest.raises(ValueError):
        codec.decoder()(b"")


@by_name
def test_each_call_has_a_coder_of_its_own(codec: Codec) -> None:
    first, second = codec.encoder(), codec.encoder()
    for pcm in tone(codec.out_rate):
        first(pcm)
    assert second(tone(codec.out_rate)[0]) == codec.encoder()(tone(codec.out_rate)[0])


def test_formats_without_a_map_are_codecs_that_we_have() -> None:
    assert formats(UNMAPPED.items()) == {0: PCMU, 8: PCMA, 9: G722}
    assert (G722.clock, G722.out_rate) == (8000, RATE), "its clock is half of its rate (RFC 3551, 4.5.2)"
    assert (OPUS.clock, OPUS.silence) == (48_000, 2)

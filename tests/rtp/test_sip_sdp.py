"""What phones, trunks and exchanges offer, and what we make of it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rtp.test_sdp import BROWSER, formats
from tests.support.stopwatch import spent
from voicepipe.rtp import sdes, sip_sdp
from voicepipe.rtp.codec import CODECS, G722, OPUS, PCMA, PCMU, Codec
from voicepipe.rtp.sdp_text import LONGEST, MOST_FORMATS, MOST_MEDIA, SdpError
from voicepipe.rtp.sip_sdp import LocalDescription, SipDescription
from voicepipe.rtp.telephone_events import KeyFormat

KEY = "A" * 40
TRUNK = (
    "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=call\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
    "m=audio 10000 RTP/AVP 18 8 0 96\r\na=rtpmap:18 G729/8000\r\na=rtpmap:96 telephone-event/8000\r\n"
    "a=fmtp:96 0-16\r\na=ptime:20\r\na=maxptime:150\r\n"
)
DESK_PHONE = (
    "v=0\no=phone 3881 7822 IN IP4 10.0.0.5\ns=-\nc=IN IP4 10.0.0.5\nt=0 0\na=sendrecv\n"
    "m=audio 4000 RTP/SAVP 96 9 0 8 101 102\na=crypto:1 AES_256_CM_HMAC_SHA1_80 inline:" + "A" * 62 + "\n"
    f"a=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|2^48|1:4\na=crypto:3 AES_CM_128_HMAC_SHA1_80 inline:{KEY}\n"
    "a=rtpmap:96 opus/48000/2\na=rtpmap:101 telephone-event/8000\na=rtpmap:102 telephone-event/48000\n"
    "a=rtcp:4005\na=rtcp-mux\nm=video 4002/2 RTP/SAVP 97 98\nc=IN IP4 10.0.0.6\na=rtpmap:97 H264/90000\n"
)


def local() -> LocalDescription:
    return LocalDescription("203.0.113.5", 20_000)


def answered(offer: str, prefer: tuple[str, ...] = ()) -> list[str]:
    said = sip_sdp.read(offer, prefer)
    return sip_sdp.answer(said, local(), said.crypto[0] if said.crypto else None).split("\r\n")


def codecs(said: sip_sdp.SipDescription) -> list[tuple[int, Codec]]:
    return [(number, form) for number, form in said.formats.items() if isinstance(form, Codec)]


def test_a_trunks_offer() -> None:
    said = sip_sdp.read(TRUNK)
    assert codecs(said) == [(8, PCMA), (0, PCMU)], "in the peer's order"
    assert (said.codec, said.payload_type, said.keys) == (PCMA, 8, KeyFormat(96, 8000))
    assert said.remote == ("192.0.2.1", 10_000) and said.rtcp == ("192.0.2.1", 10_001)
    assert (said.direction, said.crypto, said.rtcp_mux) == ("sendrecv", (), False)
    assert said.listens and not said.held
    answer = answered(TRUNK)
    assert answer[3:] == [
        "c=IN IP4 203.0.113.5", "t=0 0", "m=audio 20000 RTP/AVP 8 96", "a=rtpmap:8 PCMA/8000",
        "a=rtpmap:96 telephone-event/8000", "a=fmtp:96 0-15", "a=ptime:20", "a=sendrecv", "",
    ]  # fmt: skip


def test_a_desk_phones_offer_with_srtp_opus_and_video() -> None:
    said = sip_sdp.read(DESK_PHONE)
    assert (said.codec, said.payload_type) == (OPUS, 96)
    assert said.keys == KeyFormat(102, 48_000), "of the codec's clock"
    assert said.rtcp == ("10.0.0.5", 4005) and said.rtcp_mux
    assert [crypto.tag for crypto in said.crypto] == [3]
    answer = answered(DESK_PHONE)
    assert "m=audio 20000 RTP/SAVP 96 102" in answer and "m=video 0 RTP/SAVP 97" in answer
    assert f"a=crypto:3 AES_CM_128_HMAC_SHA1_80 inline:{KEY}" in answer and "a=rtcp-mux" in answer
    assert answer.index("m=audio 20000 RTP/SAVP 96 102") < answer.index("m=video 0 RTP/SAVP 97")


@pytest.mark.parametrize(
    ("prefer", "codec", "keys"), [((), OPUS, 102), (("g722",), G722, 101), (("pcma", "opus"), PCMA, 101)]
)
def test_our_preference_counts_where_there_is_one(prefer: tuple[str, ...], codec: Codec, keys: int) -> None:
    said = sip_sdp.read(DESK_PHONE, prefer)
    assert said.codec is codec and said.keys and said.keys.payload_type == keys
    assert len(codecs(said)) == 4


def test_keys_of_another_clock_are_better_than_none() -> None:
    said = sip_sdp.read(re.sub("a=rtpmap:102.*\n", "", DESK_PHONE))
    assert (said.codec, said.keys) == (OPUS, KeyFormat(101, 8000))
    assert "a=rtpmap:101 telephone-event/8000" in answered(re.sub("a=rtpmap:102.*\n", "", DESK_PHONE))
    assert sip_sdp.read(re.sub("a=rtpmap:96.*\r\n", "", TRUNK)).keys is None
    assert sip_sdp.read(TRUNK.replace("telephone-event/8000", "telephone-event/90000")).keys is None


@pytest.mark.parametrize(
    ("theirs", "ours", "held"),
    [
        ("sendonly", "recvonly", True),
        ("recvonly", "sendonly", False),
        ("inactive", "inactive", True),
        ("sendrecv", "sendrecv", False),
    ],
)
def test_who_only_listens_or_only_talks(theirs: str, ours: str, held: bool) -> None:
    for offer in (f"{TRUNK}a={theirs}\r\n", TRUNK.replace("t=0 0", f"t=0 0\r\na={theirs}")):
        said = sip_sdp.read(offer)
        assert said.held is held
        assert said.listens is (theirs in ("sendrecv", "recvonly"))
        assert f"a={ours}" in answered(offer)


def test_hold_as_in_older_phones() -> None:
    said = sip_sdp.read(TRUNK.replace("c=IN IP4 192.0.2.1", "c=IN IP4 0.0.0.0"))
    assert said.held and not said.listens


def test_an_audio_stream_with_srtp_and_one_without() -> None:
    both = TRUNK.replace("RTP/AVP", "RTP/SAVP") + "m=audio 10002 RTP/AVP 0\r\n"
    assert sip_sdp.read(both).audio == 1
    assert [line for line in answered(both) if line.startswith("m=")] == [
        "m=audio 0 RTP/SAVP 18", "m=audio 20000 RTP/AVP 0"
    ]  # fmt: skip


def test_an_answer_keeps_its_version_until_it_says_something_else() -> None:
    ours = local()

    def origin(offer: str) -> tuple[str, int]:
        found = re.search(r"o=- (\d+) (\d+) IN IP4 203\.0\.113\.5", sip_sdp.answer(sip_sdp.read(offer), ours))
        assert found
        return found[1], int(found[2])

    first = origin(TRUNK)
    assert origin(TRUNK) == first
    assert origin(TRUNK + "a=sendonly\r\n") == (first[0], first[1] + 1)
    assert origin(TRUNK) == (first[0], first[1] + 2)


@pytest.mark.parametrize("crypto", [(), sdes.offered()])
def test_our_own_offer_is_answered_and_read(crypto: tuple[sdes.Crypto, ...]) -> None:
    offer = sip_sdp.offer(local(), (PCMU, PCMA, G722, OPUS), crypto)
    assert f"m=audio 20000 RTP/{'SAVP' if crypto else 'AVP'} 0 8 9 111 101 110" in offer
    asked = sip_sdp.read(offer)
    assert {codec for _, codec in codecs(asked)} == set(CODECS)
    assert asked.crypto == crypto
    said = sip_sdp.read(sip_sdp.answer(asked, LocalDescription("192.0.2.9", 3000), asked.crypto[0] if crypto else None))
    assert (codecs(said), said.keys, said.remote) == ([(0, PCMU)], KeyFormat(101, 8000), ("192.0.2.9", 3000))


def test_static_formats_need_no_map_and_maps_count_before_them() -> None:
    assert [codec for _, codec in codecs(sip_sdp.read(TRUNK.replace("18 8 0 96", "9 0 8")))] == [G722, PCMU, PCMA]
    other = TRUNK.replace("18 8 0 96", "0 8") + "a=rtpmap:0 opus/48000/2\r\na=rtpmap:8 PCMA/16000\r\n"
    assert codecs(sip_sdp.read(other)) == [(0, OPUS)]


@pytest.mark.parametrize(
    ("offer", "sentence"),
    [
        ("", "no SDP"),
        ("<html>", "no SDP"),
        ("v=0\r\nhello\r\n", "Line 2"),
        ("v=0\r\n" + "m=audio 1 RTP/AVP 0\r\n" * (MOST_MEDIA + 1), "33 media"),
        ("v=0\r\n" + "a" * LONGEST, f"at most {LONGEST}"),
        ("v=0\r\nc=IN IP4 192.0.2.1\r\n", "no audio"),
        (TRUNK.replace("m=audio 10000", "m=audio 0"), "no audio"),
        (TRUNK.replace("m=audio 10000", "m=audio 70000"), "m= line"),
        (TRUNK.replace("m=audio 10000", "m=audio"), "m= line"),
        (TRUNK.replace("m=audio", "m=video"), "no audio"),
        (TRUNK.replace("18 8 0 96", "18 4 97"), "No codec in common: format 4, format 97, g729 is offered"),
        (TRUNK.replace("18 8 0 96", "96"), "No codec in common: nothing is offered"),
        (TRUNK.replace("18 8 0", "0") + "a=rtpmap:0 PCMU/8000/2\r\n", "No codec in common: pcmu"),
        (TRUNK.replace("c=IN IP4 192.0.2.1\r\n", ""), "no c= line"),
        (TRUNK.replace("c=IN IP4 192.0.2.1", "c=IN IP6 2001:db8::1"), "IPv6"),
        (TRUNK.replace("c=IN IP4 192.0.2.1", "c=IN IP4 media.example.com"), "names of hosts"),
        (TRUNK.replace("c=IN IP4 192.0.2.1", "c=IN IP4 224.2.1.1/127"), "IPv4 address"),
        (TRUNK.replace("c=IN IP4 192.0.2.1", "c=IN IP4 224.2.1.1"), "one host's address"),
        (TRUNK.replace("c=IN IP4 192.0.2.1", "c=ATM IP4 192.0.2.1"), "one host's address"),
        (TRUNK.replace("RTP/AVP", "RTP/SAVP"), "without an a=crypto line"),
        (TRUNK.replace("RTP/AVP", "RTP/SAVP") + f"a=crypto:1 F8_128_HMAC_SHA1_80 inline:{KEY}\r\n", "without an a="),
        (TRUNK.replace("RTP/AVP", "RTP/SAVPF") + "a=fingerprint:sha-256 AB\r\n", "DTLS-SRTP"),
        (TRUNK.replace("RTP/AVP", "udptl"), "offered by udptl"),
        (BROWSER, "DTLS-SRTP"),
    ],
)  # fmt: skip
def test_what_a_call_cannot_be_had_with_is_said_in_a_sentence(offer: str, sentence: str) -> None:
    with pytest.raises(SdpError, match=sentence) as refused:
        sip_sdp.read(offer)
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)


@pytest.mark.parametrize("medium", ["audio 10000 RTP/AVP", "video 4002 RTP/AVP", "image 0 udptl"])
def test_an_m_line_with_more_formats_than_there_are_payload_types_is_refused(medium: str) -> None:
    """It was read whole."""
    assert sip_sdp.read(f"{TRUNK}m={medium} {formats(MOST_FORMATS)}\r\n").codec is PCMA
    with pytest.raises(SdpError, match=r"^An m= line of this SDP has 129 formats; at most 128 are read\.$"):
        sip_sdp.read(f"{TRUNK}m={medium} {formats(MOST_FORMATS + 1)}\r\n")


def test_how_a_medium_is_sent_is_said_below_its_m_line() -> None:
    """RFC 8866, 6.6; RFC 4568, 5.1; RFC 3605, 2.1; RFC 5761, 5.1.1. Directions hold for all media (RFC 8866, 6.7)."""
    before = "a=rtpmap:97 PCMU/8000\r\na=rtpmap:8 speex/8000\r\na=rtcp:9\r\na=rtcp-mux\r\na=sendonly\r\n"
    said = sip_sdp.read(TRUNK.replace("t=0 0\r\n", f"t=0 0\r\n{before}").replace("18 8", "97 8"))
    assert (said.payload_type, said.codec) == (8, PCMA) and said.rtcp == ("192.0.2.1", 10_001) and not said.rtcp_mux
    assert said.direction == "sendonly"
    assert sip_sdp.read(TRUNK.replace("t=0 0\r\n", f"t=0 0\r\n{before}") + "a=recvonly\r\n").direction == "recvonly"


UDP = 7600
"""Characters that an INVITE of 8192 bytes has for its SDP."""
BEGIN = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
NOWHERE = BEGIN.replace("c=IN IP4 192.0.2.1\r\n", "")


@pytest.mark.parametrize("many", [1, 8, MOST_MEDIA])
@pytest.mark.parametrize("medium", ["RTP/AVP 0", "RTP/AVP 99 98", "RTP/SAVP 0", "X 0"])
@pytest.mark.parametrize(
    "line",
    ["a=", "a=x", "b=", "c=", "a=rtpmap:99 a/1", "a=rtpmap:98 opus/48000/2", "a=rtcp:1 x", "a=sendrecv", " ", ""]
    + [f"a=crypto:1 {suite} inline:{KEY}" for suite in ("A", "AES_CM_128_HMAC_SHA1_80")],
)  # fmt: skip
def test_an_invites_sdp_costs_little(line: str, medium: str, many: int) -> None:
    """So does one with all its lines before the first m= line, which count for every medium: that took 19 ms."""
    media = [f"m=audio 1 {medium}\n"] * many

    def lines(length: int) -> str:
        return f"{line}\n" * (length // (len(line) + 1))

    for begin in (BEGIN, NOWHERE):
        room = UDP - len(begin) - len("".join(media))
        texts = f"{begin}{lines(room)}{''.join(media)}", begin + "".join(one + lines(room // many) for one in media)
        for text in texts:
            assert len(text) <= UDP and cost_s(text) < COST_S


@pytest.mark.parametrize("many", [1, 2, 31])
@pytest.mark.parametrize("unit", [" 0", " 1", " 99", " x", "  ", " " + "9" * 100, " \u00e9", "a" * 50])
def test_long_m_lines_cost_little(unit: str, many: int) -> None:
    line = "m=audio 1 RTP/AVP 98"
    room = (UDP - len(BEGIN)) // many - len(line) - 1
    for text in (BEGIN + f"{line}{unit * (room // len(unit))}\n" * many,
                 BEGIN + f"{line}{unit * (room // len(unit) - 1)}\u00e9\n" * many):  # fmt: skip
        assert cost_s(text) < COST_S


COST_S = 0.008
"""Processor time: it is about 1 ms, and 20 ms where something is done for every line and every medium."""


def cost_s(text: str) -> float:
    def read() -> None:
        try:
            sip_sdp.answer(sip_sdp.read(text, ("pcmu", "opus")), local())
        except SdpError:
            pass

    return spent(read)


def test_no_refusal_says_a_key() -> None:
    with pytest.raises(SdpError) as refused:
        sip_sdp.read(TRUNK.replace("RTP/AVP", "RTP/SAVP") + f"a=crypto:1 NO_SUITE inline:{KEY}\r\n")
    assert KEY not in str(refused.value)


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """A real offer with some of it cut out, doubled or replaced."""
    text = draw(st.sampled_from([TRUNK, DESK_PHONE, BROWSER]))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        text = text[:start] + draw(st.one_of(st.text(max_size=8), st.just(text[start:end] * 2))) + text[end:]
    return text


@settings(max_examples=400)
@given(st.one_of(st.text(max_size=300), mangled(), st.binary(max_size=300).map(lambda raw: raw.decode("latin-1"))))
def test_any_text_is_a_description_or_a_sentence(text: str) -> None:
    try:
        said = sip_sdp.read(text)
    except SdpError as error:
        assert str(error) and "\n" not in str(error)
        return
    assert isinstance(said, SipDescription)
    answer = sip_sdp.answer(said, local(), said.crypto[0] if said.crypto else None)
    assert answer.isascii() and len(re.findall("^m=", answer, re.M)) == len(said.media)
    assert sip_sdp.read(answer).codec is said.codec

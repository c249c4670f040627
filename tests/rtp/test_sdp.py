"""What browsers and others offer, and what we make of it."""

import re
from contextlib import suppress

import pytest

from tests.support.stopwatch import spent
from voicepipe.rtp import sdp
from voicepipe.rtp.codec import G722, OPUS, PCMA, PCMU, Codec
from voicepipe.rtp.sdp_text import LONGEST, SdpError
from voicepipe.rtp.transport import Transport, UdpNetwork

ICE = "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n"
DTLS = f"a=fingerprint:sha-256 {':'.join(['AB'] * 32)}\r\na=setup:actpass\r\n"
BROWSER = (
    "v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
    "a=group:BUNDLE 0 1\r\na=extmap-allow-mixed\r\na=msid-semantic: WMS stream\r\n"
    "m=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126\r\nc=IN IP4 0.0.0.0\r\na=rtcp:9 IN IP4 0.0.0.0\r\n"
    f"{ICE}a=ice-options:trickle\r\n{DTLS}a=mid:0\r\n"
    "a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level\r\na=sendrecv\r\na=msid:stream track\r\na=rtcp-mux\r\n"
    "a=rtcp-rsize\r\na=rtpmap:111 opus/48000/2\r\na=rtcp-fb:111 transport-cc\r\n"
    "a=fmtp:111 minptime=10;useinbandfec=1\r\na=rtpmap:63 red/48000/2\r\na=fmtp:63 111/111\r\n"
    "a=rtpmap:9 G722/8000\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:13 CN/8000\r\n"
    "a=rtpmap:110 telephone-event/48000\r\na=rtpmap:126 telephone-event/8000\r\na=ssrc:1001 cname:abc\r\n"
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n"
    f"{ICE}{DTLS}a=mid:1\r\na=sctp-port:5000\r\na=max-message-size:262144\r\n"
)


async def answered(offer: str) -> str:
    transport = Transport(UdpNetwork(), controlling=False)
    try:
        return sdp.answer(sdp.read(offer), transport, await transport.gather(), ssrc=4711)
    finally:
        await transport.close()


async def test_a_browsers_offer_gets_opus_events_and_one_transport() -> None:
    said = sdp.read(BROWSER)
    assert (said.codec, said.payload_type) == (OPUS, 111)
    assert said.remote.sctp_port == 5000 and said.remote.max_message == 262144
    assert said.remote.dtls_role == "client", "who is left the choice begins (RFC 8842)"
    answer = await answered(BROWSER)
    assert re.findall(r"^m=.*?(?= )", answer, re.M) == ["m=audio", "m=application"]
    for line in (
        "a=group:BUNDLE 0 1", "a=sendrecv", "a=rtcp-mux", "a=rtpmap:111 opus/48000/2", "a=setup:active",
        "a=fmtp:111 minptime=10;useinbandfec=1", "a=sctp-port:5000", "a=end-of-candidates",
    ):  # fmt: skip
        assert line in answer.splitlines(), line
    assert re.search(r"^a=msid:\S+ \S+\r$", answer, re.M), "browsers hang the track on a stream by it"
    assert "a=ssrc:4711 cname:" in answer and "127.0.0.1" in answer
    assert "extmap" not in answer and "rtcp-fb" not in answer


@pytest.mark.parametrize(
    ("formats", "codec"), [("0 111", PCMU), ("8", PCMA), ("111 0", OPUS), ("63 9 8 111", G722), ("0", PCMU)]
)
async def test_the_peers_order_of_codecs_counts(formats: str, codec: Codec) -> None:
    offer = BROWSER.replace("111 63 9 0 8 13 110 126", formats)
    assert sdp.read(offer).codec is codec
    assert f" {sdp.read(offer).payload_type}\r" in next(
        line + "\r" for line in (await answered(offer)).splitlines() if line.startswith("m=audio")
    )


async def test_static_formats_need_no_map() -> None:
    bare = re.sub(r"a=rtpmap:.*\r\n|a=fmtp:.*\r\n|a=rtcp-fb:.*\r\n", "", BROWSER).replace(
        "111 63 9 0 8 13 110 126", "8 0"
    )
    assert sdp.read(bare).codec is PCMA
    assert "a=rtpmap:8 PCMA/8000" in await answered(bare)


@pytest.mark.parametrize(
    ("theirs", "ours"), [("sendonly", "recvonly"), ("recvonly", "sendonly"), ("inactive", "inactive")]
)
async def test_who_only_listens_or_only_talks(theirs: str, ours: str) -> None:
    answer = await answered(BROWSER.replace("a=sendrecv", f"a={theirs}"))
    assert f"a={ours}" in answer.splitlines()


@pytest.mark.parametrize(("setup", "role"), [("active", "server"), ("passive", "client")])
def test_who_begins_the_handshake(setup: str, role: str) -> None:
    assert sdp.read(BROWSER.replace("actpass", setup)).remote.dtls_role == role


async def test_video_is_refused_and_the_rest_goes_on() -> None:
    video = f"m=video 9 UDP/TLS/RTP/SAVPF 96\r\n{ICE}{DTLS}a=mid:2\r\na=rtpmap:96 VP8/90000\r\n"
    answer = await answered(BROWSER.replace("BUNDLE 0 1", "BUNDLE 0 1 2") + video)
    assert "m=video 0 " in answer and "a=group:BUNDLE 0 1\r" in answer


async def test_without_bundle_there_is_sound_alone() -> None:
    offer = BROWSER.replace("a=group:BUNDLE 0 1\r\n", "")
    assert sdp.read(offer).remote.sctp_port is None
    assert "m=application 0 " in await answered(offer)


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (r"a=ice-ufrag:.*\r\n", "ice-ufrag"),
        (r"a=fingerprint:.*\r\n", "fingerprint"),
        (r"a=setup:.*\r\n", "setup"),
        (r"m=audio 9", "no audio"),
    ],
)
def test_what_a_call_cannot_do_without(gone: str, said: str) -> None:
    with pytest.raises(SdpError, match=said):
        sdp.read(re.sub(gone, "m=audio 0" if "audio" in gone else "", BROWSER))


MINIMAL = (
    f"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\nc=IN IP4 0.0.0.0\r\n"
    f"{ICE}{DTLS}a=mid:0\r\na=rtpmap:0 PCMU/8000\r\n"
)


def filled(*units: str, start: str = MINIMAL, end: str = "\r\n") -> str:
    """As many of each as fit in, all of the first before those of the second. `@`: a number, `#`: a payload type."""
    many = (LONGEST - len(start)) // sum(len(unit) + 3 + len(end) for unit in units)
    return start + "".join(
        unit.replace("@", str(n)).replace("#", str(1 + n % 60)) + end for unit in units for n in range(many)
    )


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\v", "\x85", "\u2028"])
@pytest.mark.parametrize(
    "units",
    [
        ("a=rtpmap:1 a/1", "a=rtcp-fb:* a"), ("a=rtpmap:# a/1", "a=rtcp-fb:1 a"), ("a=rtpmap:@ a/1", "a=fmtp:@ a"),
        ("a=rtpmap:# a/1", "a=fmtp:# a;b;c"), ("m=a 9 U 0",), ("m=audio 9 U 0",), ("a=rtpmap:@ a/1",),
        ("m=audio 9 U 0", "a=rtpmap:# a/1"), ("a=ssrc:@ a:b",), ("a=ssrc-group:FID 1 2",), ("a=extmap:@ u",),
        ("a=candidate:@ 1 udp 1 127.0.0.1 9 typ host",), ("a=fingerprint:sha-256 A",), ("a=setup:active",),
        ("a=group:BUNDLE 0 @",), ("a=msid:a b",), ("a=rid:a send",), ("c=IN IP4 a",), ("a=sctpmap:@ a",), ("",),
    ],
)  # fmt: skip
def test_an_offer_as_long_as_allowed_costs_little(units: tuple[str, ...], end: str) -> None:
    text = filled(*units, end=end)

    def read() -> None:
        with suppress(SdpError):
            sdp.read(text)

    assert spent(read) < 0.1, "it was up to 460 ms"


def test_more_media_or_formats_than_anybody_offers_are_refused() -> None:
    assert len(sdp.read(MINIMAL + "m=audio 9 U 0\r\n" * 31).session.media) == 32
    with pytest.raises(SdpError, match="33 media; at most 32"):
        sdp.read(MINIMAL + "m=audio 9 U 0\r\n" * 32)
    maps = "".join(f"a=rtpmap:{n} a/8000\r\n" for n in range(1, 128))
    for media in (MINIMAL, f"{MINIMAL}{maps}m=video 9 U 0\r\n{maps}"):  # Each medium has numbers of its own.
        assert sdp.read(media).codec is PCMU
    with pytest.raises(SdpError, match="over 128 a=rtpmap"):
        sdp.read(f"{MINIMAL}{maps}a=rtpmap:0 PCMU/8000\r\n")


def formats(number: int) -> str:
    return " ".join(str(n % 64) for n in range(number))


def test_an_m_line_with_more_formats_than_there_are_payload_types_is_refused() -> None:
    """It was read, and echoed in our answer, whole."""
    for medium in ("audio 9", "video 9", "audio 0"):
        line = f"m={medium} UDP/TLS/RTP/SAVPF "
        assert sdp.read(f"{MINIMAL}{line}{formats(128)}\r\n").codec is PCMU
        with pytest.raises(SdpError, match=r"^An m= line of this SDP has 129 formats; at most 128 are read\.$"):
            sdp.read(f"{MINIMAL}{line}{formats(129)}\r\n")
    with pytest.raises(SdpError, match="129 formats"):
        sdp.read(MINIMAL.replace("SAVPF 0", f"SAVPF {formats(129)}"))


def test_what_is_no_payload_type_is_not_taken() -> None:
    """It has seven bits: 200 would go out as 72, with the marker set."""
    maps = "a=rtpmap:200 opus/48000/2\r\na=rtpmap:127 PCMA/8000\r\n"
    said = sdp.read(MINIMAL.replace("SAVPF 0", "SAVPF 200 127 0") + maps)
    assert (said.codec, said.payload_type) == (PCMA, 127)


def video(mid: int, codecs: int) -> str:
    """As browsers offer it: each codec with its retransmissions and all that may be fed back."""
    numbers = [*range(96, 128), *range(35, 64)][: 2 * codecs]
    lines = [
        f"m=video 9 UDP/TLS/RTP/SAVPF {' '.join(map(str, numbers))}", "c=IN IP4 0.0.0.0", "a=rtcp:9 IN IP4 0.0.0.0",
        *(ICE + DTLS).splitlines(), f"a=mid:{mid}", *(f"a=extmap:{n} urn:3gpp:{n}" for n in range(1, 15)), "a=recvonly",
        "a=rtcp-mux", "a=rtcp-rsize",
    ]  # fmt: skip
    for codec, again in zip(numbers[::2], numbers[1::2], strict=True):
        lines += [f"a=rtpmap:{codec} H264/90000"]
        lines += [f"a=rtcp-fb:{codec} {what}" for what in ("goog-remb", "transport-cc", "ccm fir", "nack", "nack pli")]
        lines += [f"a=fmtp:{codec} level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"]
        lines += [f"a=rtpmap:{again} rtx/90000", f"a=fmtp:{again} apt={codec}"]
    sources = "a=ssrc-group:FID 11 12\r\n" + "".join(f"a=ssrc:{n} cname:x\r\na=ssrc:{n} msid:s t\r\n" for n in (11, 12))
    return "\r\n".join(lines) + "\r\n" + sources


@pytest.mark.parametrize("end", ["\r\n", "\n"])
async def test_a_browsers_offer_with_much_video_is_answered_as_the_one_without(end: str) -> None:
    offer = BROWSER.replace("BUNDLE 0 1", "BUNDLE 0 1 2 3") + video(2, 28) + video(3, 10)
    offer = offer.replace("\r\n", end)
    assert 12_000 < len(offer) < LONGEST and offer.count("a=rtpmap") > 76
    transport = Transport(UdpNetwork(), controlling=False)
    try:
        candidates = await transport.gather()
        plain, full = (sdp.answer(sdp.read(one), transport, candidates, 4711) for one in (BROWSER, offer))
    finally:
        await transport.close()
    assert full.partition("m=video")[0] == plain and full.count("m=video 0 ") == 2

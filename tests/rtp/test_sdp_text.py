"""SDP taken apart: what belongs to which medium, and what is no SDP."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.rtp.sdp_text import LONGEST, MOST_FORMATS, MOST_MEDIA, SdpError, check_formats, parse

HEAD = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\n"


def test_what_stands_before_the_first_medium_holds_for_all() -> None:
    text = (
        f"{HEAD}c=IN IP4 192.0.2.1\r\na=sendonly\r\na=group:BUNDLE 0 1\r\n"
        "m=audio 4000 RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=fmtp:101 16\r\n"
        "m=video 4002/2 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 192.0.2.9\r\nc=IN IP4 192.0.2.10\r\na=recvonly\r\n"
    )
    audio, video = parse(text)
    assert (audio.kind, audio.port, audio.proto, audio.formats) == ("audio", 4000, "RTP/AVP", ("0", "101"))
    assert (video.kind, video.port, video.proto, video.formats) == ("video", 4002, "UDP/TLS/RTP/SAVPF", ("96",))
    assert (audio.connection, video.connection) == ("IN IP4 192.0.2.1", "IN IP4 192.0.2.9"), "its first, or else theirs"
    assert audio.session is video.session and audio.session["sendonly"] == [""]
    assert audio.attributes["fmtp"] == ["101 0-15", "101 16"]
    assert video.all("recvonly") == [""] and video.all("sendonly") == audio.all("recvonly") == []


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\n\n", " \r\n"])
def test_lines_may_end_in_any_way(end: str) -> None:
    (audio,) = parse(f"{HEAD}m=audio 4000 RTP/AVP 0\r\na=ptime: 20 \r\n".replace("\r\n", end))
    assert (audio.port, audio.all("ptime")) == (4000, ["20"])


def test_a_description_without_media_has_none() -> None:
    assert parse(HEAD) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'does not begin with "v=0"'),
        ("\r\n\r\n", 'does not begin with "v=0"'),
        ("o=- 1 1\r\nv=0\r\n", 'does not begin with "v=0"'),
        ("INVITE sip:x SIP/2.0", 'does not begin with "v=0"'),
        (f"{HEAD}audio\r\n", 'Line 4 of this SDP is not of the form "letter=value"'),
        (f"{HEAD}M=audio 1 RTP/AVP 0\r\n", "Line 4"),
        (f"{HEAD} m=audio 1 RTP/AVP 0\r\n", "Line 4"),
        (f"{HEAD}m=audio\r\n", "An m= line of this SDP"),
        (f"{HEAD}m=audio 65536 RTP/AVP 0\r\n", "An m= line of this SDP"),
        (f"{HEAD}m=audio -1 RTP/AVP 0\r\n", "An m= line of this SDP"),
        (f"{HEAD}m=audio 1 RTP/AVP\r\n", "An m= line of this SDP"),
        (f"{HEAD}m=audio 1 RTP/AVP é\r\n", "An m= line of this SDP"),
        (f"{HEAD}m=audio ١ RTP/AVP 0\r\n", "An m= line of this SDP"),
    ],
)
def test_what_is_no_description_is_said_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(SdpError, match=said):
        parse(text)


def test_no_more_is_read_than_anybody_offers() -> None:
    medium = "m=audio 9 U 0\r\n"
    assert len(parse(HEAD + medium * MOST_MEDIA)) == MOST_MEDIA
    with pytest.raises(SdpError, match=f"{MOST_MEDIA + 1} media; at most {MOST_MEDIA}"):
        parse(HEAD + medium * (MOST_MEDIA + 1))
    filled = HEAD + "a=x\r\n" * 10_000
    assert parse(filled[:LONGEST].rpartition("a=")[0]) == ()
    with pytest.raises(SdpError, match=f"{LONGEST + 1} characters"):
        parse(filled[: LONGEST + 1])
    check_formats(MOST_FORMATS)
    with pytest.raises(SdpError, match=f"has {MOST_FORMATS + 1} formats"):
        check_formats(MOST_FORMATS + 1)
    with pytest.raises(SdpError, match=f"has {MOST_FORMATS + 1} formats"):
        parse(f"{HEAD}m=audio 9 U{' 0' * (MOST_FORMATS + 1)}\r\n")


@given(st.lists(st.sampled_from(["m=", "a=", "c=", "x", " ", "audio 9 U 0", "\r\n", "\n", "é", "0" * 6, "v=0"])))
def test_any_text_is_a_description_or_a_sentence(parts: list[str]) -> None:
    try:
        media = parse(HEAD + "".join(parts))
    except SdpError as error:
        assert str(error).endswith(".")
    else:
        assert all(medium.formats and 0 <= medium.port <= 65_535 for medium in media)

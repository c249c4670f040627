"""SRTP whose keys go in the SDP: both ends understand each other, and nobody else."""

import base64

import pylibsrtp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.rtp import rtcp, sdes
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.sdes import SUITES, Crypto, Srtp

KEY = base64.b64encode(bytes(range(30))).decode()
USUAL = "AES_CM_128_HMAC_SHA1_80"
PACKETS = [bytes(RtpPacket(0, n, n * 160, 7, bytes(160))) for n in range(65_530, 65_536)]


def pair(suite: str) -> tuple[Srtp, Srtp]:
    """Who offers and who answers, by the lines of their SDP."""
    (ours,) = [crypto for crypto in sdes.offered() if crypto.suite == suite]
    theirs = sdes.read(str(ours))
    assert theirs
    answerer = Srtp.answering(theirs)
    answer = sdes.read(str(answerer.ours))
    assert answer
    offerer = Srtp.answered((ours,), answer)
    assert offerer
    return offerer, answerer


@pytest.mark.parametrize("suite", SUITES)
def test_both_ends_understand_each_other(suite: str) -> None:
    near, far = pair(suite)
    report = rtcp.build(7, "name", None, (), goodbye=False)
    for one, other in ((near, far), (far, near)):
        for packet in PACKETS:
            sent = one.outbound.protect(packet)
            assert packet[12:] not in sent
            assert other.inbound.unprotect(sent) == packet
        assert other.inbound.unprotect_rtcp(one.outbound.protect_rtcp(report)) == report


@pytest.mark.parametrize("suite", SUITES)
def test_what_was_changed_or_comes_twice_is_refused(suite: str) -> None:
    near, far = pair(suite)
    sent = near.outbound.protect(PACKETS[0])
    for at in (3, 13, len(sent) - 1):
        with pytest.raises(pylibsrtp.Error):
            far.inbound.unprotect(sent[:at] + bytes([sent[at] ^ 1]) + sent[at + 1 :])
    assert far.inbound.unprotect(sent) == PACKETS[0]
    with pytest.raises(pylibsrtp.Error, match="replay"):
        far.inbound.unprotect(sent)
    with pytest.raises(pylibsrtp.Error):
        far.inbound.unprotect(PACKETS[1])


@pytest.mark.parametrize(
    "line",
    [
        f"1 {USUAL} inline:{KEY}",
        f"1 {USUAL} inline:{KEY}|2^31",
        f"1  {USUAL}  inline:{KEY}|1000 ",
        f"1 {USUAL} inline:{KEY} WSH=64 -EXTENSION",
    ],
)
def test_a_line_that_can_be_had(line: str) -> None:
    assert sdes.read(line) == Crypto(1, USUAL, bytes(range(30)))


@pytest.mark.parametrize(
    "line",
    [
        "",
        f"1 AES_256_CM_HMAC_SHA1_80 inline:{KEY}",
        f"1 {USUAL} inline:{KEY}|2^31|1:1",
        f"1 {USUAL} inline:{KEY}|1:1",
        f"1 {USUAL} inline:{KEY};inline:{KEY}",
        f"1 {USUAL} inline:{KEY} UNENCRYPTED_SRTP",
        f"1 {USUAL} inline:{KEY} KDR=1",
        f"1 {USUAL} inline:{KEY[:-4]}",
        f"1 {USUAL} inline:{KEY[:-1]}",
        f"1 {USUAL} clear:{KEY}",
        f"1234567890 {USUAL} inline:{KEY}",
        f"x {USUAL} inline:{KEY}",
    ],
)
def test_a_line_that_is_skipped(line: str) -> None:
    assert sdes.read(line) is None


@given(st.one_of(st.text(max_size=80), st.text(max_size=60).map(lambda text: f"1 {USUAL} inline:{text}")))
def test_any_line_is_read_or_skipped(line: str) -> None:
    crypto = sdes.read(line)
    assert crypto is None or len(crypto.key) == 30


def test_a_key_shows_in_no_log() -> None:
    crypto = Crypto(1, USUAL, bytes(range(30)))
    for text in (repr(crypto), f"{Srtp.answering(crypto)!r}"):
        assert KEY not in text and repr(bytes(range(30)))[2:20] not in text


def test_a_refresh_with_the_same_key_goes_on_and_another_key_begins_anew() -> None:
    theirs = Crypto(1, USUAL, bytes(30))
    before = Srtp.answering(theirs)
    assert Srtp.answering(Crypto(1, USUAL, bytes(30)), before) is before
    after = Srtp.answering(Crypto(1, USUAL, bytes(range(30))), before)
    assert after.ours.key != before.ours.key


def test_an_answer_takes_what_was_offered() -> None:
    ours = sdes.offered()
    assert len({crypto.key for crypto in ours}) == len(SUITES) and ours[0].suite == USUAL
    second = Crypto(2, ours[1].suite, bytes(30))
    taken = Srtp.answered(ours, second)
    assert taken and taken.ours is ours[1]
    assert Srtp.answered(ours, Crypto(2, ours[0].suite, bytes(30))) is None

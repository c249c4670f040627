"""What a datagram is, at a check_datagram."""

import pytest

from tests.attacks.sip_junk import costly
from voicepipe.ingress.sip.datagram_check import COMMAS, LINES, LONGEST, SEMICOLONS, check_datagram


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_what_would_cost_the_parser_seconds_is_known_at_a_glance(number: int) -> None:
    seen = check_datagram(costly("127.0.0.1")[number])
    assert seen and seen.excessive


HEAD = (
    b"INVITE sip:front@pop.example SIP/2.0\r\nVia: SIP/2.0/UDP a.example;branch=z9hG4bK1, SIP/2.0/UDP b\r\n"
    b"From: Ann <sip:ann@a.example>;tag=x1\r\nTo: <sip:front@pop.example>;tag=y2\r\nCall-ID: abc\r\nCSeq: 7 INVITE\r\n"
)


def test_what_a_request_says_at_a_glance() -> None:
    seen = check_datagram(HEAD + b"Contact: <sip:ann@a.example>\r\n\r\nv=0\xff")
    assert seen
    assert (seen.method, seen.version, seen.call_id, seen.cseq) == ("INVITE", "SIP/2.0", "abc", (7, "INVITE"))
    assert (seen.from_tag, seen.to_tag, seen.branch) == ("x1", "y2", "z9hG4bK1")
    assert "Contact" not in seen.headers and seen.text.endswith("\r\n\r\nv=0\xff") and not seen.excessive


def test_a_response_has_no_method() -> None:
    seen = check_datagram(b"SIP/2.0 200 OK\r\nCSeq: 1 BYE\r\n\r\n")
    assert seen and (seen.method, seen.version, seen.cseq) == ("", "SIP/2.0", (1, "BYE"))
    assert (seen.call_id, seen.to_tag, seen.branch) == ("", "", "")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n\r\n",
        b"\x80\x00" + bytes(200),
        b"GET / HTTP/1.1\r\nCSeq: 1 GET\r\n\r\n",
        b"INVITE\r\nCSeq: 1 INVITE\r\n\r\n",
        b"SIP/2.0/UDP x SIP/2.0\r\nCSeq: 1 INVITE\r\n\r\n",
        HEAD.replace(b"CSeq", b"Sequence") + b"\r\n",
        b"CSeq: 1 INVITE sip:a@b SIP/2.0",
    ],
)
def test_junk_is_no_sip(data: bytes) -> None:
    assert check_datagram(data) is None


@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r"])
def test_lines_end_in_any_way_and_may_be_folded(end: bytes) -> None:
    folded = HEAD.replace(b"Call-ID: abc", b"i :\r\n  abc").replace(b"CSeq: 7", b"cSEQ\t:7").replace(b"\r\n", end)
    seen = check_datagram(b"\r\n" + folded + end)
    assert seen and (seen.call_id, seen.cseq) == ("abc", (7, "INVITE"))


@pytest.mark.parametrize("cseq", [b"x INVITE", b"-1 INVITE", b"1" * 12 + b" INVITE", "٣ INVITE".encode(), b""])
def test_a_number_that_is_none(cseq: bytes) -> None:
    seen = check_datagram(HEAD.replace(b"7 INVITE", cseq) + b"\r\n")
    assert seen and seen.cseq == (-1, "")


@pytest.mark.parametrize(
    ("more", "excessive"),
    [
        (b"Subject: x\r\n" * (LINES - 7), False),
        (b"Subject: x\r\n" * LINES, True),
        (b"Subject: " + b"," * (COMMAS - 1) + b"\r\n", False),
        (b"Subject: " + b"," * COMMAS + b"\r\n", True),
        (b"Subject: " + b";" * SEMICOLONS + b"\r\n", True),
        (b"Subject: " + b"x" * LONGEST + b"\r\n", True),
    ],
    ids=["lines", "more lines", "commas", "more commas", "semicolons", "length"],
)
def test_what_would_cost_much_is_not_to_be_parsed(more: bytes, excessive: bool) -> None:
    seen = check_datagram(HEAD + more + b"\r\n")
    assert seen and seen.excessive is excessive


def test_names_of_old_telephones_are_read_in_their_own_letters() -> None:
    seen = check_datagram(HEAD.replace(b"Ann", b"J\xfcrgen") + b"\r\n")
    assert seen and seen.first("From").startswith("Jürgen <sip:")

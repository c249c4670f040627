"""What a datagram is, at a glance, and what is said to requests that are not parsed."""

import pytest

from tests.attacks.sip_junk import costly
from voicepipe.ingress.sip.datagram_check import COMMAS, LINES, LONGEST, SEMICOLONS, check_datagram, stateless_answer


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


TO_ANSWER = "v: SIP/2.0/UDP 192.0.2.1;;,\r\nf: <sip:a@b>;tag=1\r\nTo:\r\n  <sip:c@d\r\ni: 17\r\nCSeq: 1 INVITE\r\n"
TO_ANSWER_BUT_VIA = TO_ANSWER.partition("\r\n")[2]
SOURCE = "192.0.2.9", 5066


def refusal(text: str) -> tuple[str, tuple[str, int]] | None:
    seen = check_datagram(text.encode())
    return stateless_answer(seen, SOURCE, 400, "Bad Request", [("X", "y")]) if seen else None


def test_a_request_is_told_with_what_it_brought() -> None:
    said = refusal(f"INVITE sip:c@d SIP/2.0\r\n{TO_ANSWER}\r\nbody")
    assert said is not None and said[0].split("\r\n") == [
        "SIP/2.0 400 Bad Request", "Via: SIP/2.0/UDP 192.0.2.1;;;received=192.0.2.9,", "From: <sip:a@b>;tag=1",
        "To: <sip:c@d;tag=stateless", "Call-ID: 17", "CSeq: 1 INVITE", "X: y", "Server: voicepipe",
        "Content-Length: 0", "", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("via", "returned", "target"),
    [
        ("h.example:5070;rport;branch=b", "h.example:5070;rport=5066;branch=b;received=192.0.2.9", SOURCE),
        ("h.example:5070;branch=b", "h.example:5070;branch=b;received=192.0.2.9", ("192.0.2.9", 5070)),
        ("h.example;received=10.9.9.9", "h.example;received=192.0.2.9", ("192.0.2.9", 5060)),
        ("[2001:db8::1]:99;rport=1;a, b", "[2001:db8::1]:99;rport=5066;a;received=192.0.2.9, b", SOURCE),
    ],
)
def test_an_answer_goes_back_to_the_host_that_asked(via: str, returned: str, target: tuple[str, int]) -> None:
    said = refusal(f"OPTIONS sip:c@d SIP/2.0\r\nVia: SIP/2.0/UDP {via}\r\n{TO_ANSWER_BUT_VIA}\r\n")
    assert said is not None
    assert said[0].split("\r\n")[1] == f"Via: SIP/2.0/UDP {returned}" and said[1] == target


@pytest.mark.parametrize("empty", ["", ";tag", ";tag=", "; Tag = "])
def test_an_empty_tag_is_none(empty: str) -> None:
    said = refusal(f"OPTIONS sip:c@d SIP/2.0\r\n{TO_ANSWER.replace('<sip:c@d', f'<sip:c@d>{empty}')}\r\n")
    assert said and "\r\nTo: <sip:c@d>;tag=stateless\r\n" in said[0]


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_lines_end_in_any_way(end: str) -> None:
    said = refusal(f"OPTIONS sip:c@d SIP/2.0\r\n{TO_ANSWER}\r\n".replace("\r\n", end))
    assert said and said[0].startswith("SIP/2.0 400 ") and "\r\nCSeq: 1 INVITE\r\n" in said[0]


def test_another_version_is_said() -> None:
    said = refusal(f"OPTIONS sip:c@d SIP/7.0\r\n{TO_ANSWER}\r\n")
    assert said and said[0].startswith("SIP/2.0 505 Version Not Supported\r\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\r\n\r\n",
        "nonsense",
        f"ACK sip:c@d SIP/2.0\r\n{TO_ANSWER}\r\n",
        f"SIP/2.0 200 OK SIP/2.0\r\n{TO_ANSWER}\r\n",
        "INVITE sip:c@d SIP/2.0\r\nVia: SIP/2.0/UDP a\r\n\r\n",
    ],
)
def test_what_cannot_be_answered_is_not(text: str) -> None:
    assert refusal(text) is None

"""What is said to requests that are not parsed: strangers', and those that cannot be read."""

import pytest

from voicepipe.ingress.sip.datagram_check import check_datagram
from voicepipe.ingress.sip.stateless import answer

HEAD = "v: SIP/2.0/UDP 192.0.2.1;;,\r\nf: <sip:a@b>;tag=1\r\nTo:\r\n  <sip:c@d\r\ni: 17\r\nCSeq: 1 INVITE\r\n"
REST = HEAD.partition("\r\n")[2]
SOURCE = "192.0.2.9", 5066


def refusal(text: str) -> tuple[str, tuple[str, int]] | None:
    seen = check_datagram(text.encode())
    return answer(seen, SOURCE, 400, "Bad Request", [("X", "y")]) if seen else None


def test_a_request_is_told_with_what_it_brought() -> None:
    said = refusal(f"INVITE sip:c@d SIP/2.0\r\n{HEAD}\r\nbody")
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
    said = refusal(f"OPTIONS sip:c@d SIP/2.0\r\nVia: SIP/2.0/UDP {via}\r\n{REST}\r\n")
    assert said is not None
    assert said[0].split("\r\n")[1] == f"Via: SIP/2.0/UDP {returned}" and said[1] == target


@pytest.mark.parametrize("empty", ["", ";tag", ";tag=", "; Tag = "])
def test_an_empty_tag_is_none(empty: str) -> None:
    said = refusal(f"OPTIONS sip:c@d SIP/2.0\r\n{HEAD.replace('<sip:c@d', f'<sip:c@d>{empty}')}\r\n")
    assert said and "\r\nTo: <sip:c@d>;tag=stateless\r\n" in said[0]


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_lines_end_in_any_way(end: str) -> None:
    said = refusal(f"OPTIONS sip:c@d SIP/2.0\r\n{HEAD}\r\n".replace("\r\n", end))
    assert said and said[0].startswith("SIP/2.0 400 ") and "\r\nCSeq: 1 INVITE\r\n" in said[0]


def test_another_version_is_said() -> None:
    said = refusal(f"OPTIONS sip:c@d SIP/7.0\r\n{HEAD}\r\n")
    assert said and said[0].startswith("SIP/2.0 505 Version Not Supported\r\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\r\n\r\n",
        "nonsense",
        f"ACK sip:c@d SIP/2.0\r\n{HEAD}\r\n",
        f"SIP/2.0 200 OK SIP/2.0\r\n{HEAD}\r\n",
        "INVITE sip:c@d SIP/2.0\r\nVia: SIP/2.0/UDP a\r\n\r\n",
    ],
)
def test_what_cannot_be_answered_is_not(text: str) -> None:
    assert refusal(text) is None

"""Messages with every header as it was written."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingress.sip.grammar import Grammar, Made
from tests.ingress.sip.peer import Said
from voicepipe.ingress.sip.datagram_check import check_datagram, stateless_answer
from voicepipe.ingress.sip.header_text import SipError
from voicepipe.ingress.sip.kept_messages import SHORT_OF, KeptRequest, KeptResponse, Via

requests = st.integers(0, 2**64).map(lambda seed: Grammar(Random(seed)).request())
PEER = "192.0.2.9", 5070


@settings(max_examples=400, deadline=None)
@given(requests)
def test_every_answer_repeats_what_was_asked(made: Made) -> None:
    """RFC 3261, 8.2.6.2: by way of a transaction, and without one."""
    seen = check_datagram(made.data)
    assert seen
    told = Said.parse(KeptRequest(seen.text).genResponse(200, "OK").localStr((PEER, "udp")).encode())
    stateless = stateless_answer(seen, PEER, 401, "Unauthorized")
    assert stateless
    for said in (told, Said.parse(stateless[0].encode())):
        assert said.header("from") == made.from_text
        assert (said.header("call-id"), said.method) == (made.call_id, made.method)


@pytest.mark.parametrize(
    "params",
    [
        ";Branch=z9hG4bKa;X=1;x=2;alias",
        ";branch=z9hG4bKa",
        ';rport;branch=z9hG4bKa;k="a;b"',
        ";rport=;Received=1;ttl=1",
    ],
)
def test_a_via_is_repeated_as_it_was_written(params: str) -> None:
    """But for what we saw of its sender."""
    text = f"SIP/2.0/UDP h.example:5070{params}"
    via = Via(text)
    assert str(via) == str(via.getCopy()) == text
    via.params |= {"received": "192.0.2.1", "rport": "9"}
    assert via.getTAddr() == ("192.0.2.1", 9)
    others = [part for part in params.split(";")[1:] if not part.lower().startswith(("received", "rport"))]
    told = str(via).split(";")[1:]
    assert [part for part in told if not part.startswith(("received", "rport"))] == others
    assert {"received=192.0.2.1", "rport=9"} <= set(told) and len(told) == len(others) + 2


HEAD = (
    "INVITE tel:+4930;phone-context=a.example sip/2.0\r\nv: SIP/2.0/UDP a;branch=z9hG4bK1,SIP/2.0/UDP b:99\r\n"
    "From: Ann <sip:ann@a>;Tag=x1\r\nt: tel:+49\r\nCall-ID: abc\r\nCSeq: 7 INVITE\r\nX-Odd:  a ; B=2 \r\n"
)


def test_headers_stay_as_they_were_written() -> None:
    request = KeptRequest(f"{HEAD}Content-Length: 3\r\n\r\nv=0 and more")
    kept = [(header.name, str(header.body)) for header in request.headers if header.name not in ("cseq", "call-id")]
    assert kept == [
        ("via", "SIP/2.0/UDP a;branch=z9hG4bK1"), ("via", "SIP/2.0/UDP b:99"), ("from", "Ann <sip:ann@a>;Tag=x1"),
        ("to", "tel:+49"), ("x-odd", "a ; B=2"),
    ]  # fmt: skip
    assert (request.method, str(request.ruri), request.sipver) == (
        "INVITE", "tel:+4930;phone-context=a.example", "SIP/2.0",
    )  # fmt: skip
    assert request.content == b"v=0", "as long as it says"


def test_a_party_gets_our_tag_once() -> None:
    request = KeptRequest(f"{HEAD}\r\n")
    to, sender = request.getHFBody("to"), request.getHFBody("from")
    assert (sender.getTag(), to.getTag()) == ("x1", None)
    for party in (to, sender):
        party.setTag("ours")
    assert (str(to), str(sender)) == ("tel:+49;tag=ours", "Ann <sip:ann@a>;Tag=x1")
    to.genTag()
    assert to.getTag() == "ours"


@pytest.mark.parametrize(
    ("change", "to", "said"),
    [
        ("INVITE tel:+4930;phone-context=a.example", "INVITE", "its first line"),
        ("sip/2.0", "SIP/3.0", "it is SIP/3.0, not SIP/2.0"),
        ("7 INVITE", "7 BYE", "its CSeq is of a BYE"),
        ("7 INVITE", "4294967296 INVITE", "is no number below 2"),
        ("7 INVITE", "x INVITE", "is no number below 2"),
        ("Call-ID: abc\r\n", "", "it has no call-id"),
        ("Call-ID: abc", "Call-ID: abc\r\ni: abc", "it has two headers call-id"),
        ("SIP/2.0/UDP a;", "nonsense;", "Via: .* cannot be read"),
        ("X-Odd:", "X-Odd", "is no header"),
        ("X-Odd:", "Content-Length: x\r\nX-Odd:", "Content-Length: 'x' is no number"),
        ("X-Odd:", "Content-Length: 7\r\nX-Odd:", "its body has 0 bytes, and should have 7"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(change: str, to: str, said: str) -> None:
    assert change in HEAD
    with pytest.raises(SipError, match=said):
        KeptRequest(f"{HEAD.replace(change, to)}\r\n")


def test_a_telephone_that_counts_its_sdp_a_little_wrong_is_forgiven() -> None:
    assert KeptRequest(f"{HEAD}Content-Length: {3 + SHORT_OF}\r\n\r\nv=0").content == b"v=0"


@pytest.mark.parametrize(
    ("via", "address", "goes_to"),
    [
        ("SIP/2.0/UDP a.example", ("a.example", None), ("a.example", 5060)),
        ("SIP/2.0/UDP a.example:99;rport", ("a.example", 99), ("a.example", 99)),
        ("SIP / 2.0 / UDP [2001:db8::1] : 99", ("[2001:db8::1]", 99), ("[2001:db8::1]", 99)),
        ("SIP/2.0/UDP a;received=192.0.2.1;rport=7", ("a", None), ("192.0.2.1", 7)),
    ],
)
def test_where_answers_go(via: str, address: tuple[str, int | None], goes_to: tuple[str, int]) -> None:
    made = Via(via)
    assert (made.getAddr(), made.getTAddr()) == (address, goes_to)


def test_a_response_has_a_code_and_a_reason() -> None:
    rest = HEAD.partition("\r\n")[2]
    said = KeptResponse(f"SIP/2.0 486 Busy Here\r\n{rest}\r\nbody")
    assert (said.scode, said.reason, said.content) == (486, "Busy Here", b"")
    assert KeptResponse(f"SIP/2.0 200\r\n{rest}\r\n").reason == "Unspecified"
    for start in ("SIP/2.0 700 No", "SIP/2.0 OK", "SIP/3.0 200 OK", "HTTP/1.1 200 OK"):
        with pytest.raises(SipError, match="is not SIP/2.0 CODE REASON"):
            KeptResponse(f"{start}\r\n{rest}\r\n")

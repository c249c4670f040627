"""SIP messages as they are read."""

import pytest

from voicepipe.ingress.sip.kept_messages import KeptRequest, KeptResponse
from voicepipe.ingress.sip.message import IncomingResponse, SipMessage, printable

HEAD = (
    "v: SIP/2.0/UDP a;branch=z9hG4bK1\r\nFrom: Ann <sip:ann@a>;tag=x1\r\nTo: <sip:front@b>\r\nCall-ID: abc\r\n"
    "CSeq: 7 INVITE\r\n"
)


def message(more: str = "", body: str = "") -> SipMessage:
    return SipMessage(KeptRequest(f"INVITE sip:front@b SIP/2.0\r\n{HEAD}{more}\r\n{body}"))


def test_what_a_message_says() -> None:
    said = message()
    assert (said.call_id, said.cseq, said.from_tag, said.to_tag) == ("abc", (7, "INVITE"), "x1", "")
    assert (said.header("contact"), said.headers("contact"), said.body, said.sdp) == ("", [], "", None)


def test_headers_of_one_name_in_order_however_they_are_written() -> None:
    said = message("Route: <sip:a;lr>, <sip:b;lr>\r\nRecord-Route: <sip:x>\r\nroute: <sip:c>\r\n")
    assert said.headers("route") == ["<sip:a;lr>", "<sip:b;lr>", "<sip:c>"]
    assert said.header("route") == "<sip:a;lr>"


def test_tokens_of_a_list() -> None:
    said = message("k: Timer, 100rel\r\nSupported: path,,\r\n")
    assert said.listed("supported") == {"timer", "100rel", "path"} and said.listed("require") == set()


def test_headers_of_the_operators_own() -> None:
    said = message("x-account: 42\r\nX-caller-NAME: Ann\r\nSubject: x\r\n")
    assert said.extra() == {"X-Account": "42", "X-Caller-Name": "Ann"}


def test_the_body_and_its_type() -> None:
    said = message("c: Application/SDP ;charset=utf-8\r\n", "v=0\r\n")
    assert (said.content_type, said.sdp, said.body) == ("application/sdp", "v=0\r\n", "v=0\r\n")
    assert message("Content-Type: text/plain\r\n", "\xff").body == "\ufffd"


@pytest.mark.parametrize(
    ("text", "shown"), [("INV\x1b[31mITE\r\nX", "INV?[31mITE??X"), ("Zoë", "Zoë"), ("x" * 1000, "x" * 200)]
)
def test_what_somebody_sent_is_one_short_line_in_the_log(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_response_has_its_code() -> None:
    said = IncomingResponse(KeptResponse(f"SIP/2.0 486 Busy Here\r\n{HEAD}\r\n"))
    assert (said.code, said.reason, said.cseq) == (486, "Busy Here", (7, "INVITE"))

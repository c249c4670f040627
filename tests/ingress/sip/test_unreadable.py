"""What is said to requests that cannot be read."""

import pytest

from voicepipe.ingress.sip.unreadable import refusal

HEAD = "v: SIP/2.0/UDP 192.0.2.1;;,\r\nf: <sip:a@b>;tag=1\r\nTo:\r\n  <sip:c@d\r\ni: 17\r\nCSeq: 1 INVITE\r\n"


def test_a_request_is_told_with_what_it_brought() -> None:
    said = refusal(f"INVITE sip:c@d SIP/2.0\r\n{HEAD}\r\nbody")
    assert said is not None and said.split("\r\n") == [
        "SIP/2.0 400 Bad Request", "Via: SIP/2.0/UDP 192.0.2.1;;,", "From: <sip:a@b>;tag=1",
        "To: <sip:c@d;tag=unreadable", "Call-ID: 17", "CSeq: 1 INVITE", "Server: voicepipe", "Content-Length: 0", "",
        "",
    ]  # fmt: skip


def test_another_version_is_said() -> None:
    assert (refusal(f"OPTIONS sip:c@d SIP/7.0\r\n{HEAD}\r\n") or "").startswith("SIP/2.0 505 Version Not Supported\r\n")


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

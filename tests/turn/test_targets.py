"""Where callers can be put through to, and how it is asked for."""

import pytest

from voicepipe.conversation.transfer import is_target, number, sip_uri


@pytest.mark.parametrize(
    ("target", "dialled", "uri"),
    [
        ("+4930123456", "+4930123456", "sip:+4930123456@pbx.example"),
        ("+49 (30) 12-34", "+49301234", "sip:+49301234@pbx.example"),
        ("+49 (0)30 12.34", "+49301234", "sip:+49301234@pbx.example"),
        ("(030) 12/34", "0301234", "sip:0301234@pbx.example"),
        ("200", "200", "sip:200@pbx.example"),
        ("*72#", "*72#", "sip:*72%23@pbx.example"),
        ("tel:+1-415-555-0123;ext=7", "+14155550123", "sip:+14155550123@pbx.example"),
        ("TEL:+14155550123", "+14155550123", "sip:+14155550123@pbx.example"),
        ("sip:ann@example.com;transport=tls", "", "sip:ann@example.com;transport=tls"),
        ("SIPS:ann@example.com?x=1&y=2", "", "SIPS:ann@example.com?x=1&y=2"),
    ],
)
def test_what_networks_are_asked_for(target: str, dialled: str, uri: str) -> None:
    assert is_target(target)
    assert number(target) == dialled
    assert sip_uri(target, "pbx.example") == uri


@pytest.mark.parametrize(
    "text",
    ["", "+", "ann", "ann@example.com", "tel:", "tel:ann", "sip:", "https://example.com", "sip:a@b>\r\nX: y", "()",
     "+( )", "sip:a b@c", "tel:+1<2>", "+1\n2", "sip:\u00fc@example.com", "\u0661\u0662\u0663", "1" * 60],
)  # fmt: skip
def test_what_is_none(text: str) -> None:
    assert not is_target(text)

"""Where callers can be put through to, and the tool by which a model has that done."""

import pytest

from voicepipe.agent import Agent
from voicepipe.base.errors import TransferFailed
from voicepipe.conversation.own_tools import is_target, number, sip_uri, target, transfer_tool

AGENT = Agent("desk", transfer={"ann": "sip:ann@example.com", "bar": "tel:+14155550123"})


def test_the_model_is_told_the_names_and_not_the_addresses() -> None:
    tool = transfer_tool(AGENT)
    assert tool.parameters["properties"]["to"]["enum"] == ["ann", "bar"]
    assert "ann, bar" in tool.description and "@" not in str(tool)


def test_a_name_is_looked_up() -> None:
    assert target(AGENT, '{"to": "bar"}') == "tel:+14155550123"


@pytest.mark.parametrize(
    "arguments", ["", "{}", "[]", '{"to": 3}', '{"to": "eve"}', '{"to": "sip:eve@example.com"}', "{" * 9999]
)
def test_nobody_else_can_be_reached(arguments: str) -> None:
    with pytest.raises(TransferFailed, match="`to` must be one of: ann, bar"):
        target(AGENT, arguments)


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
def test_what_is_no_target(text: str) -> None:
    assert not is_target(text)

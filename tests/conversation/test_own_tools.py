"""Where callers can be put through to, and keys that can be pressed: the tools by which a model has that done."""

import pytest

from voicepipe.agent import Agent
from voicepipe.base.errors import ToolError, TransferFailed
from voicepipe.conversation.own_tools import (
    SEND_KEYS_TOOL,
    is_target,
    keys_to_send,
    language_wanted,
    number,
    partly_sent,
    set_language_tool,
    sip_uri,
    target,
    transfer_tool,
)
from voicepipe.tools import tool_arguments

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


@pytest.mark.parametrize("keys", ["1", "1w2#", "W*ABCD", "0" * 32, "w1"])
def test_keys_that_can_be_pressed(keys: str) -> None:
    assert keys_to_send(f'{{"keys": "{keys}"}}') == keys


@pytest.mark.parametrize(
    "arguments",
    ["", "{}", "[]", '{"keys": 1}', '{"keys": ""}', '{"keys": "w"}', '{"keys": "one"}', '{"keys": "1 2"}',
     '{"keys": "1\\n"}', '{"keys": "a"}', '{"keys": "' + "1" * 33 + '"}', "{" * 9999],
)  # fmt: skip
def test_anything_else_is_explained(arguments: str) -> None:
    with pytest.raises(ToolError, match="`keys` must be a text of 1 to 32 of"):
        keys_to_send(arguments)


def test_the_schema_of_keys_can_be_read_by_models() -> None:
    assert not tool_arguments.problem(SEND_KEYS_TOOL.parameters)


def test_what_was_sent_of_keys_is_told() -> None:
    assert partly_sent("1w2#", "1w", "interrupted") == 'Error: interrupted: "1w" was sent, and "2#" was not'
    assert partly_sent("1w2#", "", "no telephone") == "Error: not sent: no telephone"


def test_a_language_is_one_of_the_agent_s() -> None:
    tool = set_language_tool(("en", "fr-CA"))
    assert tool.parameters["properties"]["language"]["enum"] == ["en", "fr-CA"] and "fr-CA: French" in tool.description
    assert language_wanted('{"language": "fr-CA"}', ("en", "fr-CA")) == "fr-CA"
    for wrong in ('{"language": "de"}', "{}", "fr-CA", '{"language": 1}'):
        with pytest.raises(ToolError, match="must be one of: en, fr-CA"):
            language_wanted(wrong, ("en", "fr-CA"))

"""The tool by which a model has its caller put through."""

import pytest

from voicepipe.agent import Agent
from voicepipe.base.errors import TransferFailed
from voicepipe.conversation.transfer import target, transfer_tool

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

"""The tool for handing over, and what the other agent reads."""

import pytest

from voicepipe.agent import HandOver, Keep
from voicepipe.conversation.hand_over import hand_over_tool, kept, named_in, told, wanted
from voicepipe.conversation.prompt import Message, ToolCall

SYSTEM = Message("system", "You are the desk.")
FIRST = (Message("user", "I am Ann."), Message("assistant", "Hello Ann."))
LAST = (
    Message("user", "I want to book."),
    Message("assistant", "My colleague does that."),
    Message("assistant", call=ToolCall("c1", "hand_over", '{"to": "booking"}')),
    Message("tool", "You are booking now.", call_id="c1"),
)


def test_the_tool_names_whom_and_when() -> None:
    tool = hand_over_tool({"booking": HandOver("The caller wants to book."), "bills": HandOver("Invoices.")})
    assert "booking: The caller wants to book.; bills: Invoices." in tool.description
    assert tool.parameters["properties"] == {"to": {"type": "string", "enum": ["booking", "bills"]}}


def test_a_summary_is_asked_for_where_one_is_kept() -> None:
    tool = hand_over_tool({"booking": HandOver("Booking.", "summary")})
    assert tool.parameters["required"] == ["to", "summary"]


@pytest.mark.parametrize(("keep", "read"), [("all", FIRST + LAST), ("summary", LAST), ("last", LAST)])
def test_what_the_other_agent_reads(keep: Keep, read: tuple[Message, ...]) -> None:
    assert tuple(kept((SYSTEM, *FIRST, *LAST), keep)) == read
    assert tuple(kept((*FIRST, *LAST), keep)) == read


def test_a_call_in_which_nobody_has_spoken_is_read_whole() -> None:
    greeting = (Message("assistant", "Good morning."),)
    assert kept(greeting, "last") == greeting


@pytest.mark.parametrize("arguments", ["", "{", '{"to": 5}', '{"for": "x"}', "[" * 100_000, '"booking"', "\ud800"])
def test_a_call_that_names_nobody(arguments: str) -> None:
    assert wanted(ToolCall("c1", "hand_over", arguments)) == ""


def test_whom_a_call_names() -> None:
    assert wanted(ToolCall("c1", "hand_over", '{"to": "booking", "summary": "A table."}')) == "booking"


@pytest.mark.parametrize(
    ("result", "name"),
    [
        ('{"hand_over": "bills"}', "bills"), ('{"hand_over": "bills", "balance": 5}', "bills"),
        ('{"hand_over": 1}', ""), ("bills", ""), ("", ""), ('{"to": "bills"}', ""), ("{", ""), ("{" * 100_000, ""),
    ],
)  # fmt: skip
def test_a_result_that_hands_over(result: str, name: str) -> None:
    assert named_in(result) == name


def test_the_one_who_takes_over_is_told() -> None:
    assert told("bills", last=False).startswith("You are bills now")
    assert "cannot hand over again" in told("bills", last=True)

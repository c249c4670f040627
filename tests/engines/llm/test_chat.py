"""Prompts in OpenAI's chat form, strict enough for every template."""

import pytest

from voicepipe.agent import ToolSpec
from voicepipe.conversation.prompt import Message, Prompt, ToolCall
from voicepipe.engines.llm.chat import CALL_BEGINS, NO_RESULT, choice, messages, tools

CALL = ToolCall("call_1", "add", '{"a": 2}')
CALLED = Message("assistant", call=CALL)
RESULT = Message("tool", "5", call_id="call_1")
BEGINS = ("user", CALL_BEGINS)


def rendered(*prompt: Message) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages(Prompt(prompt))]


def test_a_conversation() -> None:
    prompt = (Message("system", "Be brief."), Message("user", "Hello."), Message("assistant", "Yes?"))
    assert rendered(*prompt) == [("system", "Be brief."), ("user", "Hello."), ("assistant", "Yes?")]


@pytest.mark.parametrize("prompt", [(), (Message("assistant", ""),), (RESULT,)])
def test_where_nobody_has_said_anything_the_caller_stands_there(prompt: tuple[Message, ...]) -> None:
    assert rendered(*prompt) == [BEGINS]


def test_the_user_speaks_first_also_where_the_agent_greets() -> None:
    greeted = rendered(Message("system", "Be brief."), Message("assistant", "Good evening."), Message("user", "Hello."))
    assert greeted == [("system", "Be brief."), BEGINS, ("assistant", "Good evening."), ("user", "Hello.")]


def test_no_words_are_words_of_the_caller_too() -> None:
    assert rendered(Message("user", "")) == [("user", "")]


def test_turns_alternate() -> None:
    both = [Message("user", "One."), Message("user", ""), Message("user", "Two."), Message("assistant", "Three.")]
    assert rendered(*both, Message("assistant", "Four.")) == [("user", "One. Two."), ("assistant", "Three. Four.")]


def test_all_that_the_system_says_stands_first() -> None:
    prompt = (Message("system", "Be brief."), Message("user", "Hello."), Message("system", "It rains."))
    assert rendered(*prompt) == [("system", "Be brief.\n\nIt rains."), ("user", "Hello.")]


def test_a_call_and_its_result() -> None:
    chat = messages(Prompt((Message("user", "Add."), Message("assistant", "Let me see."), CALLED, RESULT)))
    assert chat[1] == {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}],
    }
    assert chat[2] == {"role": "tool", "tool_call_id": "call_1", "content": "5"}


def test_results_follow_their_calls() -> None:
    other = Message("assistant", call=ToolCall("call_2", "add", "{}"))
    prompt = (Message("user", "Add."), CALLED, other, Message("user", "Well?"), RESULT, Message("user", "Hello?"))
    assert rendered(*prompt) == [
        ("user", "Add."), ("assistant", ""), ("tool", "5"), ("assistant", ""), ("tool", NO_RESULT),
        ("user", "Well? Hello?"),
    ]  # fmt: skip


@pytest.mark.parametrize("written", ["", "{", "[1]", '"a"'])
def test_malformed_arguments_are_not_passed_on(written: str) -> None:
    chat = messages(Prompt((Message("assistant", call=ToolCall("call_1", "add", written)),)))
    assert chat[1]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("written", "sent"), [("", "unnamed"), ("look up", "look_up"), ("größe", "gr__e"), ("a" * 90, "a" * 64)]
)
def test_names_that_servers_refuse_are_not_passed_on(written: str, sent: str) -> None:
    chat = messages(Prompt((Message("assistant", call=ToolCall("call_1", written, "{}")),)))
    assert chat[1]["tool_calls"][0]["function"]["name"] == sent


def test_tools() -> None:
    prompt = Prompt((), (ToolSpec("hang_up", "Ends the call."),))
    nothing = {"type": "object", "properties": {}}
    function = {"name": "hang_up", "description": "Ends the call.", "parameters": nothing}
    assert tools(prompt) == [{"type": "function", "function": function}]
    assert tools(Prompt(())) is None
    assert tools(Prompt((), prompt.tools, tool_choice="none")) is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("none", "none"),
        ("required", "required"),
        ("hang_up", {"type": "function", "function": {"name": "hang_up"}}),
        ("unknown", "auto"),
    ],
)
def test_the_choice_of_tools(asked: str, said: object) -> None:
    assert choice(Prompt((), (ToolSpec("hang_up"),), tool_choice=asked)) == said

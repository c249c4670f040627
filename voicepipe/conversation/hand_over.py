"""An agent hands its caller over to another agent: the tool by which a model does so, and what the other one reads."""

from collections.abc import Mapping, Sequence

import msgspec

from voicepipe.agent import HandOver, Keep, ToolSpec
from voicepipe.conversation.prompt import Message, ToolCall

HAND_OVER = "hand_over"
MOST = 2
"""Hand-overs in one reply: to another agent, and back or on. Then the caller speaks first, or two agents could pass
them to and fro for ever."""


class _Arguments(msgspec.Struct):
    """The arguments of `hand_over`."""

    to: str


class _Result(msgspec.Struct):
    """A tool's result that hands the caller over."""

    hand_over: str


def hand_over_tool(entries: Mapping[str, HandOver]) -> ToolSpec:
    """The tool that the model is offered. `entries`: the agents that can take over now, of the agent's `hand_over`."""
    cases = "; ".join(f"{name}: {entry.when}" for name, entry in entries.items())
    properties = {"to": {"type": "string", "enum": list(entries)}}
    required = ["to"]
    if any(entry.keep == "summary" for entry in entries.values()):
        about = "What the caller wants and what is known of them already, for the one who takes over."
        properties["summary"] = {"type": "string", "description": about}
        required.append("summary")
    return ToolSpec(
        HAND_OVER,
        "Hand the caller over to a colleague, who goes on with this call at once. Call nothing else with it, and say "
        f"one short sentence before at most. To whom, and when: {cases}",
        {"type": "object", "required": required, "properties": properties},
    )


def wanted(call: ToolCall) -> str:
    """The agent that a call of `hand_over` names; empty: none that can be read."""
    try:
        return msgspec.json.decode(call.arguments or "{}", type=_Arguments).to
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return ""


def named_in(result: str) -> str:
    """The agent that a tool's result hands the caller over to: {"hand_over": "billing"}. Empty: none."""
    try:
        return msgspec.json.decode(result, type=_Result).hand_over if result.startswith("{") else ""
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return ""


def told(name: str, *, last: bool) -> str:
    """The result of `hand_over`, as the agent `name` reads it, which has taken over. `last`: it cannot hand over before
    the caller has spoken."""
    said = f"You are {name} now: the caller was handed over to you. Go on where the conversation stands."
    return f"{said} You cannot hand over again before the caller has said something." if last else said


def kept(messages: Sequence[Message], keep: Keep) -> Sequence[Message]:
    """What the agent that takes over reads of a prompt's `messages`, without the instructions of the one before. Tools
    that ran since the caller's last words are part of those; so is the summary, which is an argument of the call."""
    if messages and messages[0].role == "system":
        messages = messages[1:]
    users = [at for at, message in enumerate(messages) if message.role == "user"]
    return messages if keep == "all" or not users else messages[users[-1] :]

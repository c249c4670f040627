"""A prompt in the form of OpenAI's chat completions: what servers read and models' chat templates are written for.

Templates differ in what they refuse, so this is the form that the strict ones take as well: one system message, first;
then user and assistant in turn, the user first; one tool call a message, its result straight after it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from voicepipe.conversation.prompt import Message, Prompt, ToolCall

Chat = dict[str, Any]
"""A message, or a tool, as JSON."""
CALL_BEGINS = "(A caller is on the line.)"
"""Stands for the caller where the agent speaks first."""
NO_RESULT = "There is no result yet."
"""Of a tool that still runs while the caller talks on: no call may be without a result."""
FIRST_CUT = 4
"""Messages by which a conversation is shorter that is too long for its model."""
LEFT_OUT = " ... "


def messages(prompt: Prompt) -> list[Chat]:
    """The conversation; never empty. Tools' arguments are JSON text, as OpenAI has them."""
    system = "\n\n".join(message.text for message in prompt.messages if message.role == "system" and message.text)
    chat: list[Chat] = []
    for message in _turns(prompt.messages):
        if chat and chat[-1]["role"] == message["role"]:
            texts = filter(None, (chat[-1]["content"], message["content"]))
            chat[-1] |= message | {"content": " ".join(texts)}
        else:
            chat.append(message)
    if not chat or chat[0]["role"] != "user":
        chat.insert(0, {"role": "user", "content": CALL_BEGINS})
    return [{"role": "system", "content": system}, *chat] if system else chat


def tools(prompt: Prompt) -> list[Chat] | None:
    """The functions that the model may call; None: none, or it is told to call none."""
    if not prompt.tools or prompt.tool_choice == "none":
        return None
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters or {"type": "object", "properties": {}},
            },
        }
        for tool in prompt.tools
    ]


def choice(prompt: Prompt) -> str | Chat:
    """OpenAI's `tool_choice`, where there are tools. A name that none of them has means "auto"."""
    if prompt.tool_choice in ("none", "auto", "required"):
        return prompt.tool_choice
    if all(tool.name != prompt.tool_choice for tool in prompt.tools):
        return "auto"
    return {"type": "function", "function": {"name": prompt.tool_choice}}


def _turns(prompt: Sequence[Message]) -> Iterator[Chat]:
    """All messages but the system's. A result without its call is left out, since models refuse it."""
    results = {message.call_id: message.text for message in prompt if message.role == "tool"}
    for message in prompt:
        if message.call:
            yield _called(message.text, message.call)
            result = results.get(message.call.call_id, NO_RESULT)
            yield {"role": "tool", "tool_call_id": message.call.call_id, "content": result}
        elif message.role == "user" or (message.role == "assistant" and message.text):
            yield {"role": message.role, "content": message.text}


def _called(text: str, call: ToolCall) -> Chat:
    function = {"name": _name(call), "arguments": _arguments(call)}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": call.call_id, "type": "function", "function": function}],
    }


def _name(call: ToolCall) -> str:
    """A name as servers take it, whatever a model or a client wrote: they refuse any other with the whole
    conversation."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:64] or "unnamed"


def _arguments(call: ToolCall) -> str:
    """JSON text of an object, whatever a model wrote: what is malformed, servers refuse with the whole conversation."""
    try:
        return call.arguments if isinstance(json.loads(call.arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def shorter(messages: list[Chat]) -> Iterator[list[Chat]]:
    """The conversation, then ever less of it: oldest turns go first, the system's message stays.

    At last only what the caller said last and what followed is left, with the middle of its longest message taken out;
    ends when no text is left to take. Cuts are at 4, 8, 16 ... messages, so that one turn is cut where the one before
    it was and finds the rest in the prefix cache.
    """
    system = [message for message in messages[:1] if message["role"] == "system"]
    turns = messages[len(system) :]
    yield messages
    users = [index for index, message in enumerate(turns) if message["role"] == "user"]
    cut = FIRST_CUT
    while any(cut <= index < users[-1] for index in users):
        yield system + turns[next(index for index in users if index >= cut) :]
        cut *= 2
    turns = turns[users[-1] :]
    yield system + turns
    while len(longest := max((message["content"] for message in turns), key=len)) > len(LEFT_OUT):
        keep = len(longest) // 4
        halved = longest[:keep] + LEFT_OUT + longest[len(longest) - keep :] if keep > len(LEFT_OUT) else ""
        turns = [message | {"content": halved} if message["content"] is longest else message for message in turns]
        yield system + turns

"""Errors in an agent that its types do not show. Each is a line "key: what is wrong; what helps"."""

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from voicepipe.agent import GIVEN, Agent, Intent, Tool, Webhook
from voicepipe.base.errors import ConfigError
from voicepipe.base.ranges import is_url
from voicepipe.config import word_problems
from voicepipe.config.language_problems import of_languages
from voicepipe.config.variable_problems import of_variables
from voicepipe.config.word_problems import FIRST
from voicepipe.conversation.hand_over import HAND_OVER
from voicepipe.conversation.own_tools import END_CALL, SEND_KEYS, SET_LANGUAGE, TRANSFER_TOOL, is_target
from voicepipe.conversation.variables import sample
from voicepipe.tools import tool_arguments, tool_code

EXAMPLE = 'properties = { day = { type = "string" } }'
KEYWORDS = {
    *Draft202012Validator.VALIDATORS, "$defs", "$vocabulary", "contentSchema", "default", "definitions", "dependencies",
    "else", "then",
}  # fmt: skip
"""Keywords of JSON Schema whose value may be a table."""
MORE_PROPERTIES = {
    "$dynamicRef", "$ref", "additionalProperties", "allOf", "anyOf", "dependentSchemas", "else", "if", "oneOf",
    "patternProperties", "then", "unevaluatedProperties",
}  # fmt: skip
"""Keywords of JSON Schema by which a table may have keys besides its `properties`."""


def of_agent(agent: Agent) -> Iterator[str]:
    """Problems outside of its intents, and of its tools' functions."""
    yield from _of_telephone(agent)
    yield from of_variables(agent)
    yield from word_problems.of_words(agent)
    yield from of_languages(agent)
    yield from _of_hand_over(agent)
    if agent.name in agent.hooks.agents:
        yield f"hooks.agents: {agent.name} is this agent itself; name those that may answer in its place"
    yield from _twice("hooks.agents", agent.hooks.agents)
    yield from _twice("tools", (tool.name for tool in agent.tools))
    for index, tool in enumerate(agent.tools):
        yield from _of_tool(f"tools[{index}]", tool)


def functions_named(agent: Agent) -> Iterator[tuple[str, str]]:
    """The Python functions that an agent's file names: the key of each, and `module:function`."""
    yield from ((f"hooks.{key}", target) for key, target in agent.hooks.targets.items() if not is_url(target))
    yield from ((f"tools[{at}].function", tool.function) for at, tool in enumerate(agent.tools) if tool.function)


def of_functions(agent: Agent) -> Iterator[str]:
    """Problems of the functions of its hooks and tools, which are loaded."""
    for key, target in agent.hooks.targets.items():
        if not is_url(target):
            yield from _of_hook(key, target)
    for index, tool in enumerate(agent.tools):
        if tool.function and not any(_of_parameters("", tool)):
            yield from _of_function(f"tools[{index}].function", tool)


def of_intents(agent: Agent) -> Iterator[str]:
    """Problems of the intents, and of intents together with the rest of the agent."""
    yield from _twice("intents", (intent.name for intent in agent.intents))
    for index, intent in enumerate(agent.intents):
        yield from _of_deeds(f"intents[{index}]", intent, agent)
        yield from _of_texts(f"intents[{index}]", intent)


def _twice(kind: str, names: Iterable[str]) -> Iterator[str]:
    """Names that occur twice: the second could never be meant."""
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{kind}: {times} have the name {name}; give each a name of its own"


def _of_deeds(at: str, intent: Intent, agent: Agent) -> Iterator[str]:
    """Problems of what an intent does: with tools, or with the call."""
    for key, tool in (("tool", intent.tool), ("check", intent.check)):
        if tool:
            yield from _of_called(f"{at}.{key}", tool, intent, agent)
    for key in ("check", "confirm"):
        if getattr(intent, key) and not intent.slots:
            yield f"{at}.{key}: there is nothing to {key}; give the intent slots"
    if intent.check and not intent.confirm:
        yield f"{at}.check: needs confirm as well, so that what is done has been checked and read back"
    if intent.transfer and intent.transfer not in agent.transfer:
        yield f"{at}.transfer: there is no transfer {intent.transfer}; allowed: {_all(agent.transfer)}"
    if intent.hand_over and intent.hand_over not in agent.hand_over:
        yield f"{at}.hand_over: there is no hand_over {intent.hand_over}; allowed: {_all(agent.hand_over)}"
    if intent.end_call and not agent.end_call:
        yield f"{at}.end_call: this agent may not hang up; put end_call = true {FIRST}"


def _of_called(at: str, name: str, intent: Intent, agent: Agent) -> Iterator[str]:
    """Problems of a tool that an intent calls: it gets the intent's slots, and no more."""
    tools = {tool.name: tool for tool in agent.tools}
    if name not in tools:
        yield f"{at}: there is no tool {name}; allowed: {_all(tools)}"
        return
    if any(_of_parameters(at, tools[name])):  # They are listed as the tool's, and what it requires is unknown.
        return
    if missing := [each for each in _required(tools[name]) if each not in intent.slots]:
        yield f"{at}: {name} requires {' and '.join(missing)}, which no slot asks for; its slots: {_all(intent.slots)}"


def _of_texts(at: str, intent: Intent) -> Iterator[str]:
    texts = {"reply": intent.reply, "confirm": intent.confirm}
    texts |= {f"slots.{slot}": question for slot, question in intent.slots.items()}
    for key, text in texts.items():
        known = {*intent.slots} | ({"result", "last_reply"} if key == "reply" else set())
        for slot in re.findall(r"\{(\w+)\}", sample(text)):
            if slot not in known:
                yield f"{at}.{key}: {{{slot}}} is not a slot; allowed: {_all(known)}"


def _of_tool(at: str, tool: Tool) -> Iterator[str]:
    """Problems of a tool: arguments that it cannot be called with, addresses that it cannot reach."""
    if tool.name in (END_CALL, HAND_OVER, SEND_KEYS, SET_LANGUAGE, TRANSFER_TOOL):
        yield f"{at}.name: {tool.name} is a tool of every agent's; choose another name"
    if (tool.webhook is None) == (not tool.function):
        yield f"{at}: {tool.name} needs exactly one of webhook and function"
    if not all(text.strip() for text in tool.while_running):
        yield f"{at}.while_running: a text is empty; say what callers are to hear while {tool.name} runs"
    if tool.webhook:
        yield from _of_webhook(f"{at}.webhook", tool.webhook)
    yield from _of_parameters(f"{at}.parameters", tool)


def _of_webhook(at: str, webhook: Webhook) -> Iterator[str]:
    if not is_url(sample(webhook.url)):
        yield f"{at}.url: {webhook.url!r} is no address; give one such as https://bookings.example/book"
    for name, value in webhook.headers.items():
        if not (
            sample(value).isascii()
            and sample(value).isprintable()
            and re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII)
        ):
            yield f"{at}.headers.{name}: is no HTTP header; leave out line breaks and letters beyond ASCII"


def _of_parameters(at: str, tool: Tool) -> Iterator[str]:
    if not tool.parameters:
        return
    try:
        Draft202012Validator.check_schema({"type": "object", **tool.parameters})
    except SchemaError as error:
        where = "".join(f".{step}" for step in error.absolute_path)
        # Of a type that is none, the schema says which there are in one of several ways to be right.
        said = next((inner.message for inner in error.context or () if inner.validator == "enum"), error.message)
        yield f"{at}{where}: is no JSON Schema: {said}; write an argument as {EXAMPLE}"
        return
    if wrong := tool_arguments.problem(tool.parameters):
        yield f"{at}.{wrong}"
    if tool.parameters.get("type", "object") != "object":
        yield f'{at}.type: cannot be {tool.parameters["type"]!r}; allowed: "object"'
    for key, value in tool.parameters.items():
        if advice := _proper_table(key, value):
            yield f"{at}.{key}: says nothing there; {advice}"
    properties = tool.parameters.get("properties", {})
    missing = [name for name in _required(tool) if name not in properties]
    may_have_more = any(tool.parameters.get(key, False) is not False for key in MORE_PROPERTIES)
    if properties and missing and not may_have_more:
        yield f"{at}.required: {' and '.join(missing)} is none of the properties; allowed: {_all(properties)}"


def _proper_table(key: str, value: object) -> str:
    """The table to which a key of `parameters` belongs; empty: where it is, or unknown."""
    if key in Tool.__struct_fields__ and key != "description":
        return "put it above [tools.parameters]"
    if key in Agent.__struct_fields__:
        return f"put it {FIRST}"
    if isinstance(value, dict) and "type" in value and key not in KEYWORDS:
        return f"put arguments into properties, as {EXAMPLE}"
    return ""


def _of_function(at: str, tool: Tool) -> Iterator[str]:
    try:
        function = tool_code.load(tool.function)
    except ConfigError as error:
        yield f"{at}: {error}"
        return
    if wrong := tool_code.mismatch(function, tool.parameters):
        yield f"{at}: {wrong}"


def _of_hook(key: str, target: str) -> Iterator[str]:
    try:
        function = tool_code.load(target)
    except ConfigError as error:
        yield f"hooks.{key}: {error}"
        return
    if wrong := tool_code.needs_more(function, GIVEN[key]):
        yield f"hooks.{key}: {wrong}"


def _of_telephone(agent: Agent) -> Iterator[str]:
    for keys, meaning in agent.keys.items():
        if keys in Agent.__struct_fields__:
            yield f"keys.{keys}: is on no telephone; put {keys} {FIRST}"
        elif not re.fullmatch(r"[0-9*#A-D]+", keys):
            yield f"keys: {keys} is on no telephone; allowed: 0 to 9, *, # and A to D, one or several"
        if not meaning.strip():
            yield f"keys.{keys}: is empty; say what the caller means, in words"
    for name, target in agent.transfer.items():
        if not is_target(sample(target)):
            advice = f"; or put {name} {FIRST}" if name in Agent.__struct_fields__ else ""
            yield (
                f"transfer.{name}: nobody can be called at {target!r}; give a number such as +4930123456, or an "
                f"address such as sip:ann@example.com or tel:+4930123456{advice}"
            )


def _of_hand_over(agent: Agent) -> Iterator[str]:
    for name, entry in agent.hand_over.items():
        if name == agent.name:
            yield f"hand_over.{name}: is this agent itself; name another one"
        if not entry.when.strip():
            yield f"hand_over.{name}.when: is empty; say in which case {name} takes over, in words for the model"


def unknown_colleagues(agent: Agent, known: Collection[str]) -> Iterator[str]:
    """Problems of the agents that it hands callers over to, or that its hook may return, which are not `known`."""
    named = [(f"hand_over.{name}", name) for name in agent.hand_over] + [
        ("hooks.agents", n) for n in agent.hooks.agents
    ]
    for key, name in named:
        if name not in known:
            yield f"{key}: there is no agent {name}{_nearest(name, known)}; allowed: {_all(known)}"


def _nearest(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


def _required(tool: Tool) -> list[str]:
    return [str(name) for name in tool.parameters.get("required", ())]


def _all(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"

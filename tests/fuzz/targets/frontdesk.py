"""What callers say and clients write, answered by the embedded language engine: intents, slots, tools of any schema."""

import json
from functools import cache
from random import Random
from typing import Any

import msgspec

from tests.fuzz.target import Target
from voicepipe.config import shipped_files
from voicepipe.config.agent_store import load_agent
from voicepipe.conversation.prompt import Prompt
from voicepipe.engines.llm.frontdesk.frontdesk_dialogue import FrontdeskDialogue
from voicepipe.engines.llm.frontdesk.frontdesk_llm import reply_in_steps

SAYINGS = (
    "I would like to book a table for four on friday at seven thirty", "what are your opening hours", "two people",
    "tomorrow at noon please my name is ann lee", "do you have vegan food and dogs", "no", "yes", "goodbye",
    "say exactly: hello there", "4 2 #", "half past six on the twenty third of march", "can I speak to a human",
)  # fmt: skip
TOOLS: tuple[dict[str, Any], ...] = (
    {"name": "book_table", "description": "Book a table.", "parameters": {"type": "object", "properties": {
        "day": {"type": "string"}, "time": {"type": "string"}, "people": {"type": "integer"}}}},
    {"name": "get_weather", "description": "The weather in a city", "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "enum": ["Berlin", "Paris"]}, "days": {"type": "number"}}, "required": ["city"]}},
    {"name": "transfer_call", "parameters": {"type": "object", "properties": {"to": {"type": "string"}}}},
    {"name": "end_call"},
)  # fmt: skip
PIECES = ("a ", "in ", "for ", "I", "A ", "“", '"', "1", "say ", "greet the ", "!", " ", "day ", "two ", "please", "\n")
"""Said many times over: what a pattern may look at again from every place."""
KINDS: tuple[dict[str, Any], ...] = (
    {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"enum": ["aaab", "aab", "b"]}, {"anyOf": [{}]},
)  # fmt: skip
MOST_NAMES = 4000
WORDS = tuple(word.encode() for saying in SAYINGS for word in saying.split())


@cache
def _dialogue() -> FrontdeskDialogue:
    return FrontdeskDialogue(load_agent(shipped_files() / "configs" / "agents" / "front-desk.toml"))


def answer(data: bytes) -> None:
    """A prompt as JSON; what is none is not a prompt that anybody can make."""
    try:
        prompt = msgspec.json.decode(data, type=Prompt)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    list(reply_in_steps(_dialogue(), prompt))


def _prompt(sayings: list[str], tools: list[dict[str, Any]], choice: str = "auto") -> bytes:
    messages = [{"role": "system", "text": "Be brief."}]
    for number, text in enumerate(sayings):
        messages += [{"role": "user", "text": text}]
        if number + 1 < len(sayings):
            messages += [{"role": "assistant", "text": "For how many people?"}]
    return json.dumps({"messages": messages, "tools": tools, "tool_choice": choice}).encode()


def _seeds() -> list[bytes]:
    names = {"type": "object", "required": [f"{number:x}" for number in range(300)]}
    return [
        *[_prompt([saying], list(TOOLS)) for saying in SAYINGS],
        _prompt(list(SAYINGS), list(TOOLS), "required"),
        _prompt(["a " * 240], [{"name": "fill_in", "parameters": names}], "required"),
    ]


def _much(random: Random) -> bytes:
    """A client that makes the most of its limits: many names, long texts."""
    names = [f"{number:x}" for number in range(random.choice((10, 300, MOST_NAMES)))]
    schema: dict[str, Any] = random.choice((
        {"type": "object", "required": names},
        {"type": "object", "properties": dict.fromkeys(names, random.choice(KINDS))},
        {"type": "object", "properties": {"a": {"enum": names}}},
        {"type": "object", "properties": {"a": {"enum": ["a" * 40 + name for name in names]}}},
    ))  # fmt: skip
    many = [{"name": f"tool_{name}", "description": f"Tells of {name}."} for name in names[:300]]
    tools = random.choice(([{"name": "fill_in", "parameters": schema}], many))
    said = random.choice(PIECES) * random.randint(1, 3000) + random.choice(("", "?" * 2000, "b", "Z "))
    return _prompt([said] * random.choice((1, 1, 50)), tools, random.choice(("auto", "required", "fill_in")))


def _any_talk(random: Random) -> bytes:
    if random.random() < 0.05:
        return _much(random)
    words = " ".join(random.choice(SAYINGS) for _ in range(3)).split()
    sayings = [" ".join(random.choices(words, k=random.randint(1, 20))) for _ in range(random.randint(1, 8))]
    choice = random.choice(("auto", "auto", "none", "required", "get_weather", "nobody"))
    return _prompt(sayings, random.sample(TOOLS, random.randint(0, len(TOOLS))), choice)


TARGETS = (
    Target(
        "frontdesk", "a prompt to the embedded language engine", answer, _seeds, _any_talk, WORDS, 0.3, largest=131_072
    ),
)

"""Tools that no intent knows: a client's own. Chosen by their words, called with guessed arguments."""

import json
import re
from collections.abc import Sequence
from math import isfinite
from typing import Any

from voicepipe.agent import ToolSpec
from voicepipe.engines.frontdesk.matcher import stem
from voicepipe.engines.frontdesk.slots import digits
from voicepipe.engines.frontdesk.sound import words

COMMON = frozenset(
    "a an the of for to in on at by and or with from is are be it this that i you me my your we us our please can "
    "could would will do does what which who when where how get set make find look up lookup fetch tool function call "
    "use user return given about some any now current information data value".split()
)
"""Words that say nothing about which tool is meant."""

LONG = 500
"""Characters of a text in which a single value is not looked for."""

ENOUGH = 0.5
"""Share of a tool's name, or a third of its description, that the text must hold."""


def _content(text: str) -> set[str]:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\W]+", " ", text)
    return {stem(word) for word in words(apart) if word not in COMMON}


def choose(tools: Sequence[ToolSpec], text: str) -> ToolSpec | None:
    """The tool whose name and description share most words with `text`; None if none shares enough."""
    if not tools:
        return None
    said = _content(text)

    def likeness(tool: ToolSpec) -> float:
        name, description = _content(tool.name), _content(tool.description)
        by_name = len(name & said) / len(name) if name else 0.0
        by_description = len(description & said) / len(description) if description else 0.0
        return max(by_name, 1.5 * by_description)

    best = max(tools, key=likeness)
    return best if likeness(best) >= ENOUGH else None


def arguments(tool: ToolSpec, text: str) -> str:
    """JSON text of arguments that satisfy the tool's schema as far as `text` gives them.

    Strings get the words that look like the value, else the whole text; numbers those that are in the text, in order.
    Clients write schemas: what in one is no schema is read as if it were not there.
    """
    numbers = [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", digits(text) if "." not in text else text)]
    return json.dumps(_value(tool.parameters or {"type": "object"}, text, numbers), ensure_ascii=False)


def _value(schema: dict[str, Any], text: str, numbers: list[float]) -> Any:
    if not isinstance(schema, dict):
        return text
    if "const" in schema:
        return schema["const"]
    if options := listed(schema.get("enum")):
        said = text.lower()
        return next((option for option in options if str(option).lower() in said), schema.get("default", options[0]))
    for alternatives in ("anyOf", "oneOf", "allOf"):
        if schemas := listed(schema.get(alternatives)):
            return _value(schemas[0], text, numbers)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        properties = table(schema.get("properties"))
        # Each once: a name that stands there twice would double what is to be done at every level.
        wanted = dict.fromkeys(name for name in listed(schema.get("required")) if isinstance(name, str)) or properties
        return {name: _value(properties.get(name, {}), text, numbers) for name in wanted}
    if kind == "array":
        return [_value(schema.get("items") or {}, text, numbers)]
    return _scalar(str(kind), schema, text, numbers)


def table(value: Any) -> dict[str, Any]:
    """`value` where an object belongs."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """`value` where an array belongs."""
    return value if isinstance(value, list) else []


def _scalar(kind: str, schema: dict[str, Any], text: str, numbers: list[float]) -> Any:
    if kind in ("integer", "number"):
        number = numbers.pop(0) if numbers else schema.get("default", schema.get("minimum", 0))
        number = number if isinstance(number, int | float) and isfinite(number) else 0
        return int(number) if kind == "integer" or float(number).is_integer() else number
    if kind == "boolean":
        return not re.search(r"\b(?:not|no|off|don't|disable)\b", text.lower())
    if kind == "null":
        return None
    return phrase(text)


def phrase(text: str) -> str:
    """What a string argument most likely means: what is quoted, named, or after the last preposition."""
    plain = text.strip().rstrip(".?!")
    if len(plain) > LONG:
        return plain
    if quoted := re.search(r"[\"“]([^\"”]+)[\"”]", text):
        return quoted[1]
    if named := re.findall(r"(?<=\s)[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*", plain):
        proper = [found for found in named if found != "I" and not found.startswith("I'")]
        if proper:
            return str(proper[-1])
    if after := re.search(r".*\b(?:in|for|of|about|to|at|from|on)\s+((?:\S+\s+){0,3}\S+)$", plain):
        return after[1].strip()
    return plain

"""Tools that a client brings and no intent knows. They are chosen by the words of their descriptions, and called with
arguments that are guessed."""

import json
import re
from collections.abc import Sequence
from math import isfinite
from typing import Any

from voicepipe.agent import ToolSpec
from voicepipe.engines.llm.frontdesk.matcher import stem
from voicepipe.engines.llm.frontdesk.slots import counted
from voicepipe.engines.llm.frontdesk.sounds_alike import words
from voicepipe.engines.llm.frontdesk.steps import Steps

COMMON = frozenset(
    "a an the of for to in on at by and or with from is are be it this that i you me my your we us our please can "
    "could would will do does what which who when where how get set make find look up lookup fetch tool function call "
    "use user return given about some any now current information data value".split()
)
"""Words that say nothing about which tool is meant."""

LONG = 500
"""Characters of a text in which a single value is not looked for."""

DESCRIBED = 2000
"""Characters of a tool's name and of its description that are read; a client may write sixty times as many."""

MOST = 100
"""Values that are filled in, at all levels of a schema; a client may ask for tens of thousands."""

ENOUGH = 0.5
"""Share of a tool's name, or a third of its description, that the text must hold."""


def _content(text: str) -> set[str]:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\W]+", " ", text)
    return {stem(word) for word in words(apart) if word not in COMMON}


def choose(tools: Sequence[ToolSpec], text: str) -> Steps[ToolSpec | None]:
    """The tool whose name and description share most words with `text`; None if none shares enough."""
    said, best, most = _content(text), None, 0.0
    for tool in tools:
        yield
        name, description = _content(tool.name[:DESCRIBED]), _content(tool.description[:DESCRIBED])
        by_name = len(name & said) / len(name) if name else 0.0
        by_description = len(description & said) / len(description) if description else 0.0
        if (likeness := max(by_name, 1.5 * by_description)) > most:
            best, most = tool, likeness
    return best if most >= ENOUGH else None


def arguments(tool: ToolSpec, text: str) -> Steps[str]:
    """JSON text of arguments that satisfy the tool's schema as far as `text` gives them, `MOST` values at most.

    Strings get the words that look like the value, else the whole text; numbers those that are in the text, in order.
    Clients write schemas: what in one is no schema is read as if it were not there.
    """
    value = yield from _ArgumentForm(text).value(tool.parameters or {"type": "object"})
    return json.dumps(value, ensure_ascii=False)


class _ArgumentForm:
    """Fills a tool's JSON Schema with values from one text. The text is read once, however many values there are."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._said = text.lower()
        self._phrase = phrase(text)
        self._wanted = not re.search(r"\b(?:not|no|off|don't|disable)\b", self._said)
        # As they are written: 730 may be anything here, not only half past seven.
        numbers = re.findall(r"-?\d+(?:\.\d+)?", counted(re.findall(r"-?\d+(?:\.\d+)?|[^\W\d_]+", self._said)))
        self._numbers = [float(found) for found in numbers]
        self._left = MOST

    def value(self, schema: dict[str, Any]) -> Steps[Any]:
        """The value for `schema`; None where that is too much."""
        yield
        if not self._left:
            return None
        self._left -= 1
        if not isinstance(schema, dict):
            return self._text
        if "const" in schema:
            return schema["const"]
        if options := listed(schema.get("enum")):
            for option in options:
                yield
                if str(option).lower() in self._said:
                    return option
            return schema.get("default", options[0])
        for alternatives in ("anyOf", "oneOf", "allOf"):
            if schemas := listed(schema.get(alternatives)):
                return (yield from self.value(schemas[0]))
        kind = schema.get("type", "object" if "properties" in schema else "string")
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if kind == "object":
            return (yield from self._object(schema))
        if kind == "array":
            return [(yield from self.value(schema.get("items") or {}))]
        return self._scalar(str(kind), schema)

    def _object(self, schema: dict[str, Any]) -> Steps[dict[str, Any]]:
        properties = table(schema.get("properties"))
        # Each once: a name that stands there twice would double what is to be done at every level.
        wanted = dict.fromkeys(name for name in listed(schema.get("required")) if isinstance(name, str)) or properties
        made: dict[str, Any] = {}
        for name in wanted:
            if not self._left:
                break
            made[name] = yield from self.value(properties.get(name, {}))
        return made

    def _scalar(self, kind: str, schema: dict[str, Any]) -> Any:
        if kind in ("integer", "number"):
            number = self._numbers.pop(0) if self._numbers else schema.get("default", schema.get("minimum", 0))
            # A whole number may have 400 digits: no float, and finite.
            finite = isinstance(number, int) or (isinstance(number, float) and isfinite(number))
            number = number if finite else 0
            return int(number) if kind == "integer" or number == int(number) else number
        if kind == "boolean":
            return self._wanted
        return None if kind == "null" else self._phrase


def table(value: Any) -> dict[str, Any]:
    """`value` if it is an object, as it should be; else an empty one."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """`value` if it is an array, as it should be; else an empty one."""
    return value if isinstance(value, list) else []


def phrase(text: str) -> str:
    """What a string argument most likely means: what is quoted, named, or after the last preposition."""
    plain = text.strip().rstrip(".?!")
    if len(plain) > LONG:
        return plain
    if quoted := re.search(r"[\"“]([^\"”]+)[\"”]", plain):
        return quoted[1]
    if named := re.findall(r"(?<=\s)[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*", plain):
        proper = [found for found in named if found != "I" and not found.startswith("I'")]
        if proper:
            return str(proper[-1])
    # From the beginning alone: `.*` finds the last one from there, and would look for it again from every other place.
    if after := re.match(r".*\b(?:in|for|of|about|to|at|from|on)\s+((?:\S+\s+){0,3}\S+)$", plain, re.DOTALL):
        return after[1].strip()
    return plain

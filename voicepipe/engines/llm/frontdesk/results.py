"""What tools answer: read as data, and as a sentence."""

import json
from typing import Any


def as_object(result: str) -> dict[str, Any]:
    """A tool's result if it is a JSON object, else an empty one."""
    try:
        found = json.loads(result)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def text_of(value: Any) -> str:
    """A value of a tool's result if it is a text, else an empty one."""
    return value.strip() if isinstance(value, str) else ""


def detail(value: Any) -> str:
    """A value of a tool's result as a slot holds it; empty if it is neither a text nor a number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()


def readable(result: str) -> str:
    """A tool's result as a sentence: JSON is read out as names and values."""
    try:
        return _sentence(json.loads(result))
    except (ValueError, RecursionError):
        return result.strip()


def _sentence(data: Any) -> str:
    if isinstance(data, dict):
        kept = {name: value for name, value in data.items() if value or name not in ("about", "problem")}
        said = ", ".join(f"{name.replace('_', ' ')}: {_plain(value)}" for name, value in kept.items())
        return f"{said[:1].upper()}{said[1:]}." if said else ""
    said = _plain(data).strip()
    return said if said.endswith((".", "?", "!")) else f"{said}."


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "nothing"}[value]
    if isinstance(value, list):
        return ", ".join(_plain(entry) for entry in value)
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_plain(entry)}" for name, entry in value.items())
    return str(value)

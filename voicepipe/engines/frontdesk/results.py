"""What tools answer: read as data, and as a sentence."""

import json
from typing import Any


def as_object(result: str) -> dict[str, Any]:
    """A tool's result, if it is a JSON object; else nothing."""
    try:
        found = json.loads(result)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def readable(result: str) -> str:
    """A tool's result as a sentence: JSON is read out as names and values."""
    try:
        return _sentence(json.loads(result))
    except (ValueError, RecursionError):
        return result.strip()


def _sentence(data: Any) -> str:
    if isinstance(data, dict):
        said = ", ".join(f"{name.replace('_', ' ')}: {_plain(value)}" for name, value in data.items())
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

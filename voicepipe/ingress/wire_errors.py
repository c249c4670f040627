"""Errors for clients, by HTTP or in an event: in the words and codes of OpenAI's API."""

import re

import msgspec

LONGEST = 400
"""Characters of an error's message: clients' own text comes back in it."""

_WHERE = re.compile(r" - at `\$\.?(?P<path>.*)`$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<field>.+)`$", re.DOTALL)
_WRONG_TYPE = re.compile(r"Expected `.+`, got `.+`$")


class WireError(Exception):
    """A client's event or request that cannot be carried out; the connection stays.

    `param` is the path of the field at fault (`session.audio.input.format.rate`), None where there is none.
    """

    def __init__(self, code: str, message: str, param: str | None = None, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.code = code
        self.message = message[:LONGEST]
        self.param = param[:LONGEST] if param else None
        self.kind = kind


def error_body(
    code: str, message: str, param: str | None = None, *, kind: str = "invalid_request_error"
) -> dict[str, object]:
    """The body of an HTTP answer that says what was wrong."""
    return {"error": {"type": kind, "code": code, "message": message, "param": param}}


def wire_error(error: Exception, prefix: str = "") -> WireError:
    """The WireError that says what msgspec found. `prefix` is the path of the object that was being read."""
    if isinstance(error, RecursionError):
        return WireError("invalid_json", "The message is nested too deeply.")
    if not isinstance(error, msgspec.ValidationError):
        return WireError("invalid_json", f"The message is not valid JSON: {error}.")
    text = str(error)
    where = _WHERE.search(text)
    what = text[: where.start()] if where else text
    path = ".".join(part for part in (prefix, where["path"] if where else "") if part).replace(".[", "[")
    if missing := _MISSING.match(what):
        path = f"{path}.{missing['field']}" if path else missing["field"]
        return WireError("missing_required_parameter", f"Missing required parameter: '{path}'.", path)
    code, subject = ("invalid_type", "type") if _WRONG_TYPE.match(what) else ("invalid_value", "value")
    return WireError(code, f"Invalid {subject} for '{path}': {what}." if path else f"{what}.", path or None)

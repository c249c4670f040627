"""The arguments that a language model writes for an agent's tool, held against the tool's JSON Schema before anything
runs. What does not fit is a text for the model, which can try again.

By jsonschema, which is not made for strangers' input: what it may cost is bounded here. Nothing is ever fetched: a
`$ref` leads to a part of the same schema, or `problem` says so when the agent's file is read.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from time import monotonic
from typing import Any

import regex
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from voicepipe.base.errors import ToolError

log = logging.getLogger(__name__)
MOST_STEPS = 5000
"""Keywords of the schema that are held against values: 30 ms. A tool's arguments take a few dozen."""
MOST_DEEP = 64
"""Keywords of the schema that may be held against a value within one another. Python's own limit may be reached inside
jsonschema's mappings, which are Rust's: they raise a PanicException then, which is no Exception."""
PATTERNS_S = 0.05
"""Seconds for all patterns of one check: some take time that doubles with each character."""
REPORTED, REPORTED_CHARS = 3, 200
"""Mistakes that the model reads, and characters of each."""
DATA = {"const", "default", "enum", "examples"}
"""Keywords of JSON Schema whose values are no schemas."""


class _Endless(Exception):
    """Checking the arguments takes too long."""


_left: ContextVar[list[int]] = ContextVar("_left")
"""Steps that the check which runs may still take."""
_depth: ContextVar[list[int]] = ContextVar("_depth")
"""Keywords within which the check is at present."""
_patterns_s: ContextVar[list[float]] = ContextVar("_patterns_s")
"""Seconds that its patterns may still take."""


def parse(arguments: str) -> dict[str, Any]:
    """The arguments of a call: a JSON object, or {} for an empty text. Raises ToolError."""
    try:
        parsed = json.loads(arguments if arguments.strip() else "{}")
    except RecursionError:
        raise ToolError("the arguments are nested too deeply") from None
    except ValueError as error:
        raise ToolError(f"the arguments are not valid JSON ({str(error)[:REPORTED_CHARS]}); nothing was done") from None
    if not isinstance(parsed, dict):
        raise ToolError("the arguments are not a JSON object; nothing was done")
    return parsed


def fitting(parameters: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the tool gets them: without those that it can do without and that are null, where its schema has
    no null for them. Raises ToolError: they do not fit `parameters`."""
    if not parameters:
        return arguments
    try:
        validator = _validator(parameters)
        kept = {name: value for name, value in arguments.items() if value is not None or _may_be_null(validator, name)}
        mistakes = [_described(error) for error in islice(validator.iter_errors(kept), REPORTED)]
    except _Endless as error:
        raise ToolError(f"the arguments cannot be checked: {error}; nothing was done") from None
    except RecursionError:
        raise ToolError("the arguments are nested too deeply; nothing was done") from None
    except Exception:  # A schema that `problem` did not see through. It is the agent's fault, and not the call's end.
        log.exception("arguments of a tool cannot be checked: look at its parameters")
        raise ToolError("the arguments cannot be checked; nothing was done") from None
    if mistakes:
        raise ToolError(f"the arguments are wrong: {'; '.join(mistakes)}; nothing was done")
    return kept


def problem(parameters: Mapping[str, Any]) -> str:
    """Why no arguments can be checked by a schema that is well-formed; empty: they can."""
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(dict(parameters)))
    for key, said in _said(parameters):
        try:
            if key == "pattern":
                regex.compile(said)
            else:
                resolver.lookup(said)
        except regex.error as error:
            return f"pattern: {said!r} is no pattern: {error}"
        except (Unresolvable, ValueError):
            return f"{key}: {said!r} is not in this file, and nothing is fetched; put it into $defs, as #/$defs/day"
    try:
        list(_validator(parameters).iter_errors({}))
    except (_Endless, RecursionError):
        return "$ref: leads to itself; no arguments can be checked by it"
    except Exception as error:
        return f"cannot be used to check arguments: {str(error)[:REPORTED_CHARS]}"
    return ""


def has_patterns(parameters: Mapping[str, Any]) -> bool:
    """A check by them may take long: it is not for an event loop."""
    return any(key == "pattern" for key, _ in _said(parameters))


def _validator(parameters: Mapping[str, Any]) -> Any:
    _left.set([MOST_STEPS])
    _depth.set([0])
    _patterns_s.set([PATTERNS_S])
    schema = _as_one(parameters)
    kind = _Bounded if "patternProperties" not in str(schema) else _WithPatterns
    return kind({"type": "object", **schema}, registry=Registry())


def _may_be_null(validator: Any, name: str) -> bool:
    """It is required, nobody knows of it, or null is one of its values."""
    schema = validator.schema
    properties = schema.get("properties", {})
    if name not in properties or name in schema.get("required", ()):
        return True
    return bool(validator.evolve(schema=properties[name]).is_valid(None))


def _described(error: ValidationError) -> str:
    where = ".".join(map(str, error.absolute_path))
    message = error.message.replace("None", "null", 1) if error.instance is None else error.message
    message = message if len(message) <= REPORTED_CHARS else f"{message[:REPORTED_CHARS]}..."
    return f"{where}: {message}" if where else message


def _as_one(schema: Any) -> Any:
    """Without `$schema`: where jsonschema finds one, it goes on with a validator of its own, which knows no bounds."""
    if isinstance(schema, Mapping):
        return {key: _as_one(value) for key, value in schema.items() if key != "$schema" or not isinstance(value, str)}
    return [_as_one(each) for each in schema] if isinstance(schema, list | tuple) else schema


def _said(schema: Any) -> Iterator[tuple[str, str]]:
    """Each reference and pattern, and its keyword."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if isinstance(value, str):
                if key in ("$ref", "$dynamicRef", "pattern"):
                    yield key, value
            elif key not in DATA:
                yield from _said(value)
            if key == "patternProperties" and isinstance(value, Mapping):
                yield from (("pattern", pattern) for pattern in value)
    elif isinstance(schema, list | tuple):
        for each in schema:
            yield from _said(each)


# --- the bounds -------------------------------------------------------------------------------------------------

Check = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]
"""One keyword: validator, its value, the instance, the schema that it stands in."""


def _step() -> None:
    left = _left.get()
    left[0] -= 1
    if left[0] < 0:
        raise _Endless("there are too many values in them")


def _counted(check: Check) -> Check:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        _step()
        depth = _depth.get()
        depth[0] += 1
        try:
            if depth[0] > MOST_DEEP:
                raise RecursionError
            yield from check(validator, value, instance, schema) or ()
        finally:
            depth[0] -= 1

    return counted


def _found(pattern: str, text: str) -> bool:
    _step()
    left, began = _patterns_s.get(), monotonic()
    try:
        if left[0] > 0:
            return bool(regex.search(pattern, text, timeout=left[0]))
    except TimeoutError:
        pass
    finally:
        left[0] -= monotonic() - began
    raise _Endless("its patterns take too long")


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if _found(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, value in instance.items():
        if name not in known and not any(_found(pattern, name) for pattern in patterns):
            if allowed is False:
                yield ValidationError(f"there is no argument {name!r}; there are: {', '.join(known) or 'none'}")
            else:
                yield from validator.descend(value, allowed, path=name)


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """jsonschema compares each with each."""
    if wanted and isinstance(instance, list):
        written = {json.dumps(each, sort_keys=True) for each in instance}
        if len(written) < len(instance):
            yield ValidationError("an entry is there twice")


_OURS: dict[str, Check] = {
    "pattern": _pattern, "patternProperties": _pattern_properties, "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}  # fmt: skip
_CHECKS = {key: _counted(_OURS.get(key) or check) for key, check in Draft202012Validator.VALIDATORS.items()}
_Bounded = extend(Draft202012Validator, _CHECKS)  # type: ignore[no-untyped-call]
_WithPatterns = extend(_Bounded, {"unevaluatedProperties": lambda *_: None})  # type: ignore[no-untyped-call]
"""jsonschema's own reading of that keyword knows no time limit for patterns."""

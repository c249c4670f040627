"""What a model writes for an agent's tool, held against the tool's schema: before anything runs, within bounds."""

import json
from time import thread_time
from typing import Any

import pytest

from voicepipe.base.errors import ToolError
from voicepipe.tools.tool_arguments import PATTERNS_S, fitting, has_patterns, parse, problem

SMALL_S = 1.0
"""Generous: what is bounded takes less than a tenth of it, and else minutes."""
TABLE = {
    "type": "object",
    "required": ["people", "day"],
    "additionalProperties": False,
    "properties": {
        "people": {"type": "integer", "minimum": 1},
        "day": {"enum": ["Friday", "Saturday"]},
        "name": {"type": "string"},
        "note": {"type": ["string", "null"]},
        "guests": {"type": "array", "items": {"$ref": "#/$defs/guest"}},
    },
    "$defs": {"guest": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
}


@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        ('{"people": 4, "day": "Friday"}', {"people": 4, "day": "Friday"}),
        ('{"people": 4, "day": "Friday", "name": null}', {"people": 4, "day": "Friday"}),
        ('{"people": 4, "day": "Friday", "note": null}', {"people": 4, "day": "Friday", "note": None}),
        (' {"people": 4, "day": "Friday"}\n', {"people": 4, "day": "Friday"}),
    ],
)
def test_what_fits(arguments: str, got: dict[str, Any]) -> None:
    """Null means that an argument which may be left out is left out, where the schema has no null for it."""
    assert fitting(TABLE, parse(arguments)) == got


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "'people' is a required property"),
        ('{"people": 4}', "'day' is a required property"),
        ('{"people": "four", "day": "Friday"}', "people: 'four' is not of type 'integer'"),
        ('{"people": 4, "day": "Monday"}', "day: 'Monday' is not one of ['Friday', 'Saturday']"),
        ('{"people": null, "day": "Friday"}', "people: null is not of type 'integer'"),
        ('{"people": 0, "day": "Friday"}', "people: 0 is less than the minimum of 1"),
        (
            '{"people": 4, "day": "Friday", "smokes": true}',
            "there is no argument 'smokes'; there are: people, day, name, note, guests",
        ),
        ('{"people": 4, "day": "Friday", "guests": [{"name": "Ann"}, {}]}', "guests.1: 'name' is a required property"),
        ('{"people": 4, "da', "not valid JSON"),
        ("four people", "not valid JSON"),
        ('[{"people": 4}]', "not a JSON object"),
        ('"{}"', "not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_the_model_is_told(arguments: str, told: str) -> None:
    with pytest.raises(ToolError) as raised:
        fitting(TABLE, parse(arguments))
    assert told in str(raised.value)


def test_it_is_told_of_a_few_mistakes_and_not_of_all_that_it_wrote() -> None:
    schema = {"properties": {f"a{n}": {"type": "integer"} for n in range(50)}}
    with pytest.raises(ToolError) as raised:
        fitting(schema, {f"a{n}": "x" * 50_000 for n in range(50)})
    assert len(str(raised.value)) < 1000


def test_a_tool_without_a_schema_takes_what_comes() -> None:
    assert fitting({}, {"a": None}) == {"a": None}


WILD = {"$ref": "#/$defs/x", "$defs": {"x": {"anyOf": [{"type": "object", "maxProperties": 0}, {"not": {}}]}}}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"a": {"pattern": "^(a|aa)+$"}}}, {"a": "a" * 5000 + "!"}),
        ({"patternProperties": {"^(a|aa)+$": {"type": "string"}}}, {"a" * 5000 + "!": 1, "a": 1}),
        ({"patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False}, {"a" * 5000 + "!": 1}),
        ({"patternProperties": {"^(a|aa)+$": {}}, "unevaluatedProperties": False}, {"a" * 5000 + "!": 1, "a": 1}),
        (
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"$ref": "#/$defs/b"}},
             "$defs": {"b": {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^(a|aa)+$"}}},
            {"a": "a" * 5000 + "!"},
        ),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"n": n} for n in range(8000)]}),
        ({"properties": {"a": {"items": {"type": "integer", "minimum": 0}}}}, {"a": [1] * 30_000}),
        ({"properties": {"a": {"$ref": "#"}}}, json.loads('{"a":' * 900 + "1" + "}" * 900)),
    ],
    ids=["pattern", "names", "no others", "unevaluated", "another dialect", "unique", "many", "deep"],
)  # fmt: skip
def test_nothing_takes_long(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    began = thread_time()
    try:
        fitting(schema, arguments)
    except ToolError as error:
        assert str(error)
    assert thread_time() - began < SMALL_S


def test_all_patterns_of_a_check_have_one_time_limit() -> None:
    schema = {"properties": {"a": {"items": {"pattern": "^(a|aa)+$"}}}}
    began = thread_time()
    with pytest.raises(ToolError):
        fitting(schema, {"a": ["a" * 25 + "!"] * 100})
    assert thread_time() - began < 10 * PATTERNS_S
    assert fitting(schema, {"a": ["aa", "aaa"]}) == {"a": ["aa", "aaa"]}, "each check has its own"


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"properties": {"a": {"pattern": "x"}}}, True), ({"patternProperties": {"x": {}}}, True),
        ({"properties": {"pattern": {"type": "string"}}}, False), (TABLE, False), ({}, False),
    ],
)  # fmt: skip
def test_which_checks_may_take_long(schema: dict[str, Any], found: bool) -> None:
    assert has_patterns(schema) is found


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: object, **__: object) -> None:
        raise AssertionError("a schema was fetched")

    monkeypatch.setattr("urllib.request.urlopen", fetch)
    elsewhere = {"properties": {"a": {"$ref": "http://127.0.0.1:9/day.json"}}}
    assert "nothing is fetched" in problem(elsewhere)
    with pytest.raises(ToolError, match="cannot be checked"):
        fitting(elsewhere, {"a": 1})


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"properties": {"day": {"$ref": "#/$defs/day"}}}, "$ref: '#/$defs/day' is not in this file"),
        ({"$ref": "#"}, "leads to itself"),
        ({"properties": {"a": {"pattern": "(?<x"}}}, "is no pattern"),
        ({"patternProperties": {"[": {}}}, "is no pattern"),
        (TABLE, ""),
        (WILD, ""),
        ({"properties": {"$ref": {"type": "string"}, "a": {"enum": [{"$ref": "#/no"}]}}}, ""),
        ({}, ""),
    ],
)
def test_schemas_that_nothing_can_be_checked_by(schema: dict[str, Any], says: str) -> None:
    assert says in problem(schema) if says else problem(schema) == ""


def test_a_schema_that_leads_to_itself_is_found_however_deep_the_stack_is() -> None:
    """Python's limit is reached at another place each time."""

    def at(depth: int) -> str:
        return at(depth - 1) if depth else problem({"$ref": "#"})

    assert {at(depth) for depth in range(0, 300, 7)} == {"$ref: leads to itself; no arguments can be checked by it"}

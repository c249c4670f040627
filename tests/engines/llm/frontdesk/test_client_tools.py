"""A client's own tools, called with guessed arguments."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.llm.frontdesk.front_desk import at_once
from voicepipe.agent import ToolSpec
from voicepipe.engines.llm.frontdesk import client_tools

SCHEMAS = st.recursive(
    st.sampled_from(
        [{"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}, {}]
        + [{"enum": ["red", "blue"]}, {"const": 7}, {"type": ["string", "null"]}]
    ),
    lambda inner: st.one_of(
        st.dictionaries(st.text(max_size=4), inner, max_size=3).map(
            lambda properties: {"type": "object", "properties": properties, "required": list(properties)}
        ),
        inner.map(lambda items: {"type": "array", "items": items}),
        inner.map(lambda one: {"anyOf": [one, {"type": "null"}]}),
    ),
    max_leaves=6,
)


def filled(schema: dict[str, Any], text: str) -> str:
    return at_once(client_tools.arguments(ToolSpec("t", "", schema), text))


@given(SCHEMAS, st.text(max_size=30))
def test_arguments_are_json_for_any_schema(schema: dict[str, Any], text: str) -> None:
    made = json.loads(filled(schema, text))
    if schema.get("type") == "object":
        assert set(made) == set(schema["required"])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": ["day"], "required": "day"},
        {"type": "object", "properties": {"day": 5}, "required": [["day"], None]},
        {"enum": {"red": 1}},
        {"anyOf": "string"},
        {"type": "integer", "minimum": "many"},
        {"type": "integer", "default": None},
        {"type": "integer", "default": 10**400},
        {"type": "number", "minimum": 10**400},
        {"type": "number"},
    ],
)
def test_what_is_no_schema_is_read_as_if_it_were_not_there(schema: dict[str, Any]) -> None:
    for text in ("Book it.", "9" * 400):
        json.loads(filled(schema, text))


def test_a_schema_that_names_a_property_twice_at_every_level_is_filled_in_once() -> None:
    """Twice at each of sixty levels would be 2 to the 60."""
    schema: dict[str, object] = {"type": "string"}
    for _ in range(60):
        schema = {"properties": {"a": schema}, "required": ["a", "a"]}
    made = json.loads(filled(schema, "for Friday"))
    for _ in range(60):
        assert list(made) == ["a"]
        made = made["a"]
    assert made == "Friday"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("What is the weather in Paris?", "Paris"),
        ('Search for "red shoes" please', "red shoes"),
        ("look up the price of green apples", "green apples"),
        ("weather", "weather"),
        ("", ""),
    ],
)
def test_strings_are_the_words_that_matter(text: str, value: str) -> None:
    assert client_tools.phrase(text) == value

"""The front desk's parts: a client's own tools, details in what is said, words and their sounds."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.contract import texts, the_call
from tests.engines.llm.frontdesk.front_desk import FILE, at_once, reply
from voicepipe.agent import Agent, Intent, ToolSpec
from voicepipe.engines.base import Message, Prompt, ToolCall
from voicepipe.engines.llm.frontdesk import guess, slots
from voicepipe.engines.llm.frontdesk.frontdesk_dialogue import FrontdeskDialogue, fill
from voicepipe.engines.llm.frontdesk.frontdesk_llm import NO_MODEL, FrontdeskLlm
from voicepipe.engines.llm.frontdesk.results import readable
from voicepipe.engines.llm.frontdesk.sound import alike, distance, words

# --- a client's own tools ----------------------------------------------------------------------------------------

WEATHER = ToolSpec(
    "get_weather",
    "Get the current weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ADD = ToolSpec(
    "add_numbers",
    "Adds.",
    {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)


def ask(desk: FrontdeskDialogue, said: str, *tools: ToolSpec, choice: str = "auto") -> Any:
    (delta,) = reply(desk, Prompt((Message("user", said),), tools, choice, agent=desk.agent))
    return (delta.name, json.loads(delta.arguments)) if isinstance(delta, ToolCall) else delta


@pytest.fixture(scope="module")
def nobody() -> FrontdeskDialogue:
    return FrontdeskDialogue(Agent("nobody"))


def test_a_clients_tool_is_called_by_its_words(nobody: FrontdeskDialogue) -> None:
    assert ask(nobody, "What's the weather in Paris?", WEATHER, ADD) == ("get_weather", {"city": "Paris"})
    assert ask(nobody, "please add 2.5 and 3", WEATHER, ADD) == ("add_numbers", {"a": 2.5, "b": 3})
    assert ask(nobody, "Please add 730 and two.", WEATHER, ADD) == ("add_numbers", {"a": 730, "b": 2})
    assert ask(nobody, "tell me a story", WEATHER, ADD) == NO_MODEL


def test_what_an_intent_knows_well_is_not_given_to_a_clients_tool() -> None:
    desk = FrontdeskDialogue(
        Agent("x", intents=(Intent("parking", ("do you have parking",), reply="Behind the house."),))
    )
    parking = ToolSpec("find_parking", "Finds parking garages.")
    assert ask(desk, "do you have parking", parking) == "Behind the house."


def test_the_choice_is_obeyed(nobody: FrontdeskDialogue) -> None:
    assert ask(nobody, "hello", WEATHER, choice="required")[0] == "get_weather"
    assert ask(nobody, "hello", WEATHER, ADD, choice="add_numbers") == ("add_numbers", {"a": 0, "b": 0})
    assert ask(nobody, "what's the weather in Paris", WEATHER, choice="none") == NO_MODEL
    assert ask(nobody, "hello", choice="required") == NO_MODEL


async def test_a_result_is_read_out() -> None:
    llm = FrontdeskLlm()
    call = await the_call(llm, Prompt((Message("user", "what's the weather in Paris"),), (WEATHER,)))
    done = (Message("user", "what's the weather in Paris"), Message("assistant", call=call))
    result = Message("tool", '{"temperature_c": 21, "sunny": true}', call_id=call.call_id)
    said = await texts(llm, Prompt((*done, result), (WEATHER,), "required"))
    assert "".join(said) == "Temperature c: 21, sunny: yes."


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("It is fine.", "It is fine."),
        ('"ok"', "ok."),
        ("[1, 2]", "1, 2."),
        ("{}", ""),
        ('{"a": {"b": null}}', "A: b nothing."),
        ('{"problem": null, "reference": 5}', "Reference: 5."),
        ('"Maria is on the line."', "Maria is on the line."),
    ],
)
def test_results_as_sentences(result: str, said: str) -> None:
    assert readable(result) == said


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
    return at_once(guess.arguments(ToolSpec("t", "", schema), text))


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
    assert guess.phrase(text) == value


# --- details -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slot", "text", "strict", "loose"),
    [
        ("people", "for two", "2", "2"),
        ("people", "for to", "2", "2"),
        ("people", "for for", "4", "4"),
        ("people", "to", "", "2"),
        ("people", "we are for", "", "4"),
        ("people", "sex", "", "6"),
        ("people", "twenty five people", "25", "25"),
        ("people", "just my wife and me", "2", "2"),
        ("people", "only me", "1", "1"),
        ("people", "two adults and two kids", "4", "4"),
        ("people", "a table for eight o'clock", "", "8"),
        ("day", "on friday", "Friday", "Friday"),
        ("day", "next tuesday evening", "next Tuesday", "next Tuesday"),
        ("day", "fry day", "Friday", "Friday"),
        ("day", "choose day", "Tuesday", "Tuesday"),
        ("day", "thirsty", "", "Thursday"),
        ("day", "tomorrow at seven", "tomorrow", "tomorrow"),
        ("day", "the fifth of may", "the 5th of May", "the 5th of May"),
        ("day", "may twenty first", "the 21st of May", "the 21st of May"),
        ("day", "june 3", "the 3rd of June", "the 3rd of June"),
        ("day", "may i come", "", ""),
        ("time", "half past seven", "7:30", "7:30"),
        ("time", "quarter to eight", "7:45", "7:45"),
        ("time", "quarter to one", "12:45", "12:45"),
        ("time", "seven thirty p.m.", "7:30 pm", "7:30 pm"),
        ("time", "7:30 pm", "7:30 pm", "7:30 pm"),
        ("time", "nineteen thirty", "19:30", "19:30"),
        ("time", "at seven", "7 o'clock", "7 o'clock"),
        ("time", "745", "7:45", "7:45"),
        ("time", "1930", "19:30", "19:30"),
        ("time", "407", "", "4:07"),
        ("time", "0745", "", "7:45"),
        ("people", "250 people", "250", "250"),
        ("phone", "eight hundred five five five one two one two", "8005551212", "8005551212"),
        ("name", "1930", "", ""),
        ("phone", "5550142", "5550142", "5550142"),
        ("time", "seven", "", "7 o'clock"),
        ("time", "seven in the evening", "7 pm", "7 pm"),
        ("time", "at noon", "noon", "noon"),
        ("time", "for two people", "", "2 o'clock"),
        ("name", "my name is ann brown", "Ann Brown", "Ann Brown"),
        ("name", "ann brown", "", "Ann Brown"),
        ("name", "it's for ann brown please", "", "Ann Brown"),
        ("name", "b r o w n", "", "Brown"),
        ("name", "ann brown spelled b r a u n", "Ann Braun", "Ann Braun"),
        ("name", "my name is spelled b as in bravo a double l", "Ball", "Ball"),
        ("name", "no the name is wrong", "", ""),
        ("name", "what is your name", "", ""),
        ("name", "i do not want to say that", "", ""),
        ("day", "yesterday", "yesterday", "yesterday"),
        ("day", "last friday", "last Friday", "last Friday"),
        ("phone", "triple five oh one double two", "5550122", "5550122"),
        ("change", "anything", "", ""),
        ("phone", "five five five oh one four two", "5550142", "5550142"),
        ("phone", "five", "", ""),
        ("wish", "a window seat", "", "a window seat"),
    ],
)
def test_details(slot: str, text: str, strict: str, loose: str) -> None:
    assert (slots.read(slot, text, False), slots.read(slot, text, True)) == (strict, loose)


@pytest.mark.parametrize(
    ("slot", "text", "value"),
    [
        ("account", "it is number four", "it is number four"),
        ("country", "two", "two"),
        ("discount_code", "for two", "for two"),
        ("contact_name", "ann brown", "Ann Brown"),
        ("party_name", "ann brown", "Ann Brown"),
        ("how_many", "to", "2"),
        ("guest_count", "to", "2"),
        ("sometimes", "at seven", "at seven"),
        ("time_of_day", "seven", "7 o'clock"),
        ("Phone_Number", "555 0142", "5550142"),
        ("name", "hold on", ""),
        ("name", "one moment", ""),
    ],
)
def test_a_slot_is_read_by_the_parts_of_its_name(slot: str, text: str, value: str) -> None:
    assert slots.read(slot, text, True) == value


def test_the_page_names_every_part() -> None:
    page = (FILE.parent / "README.md").read_text(encoding="utf-8").partition("**How slots are read.**")[2]
    rows = re.findall(r"^\| (`.+`) \|", page, re.MULTILINE)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == [parts.split() for parts, _ in slots.KINDS]


@given(st.text(max_size=60), st.booleans(), st.sampled_from(["people", "day", "time", "name", "phone", "wish"]))
def test_details_are_read_from_any_text(text: str, asked: bool, slot: str) -> None:
    assert isinstance(slots.read(slot, text, asked), str)


def test_templates() -> None:
    assert fill("For {people},  at {time}. {result}", {"people": "2", "time": "7"}) == "For 2, at 7. {result}"


def test_words() -> None:
    expected = "i would like two what is it can not at seven thirty p m o'neil"
    assert " ".join(words("I'd like 2, what's it? Can't at 7:30 p.m. O'Neil’s")) == expected


def test_sounds() -> None:
    assert alike("lunch", "launch") == 1
    assert alike("dinner", "thinner") > 0.7 > alike("dinner", "parking")
    assert alike("", "") == 0


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_distance_is_a_distance(a: str, b: str) -> None:
    assert distance(a, b) == distance(b, a)
    assert (distance(a, b) == 0) == (a == b)

"""The front desk: understands what is said and misheard, fills bookings, calls tools, keeps nothing between calls."""

import json
import time
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.contract import texts, the_call
from voicepipe.agent import Agent, Intent, ToolSpec
from voicepipe.engines.base import Message, Prompt, ToolCall
from voicepipe.engines.frontdesk import FrontdeskLlm, guess, slots
from voicepipe.engines.frontdesk.dialogue import ACCEPT, MARGIN, Dialogue, State, fill
from voicepipe.engines.frontdesk.llm import readable, reply
from voicepipe.engines.frontdesk.sound import alike, distance, words
from voicepipe.tools_demo import book_table

FILE = Path(__file__).parents[2] / "configs" / "agents" / "front-desk.toml"
AGENT = msgspec.convert(tomllib.loads(FILE.read_text()), Agent)
TRANSFER = ToolSpec("transfer_call", "Puts the caller through.")


@pytest.fixture(scope="module")
def desk() -> Dialogue:
    return Dialogue(AGENT)


class Caller:
    """One conversation, its tools run as the server would run them."""

    def __init__(self, desk: Dialogue, tools: tuple[ToolSpec, ...] | None = None) -> None:
        self.desk = desk
        self.tools = tuple(tool.spec for tool in AGENT.tools) if tools is None else tools
        self.messages = [Message("system", AGENT.instructions), Message("assistant", AGENT.greeting)]
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def say(self, text: str, result: str = "") -> str:
        self.messages.append(Message("user", text))
        return self._answer(result)

    def _answer(self, result: str) -> str:
        said = ""
        for delta in reply(self.desk, Prompt(tuple(self.messages), self.tools, agent=AGENT)):
            if isinstance(delta, str):
                said += delta
                self.messages.append(Message("assistant", delta))
                continue
            arguments = json.loads(delta.arguments)
            self.calls.append((delta.name, arguments))
            if delta.name == "book_table":
                self.messages.append(Message("assistant", call=delta))
                self.messages.append(Message("tool", result or book_table(**arguments), call_id=delta.call_id))
                return self._answer(result)
        return said


@pytest.fixture
def caller(desk: Dialogue) -> Caller:
    return Caller(desk)


@pytest.mark.parametrize(
    ("said", "intent"),
    [
        ("at what hour can one come to eat tonight", "hours"),
        ("could i know your opening ours", "hours"),
        ("would you be open mondays", "monday"),
        ("where in town is your restaurant", "address"),
        ("from the station how do i get to you", "directions"),
        ("is there some barking for guests", "parking"),
        ("might there be a spot for my car", "parking"),
        ("how much is launch", "lunch"),
        ("what's the price for three coarse dinner", "dinner"),
        ("have you got anything for a vegetarian", "vegetarian"),
        ("my boy is allergic to nuts", "allergies"),
        ("would my kids be welcome", "children"),
        ("would my dog be welcome", "dogs"),
        ("do you sell gift of which is", "vouchers"),
        ("we'd be a group of about thirty", "groups"),
        ("can we eat outside on the terrace", "terrace"),
        ("i'd like to preserve a table", "booking"),
        ("got a table for tonight", "booking"),
        ("a human being please", "person"),
        ("are you some kind of robot", "robot"),
        ("thank you kindly", "thanks"),
        ("bye then", "goodbye"),
        ("say that one more time please", "repeat"),
    ],
)
def test_understands_other_words_and_misheard_ones(desk: Dialogue, said: str, intent: str) -> None:
    assert desk.match(said).name == intent
    assert desk.match(said).score >= ACCEPT


def test_understands_its_own_examples(desk: Dialogue) -> None:
    examples = [(intent.name, example) for intent in AGENT.intents for example in intent.examples]
    wrong = [(name, example) for name, example in examples if desk.match(example).name != name]
    assert len(wrong) < 0.01 * len(examples), wrong


@pytest.mark.parametrize(
    "said", ["how high is mount everest", "blue elephants juggle", "", "   ", "mm", "my cat chases green lasers"]
)
def test_rejects_what_it_does_not_know(desk: Dialogue, said: str) -> None:
    match = desk.match(said)
    assert match.score < ACCEPT or match.margin < MARGIN


def test_books_a_table(caller: Caller) -> None:
    assert caller.say("I'd like to book a table.") == "With pleasure. For how many people?"
    assert caller.say("for to") == "For which day?"
    assert caller.say("on friday") == "And at what time?"
    assert caller.say("half past seven").startswith("A table for 2, Friday at 7:30. It is booked")
    assert caller.calls == [("book_table", {"people": 2, "day": "Friday", "time": "7:30"})]


def test_books_in_one_sentence(caller: Caller) -> None:
    caller.say("a table for four people on saturday at eight please")
    assert caller.calls == [("book_table", {"people": 4, "day": "Saturday", "time": "8 o'clock"})]


def test_takes_details_that_were_not_asked_for(caller: Caller) -> None:
    caller.say("i want to reserve a table")
    assert caller.say("tomorrow at seven") == "For how many people?"
    caller.say("two")
    assert caller.calls == [("book_table", {"people": 2, "day": "tomorrow", "time": "7 o'clock"})]


def test_takes_a_detail_back(caller: Caller) -> None:
    caller.say("a table for two at seven on friday")
    assert "8 o'clock" in caller.say("No, eight o'clock!")
    assert "for 3" in caller.say("actually make it three people")
    assert caller.calls[-1][1] == {"people": 3, "day": "Friday", "time": "8 o'clock"}


def test_answers_a_question_in_between_and_asks_again(caller: Caller) -> None:
    caller.say("book a table please")
    assert caller.say("do you have parking").endswith("Parking is free for our guests. For how many people?")
    assert caller.say("parking for two cars, is that possible").endswith("For how many people?")
    assert caller.say("four people") == "For which day?"


def test_asks_again_when_it_understood_nothing(caller: Caller) -> None:
    caller.say("book a table please")
    assert caller.say("brr") == "Sorry, I did not catch that. For how many people?"
    assert caller.say("three") == "For which day?"


def test_drops_a_booking(caller: Caller) -> None:
    caller.say("book a table please")
    assert "how many" not in caller.say("never mind")
    assert caller.say("two") != "For which day?"


def test_repeats(caller: Caller) -> None:
    said = caller.say("what are your opening hours")
    assert caller.say("can you say that again") == said
    assert caller.say("pardon") == said


def test_is_not_understood_in_other_words_each_time(caller: Caller) -> None:
    answers = [caller.say(text) for text in ("blue elephants juggle", "", "zzz")]
    assert answers == list(AGENT.not_understood)
    caller.say("thank you")
    assert caller.say("") == AGENT.not_understood[0]


def test_puts_the_caller_through(desk: Dialogue) -> None:
    caller = Caller(desk, (TRANSFER,))
    assert caller.say("a person please") == "Of course. I will put you through to a colleague."
    assert caller.calls == [("transfer_call", {"to": "colleague"})]
    assert not Caller(desk, ()).calls


def test_a_tool_that_failed_is_admitted(caller: Caller) -> None:
    assert caller.say("a table for two at seven on friday", "Error: no connection") == AGENT.fallback


def test_without_its_tool_it_still_confirms(desk: Dialogue) -> None:
    assert Caller(desk, ()).say("a table for two at seven on friday") == "A table for 2, Friday at 7 o'clock."


def test_a_turn_that_goes_on_replaces_nothing(desk: Dialogue) -> None:
    """A reopened turn is one longer user message, and two user messages in a row are two turns."""
    messages = (Message("user", "book a table"), Message("user", "for four people"))
    assert reply(desk, Prompt(messages, agent=AGENT)) == ["For which day?"]
    assert reply(desk, Prompt((Message("user", "book a table for four people"),), agent=AGENT)) == ["For which day?"]


def test_the_state_is_only_in_the_prompt(desk: Dialogue) -> None:
    first, second = Caller(desk), Caller(desk)
    first.say("book a table please")
    assert second.say("two") != "For which day?"
    assert first.say("two") == "For which day?"


def test_the_open_question_is_the_one_that_was_really_asked(desk: Dialogue) -> None:
    messages = (
        Message("user", "book a table for two"),
        Message("assistant", "Hm. And at what time?"),
        Message("user", "eight"),
    )
    state, _ = desk.hear(desk.fold(messages[:-1]), "eight")
    assert state.values == {"people": "2", "time": "8 o'clock"}


@pytest.mark.parametrize(
    ("instructions", "said"),
    [
        ("Say exactly: Testing one two.", "Testing one two."),
        ('Please say "good morning" to the caller.', "good morning"),
        ("Greet the caller with: Welcome aboard!", "Welcome aboard!"),
        ("Greet the user.", AGENT.greeting),
    ],
)
def test_obeys_instructions_that_leave_no_choice(desk: Dialogue, instructions: str, said: str) -> None:
    messages = (Message("user", "do you have parking"), Message("system", instructions))
    assert "".join(str(delta) for delta in reply(desk, Prompt(messages, agent=AGENT))).startswith(said)


def test_other_instructions_change_nothing(desk: Dialogue) -> None:
    messages = (Message("system", "You are a pirate. Answer briefly."), Message("user", "do you have parking"))
    assert "free" in str(reply(desk, Prompt(messages, agent=AGENT))[0])


def test_speaks_first_when_nothing_was_said(desk: Dialogue) -> None:
    assert reply(desk, Prompt((Message("system", AGENT.instructions),), agent=AGENT)) == [AGENT.greeting]


async def test_without_an_agent_it_echoes() -> None:
    llm = FrontdeskLlm()
    await llm.start()
    assert "".join(await texts(llm, Prompt((Message("user", "The sky is blue."),)))) == "You said: The sky is blue."


async def test_an_agent_that_changed_is_learnt_anew() -> None:
    llm = FrontdeskLlm()
    for said in ("One.", "Two."):
        agent = Agent("x", intents=(Intent("a", ("open the door",), reply=said),))
        assert await texts(llm, Prompt((Message("user", "open the door"),), agent=agent)) == [said]


def test_long_conversations_stay_fast(desk: Dialogue) -> None:
    turns = [Message("user", f"do you have parking for car {number}") for number in range(300)]
    reply(desk, Prompt(tuple(turns), agent=AGENT))
    begun = time.perf_counter()
    reply(desk, Prompt((*turns, Message("user", "where are you")), agent=AGENT))
    assert time.perf_counter() - begun < 0.05


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


def ask(desk: Dialogue, said: str, *tools: ToolSpec, choice: str = "auto") -> Any:
    (delta,) = reply(desk, Prompt((Message("user", said),), tools, choice, agent=desk.agent))
    return (delta.name, json.loads(delta.arguments)) if isinstance(delta, ToolCall) else delta


@pytest.fixture(scope="module")
def nobody() -> Dialogue:
    return Dialogue(Agent("nobody"))


def test_a_clients_tool_is_called_by_its_words(nobody: Dialogue) -> None:
    assert ask(nobody, "What's the weather in Paris?", WEATHER, ADD) == ("get_weather", {"city": "Paris"})
    assert ask(nobody, "please add 2.5 and 3", WEATHER, ADD) == ("add_numbers", {"a": 2.5, "b": 3})
    assert ask(nobody, "tell me a story", WEATHER, ADD) == "You said: tell me a story."


def test_what_an_intent_knows_well_is_not_given_to_a_clients_tool(desk: Dialogue) -> None:
    parking = ToolSpec("find_parking", "Finds parking garages.")
    assert "behind the house" in ask(desk, "do you have parking", parking)


def test_the_choice_is_obeyed(nobody: Dialogue) -> None:
    assert ask(nobody, "hello", WEATHER, choice="required")[0] == "get_weather"
    assert ask(nobody, "hello", WEATHER, ADD, choice="add_numbers") == ("add_numbers", {"a": 0, "b": 0})
    assert ask(nobody, "what's the weather in Paris", WEATHER, choice="none").startswith("You said")
    assert ask(nobody, "hello", choice="required") == "You said: hello."


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


@given(SCHEMAS, st.text(max_size=30))
def test_arguments_are_json_for_any_schema(schema: dict[str, Any], text: str) -> None:
    made = json.loads(guess.arguments(ToolSpec("t", "", schema), text))
    if schema.get("type") == "object":
        assert set(made) == set(schema["required"])


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
        ("time", "seven", "", "7 o'clock"),
        ("time", "seven in the evening", "7 pm", "7 pm"),
        ("time", "at noon", "noon", "noon"),
        ("time", "for two people", "", "2 o'clock"),
        ("name", "my name is ann brown", "Ann Brown", "Ann Brown"),
        ("name", "ann brown", "", "Ann Brown"),
        ("phone", "five five five oh one four two", "5550142", "5550142"),
        ("phone", "five", "", ""),
        ("wish", "a window seat", "", "a window seat"),
    ],
)
def test_details(slot: str, text: str, strict: str, loose: str) -> None:
    read = slots.reader(slot)
    assert (read(text, False), read(text, True)) == (strict, loose)


@given(st.text(max_size=60), st.booleans(), st.sampled_from(["people", "day", "time", "name", "phone", "wish"]))
def test_details_are_read_from_any_text(text: str, asked: bool, slot: str) -> None:
    assert isinstance(slots.reader(slot)(text, asked), str)


VOCABULARY = (
    "a table for two four on friday at seven half past no never mind yes parking person again the fifth of may "
    "tomorrow cancel bye what people"
).split()


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.one_of(st.text(max_size=20), st.lists(st.sampled_from(VOCABULARY), max_size=8).map(" ".join)), max_size=6
    )
)
def test_any_conversation_is_answered(desk: Dialogue, said: list[str]) -> None:
    state = State()
    for text in said:
        state, answer = desk.hear(state, text)
        assert answer.text.strip()


def test_templates() -> None:
    assert fill("For {people},  at {time}. {result}", {"people": "2", "time": "7"}) == "For 2, at 7. {result}"


def test_words() -> None:
    assert words("I'd like 2, what's it? Can't at 7:30 p.m. O'Neil’s") == (
        "i would like 2 what is it can not at 7:30 pm o'neil".split()
    )


def test_sounds() -> None:
    assert alike("lunch", "launch") == 1
    assert alike("dinner", "thinner") > 0.7 > alike("dinner", "parking")
    assert alike("", "") == 0


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_distance_is_a_distance(a: str, b: str) -> None:
    assert distance(a, b) == distance(b, a)
    assert (distance(a, b) == 0) == (a == b)

"""The calls that the nano LLM learns from: the right replies, tools as they are offered, words as they are heard."""

import json
import random
import re
from functools import partial

import pytest

from tests.models.callers import WORDS, framed, heldout, misheard, sentence, spoken, unclear, written
from tests.models.dialogues import ADD, AGENT, BOOK, INTENTS, TRANSFER, Call, call
from tests.models.slots import DAYS, PEOPLE, TIMES
from voicepipe.conversation.prompt import Prompt
from voicepipe.engines.llm.chat import messages

CALLS = [call(seed) for seed in range(150)]


def replies(made: Call) -> list[str]:
    return [message.text for message in made.messages if message.role == "assistant" and message.text]


def test_equal_seeds_make_equal_calls() -> None:
    assert call(7).messages == call(7).messages
    assert call(7).messages != call(8).messages


def test_every_turn_is_answered() -> None:
    for made in CALLS:
        chat = messages(Prompt(tuple(made.messages), made.tools))
        assert chat[-1]["role"] == "assistant" and "tool_calls" not in chat[-1]
        assert len(made.asked) == sum(message.role == "user" for message in made.messages)


def test_only_tools_that_are_offered_are_called_with_what_they_take() -> None:
    offered = {tool.name: tool for tool in (BOOK, TRANSFER, ADD)}
    for made in CALLS:
        for called in filter(None, (message.call for message in made.messages)):
            tool = offered[called.name]
            assert tool in made.tools
            assert set(json.loads(called.arguments)) == set(tool.parameters["properties"])


def test_every_intent_and_every_way_to_book_comes_up() -> None:
    asked = {what for seed in range(400) for what in call(seed).asked}
    assert asked == {*INTENTS, "unclear", "add"}
    said = {reply for made in CALLS for reply in replies(made)}
    assert {"With pleasure. For how many people?", AGENT["greeting"], INTENTS["hours"]["reply"]} <= said


def test_a_booking_is_repeated_with_what_the_tool_said() -> None:
    results = [
        (before.call, result.text, reply.text)
        for made in CALLS
        for before, result, reply in zip(made.messages, made.messages[1:], made.messages[2:], strict=False)
        if before.call and before.call.name == "book_table" and result.text.startswith("It is booked")
    ]
    assert len(results) > 50
    for called, result, reply in results:
        booked = json.loads(called.arguments)
        assert reply == f"A table for {booked['people']}, {booked['day']} at {booked['time']}. {result}"


def test_details_stay_as_they_were_said() -> None:
    kept = "half past seven".split()
    for seed in range(50):
        heard = misheard("for half past seven please", random.Random(seed), 1.0, kept).split()
        assert [word for word in heard if word in kept] == kept


def test_times_are_written_as_they_are_said() -> None:
    said = {form: slot.value for slot in TIMES for form in slot.said}
    assert said["half past seven"] == said["seven thirty"] == said["7:30"] == "7:30"
    assert said["noon"] == "12 o'clock" and said["seven p m"] == "7 o'clock"
    forms = [form for slots in (PEOPLE, DAYS, TIMES) for slot in slots for form in set(slot.said)]
    assert len(forms) - len(set(forms)) < 40, "numbers are people and hours; nothing else has two meanings"


def test_patterns_stand_for_sentences() -> None:
    chance = random.Random(1)
    assert {sentence("is it (big|) {on}", chance) for _ in range(300)} >= {"is it", "is it big", "is it big today"}
    for patterns in WORDS["says"].values():
        for pattern in patterns:
            for _ in range(10):
                assert re.fullmatch(r"[a-z']+( [a-z']+)*", sentence(pattern, chance)), pattern


@pytest.mark.parametrize("held_out", [True, False])
def test_sentences_to_test_with_are_never_trained_on(held_out: bool) -> None:
    made = Call(random.Random(1), (), held_out)
    for intent in WORDS["says"]:
        asked = [made.worded(partial(made.sentence, intent)) for _ in range(20)]
        assert all(heldout(said) == held_out for said in asked)


@pytest.mark.parametrize("seed", range(20))
def test_words_are_misheard(seed: int) -> None:
    chance = random.Random(seed)
    said = "can i book a table at the restaurant"
    assert said in framed(said, chance)
    assert misheard(said, chance, 0.0) == said
    assert misheard(said, chance, 1.0) != said
    assert spoken(said, chance, noise=(0.0,)).lower().rstrip("?") == said
    assert isinstance(unclear(chance), str)


def test_written_as_recognisers_do() -> None:
    chance = random.Random(1)
    assert written("hello are you open on monday", chance).startswith("Hello, are you open on Monday")
    assert written("what time do i come", chance) == "What time do I come?"

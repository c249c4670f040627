"""The front desk as an engine: a client's own tools, agents that change, and others who get their turn meanwhile."""

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from tests.engines.contract import texts, the_call
from tests.engines.llm.frontdesk.front_desk import AT_ONCE, reply
from voicepipe.agent import Agent, Intent, ToolSpec
from voicepipe.call_settings import NOWHERE
from voicepipe.conversation.variables import filled
from voicepipe.engines.base import Answering, Message, Prompt, ToolCall
from voicepipe.engines.llm.frontdesk import steps
from voicepipe.engines.llm.frontdesk.frontdesk_dialogue import FrontdeskDialogue
from voicepipe.engines.llm.frontdesk.frontdesk_llm import FrontdeskLlm
from voicepipe.engines.llm.frontdesk.matcher import Matcher
from voicepipe.languages.en.language import TEXTS

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
    assert ask(nobody, "tell me a story", WEATHER, ADD) == TEXTS.no_model


def test_what_an_intent_knows_well_is_not_given_to_a_clients_tool() -> None:
    desk = FrontdeskDialogue(
        Agent("x", intents=(Intent("parking", ("do you have parking",), reply="Behind the house."),))
    )
    parking = ToolSpec("find_parking", "Finds parking garages.")
    assert ask(desk, "do you have parking", parking) == "Behind the house."


def test_the_choice_is_obeyed(nobody: FrontdeskDialogue) -> None:
    assert ask(nobody, "hello", WEATHER, choice="required")[0] == "get_weather"
    assert ask(nobody, "hello", WEATHER, ADD, choice="add_numbers") == ("add_numbers", {"a": 0, "b": 0})
    assert ask(nobody, "what's the weather in Paris", WEATHER, choice="none") == TEXTS.no_model
    assert ask(nobody, "hello", choice="required") == TEXTS.no_model


async def test_a_result_is_read_out() -> None:
    llm = FrontdeskLlm()
    call = await the_call(llm, Prompt((Message("user", "what's the weather in Paris"),), (WEATHER,)))
    done = (Message("user", "what's the weather in Paris"), Message("assistant", call=call))
    result = Message("tool", '{"temperature_c": 21, "sunny": true}', call_id=call.call_id)
    said = await texts(llm, Prompt((*done, result), (WEATHER,), "required"))
    assert "".join(said) == "Temperature c: 21, sunny: yes."


async def test_without_intents_it_says_that_it_knows_nothing() -> None:
    """It said the caller's words again, as if that were an answer."""
    llm = FrontdeskLlm()
    await llm.start()
    assert "".join(await texts(llm, Prompt((Message("user", "The sky is blue."),)))) == TEXTS.no_model
    assert "Agent clinic has no [[intents]]" in llm.answering(Agent("clinic")).lacks
    assert llm.answering(AT_ONCE) == Answering("the embedded engine")


async def test_an_agent_that_changed_is_learnt_anew() -> None:
    llm = FrontdeskLlm()
    for said in ("One.", "Two."):
        agent = Agent("x", intents=(Intent("a", ("open the door",), reply=said),))
        assert await texts(llm, Prompt((Message("user", "open the door"),), agent=agent)) == [said]


async def test_others_get_the_loop_while_a_long_conversation_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "BREATH_S", 0)
    llm, turns = FrontdeskLlm(), 0
    await llm.start()
    said = [Message("user" if n % 2 else "assistant", f"what about number {n} " * 200) for n in range(20)]
    prompt = Prompt((*said, Message("user", "hello")), agent=AT_ONCE)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    await llm.warm(prompt)
    beside = asyncio.create_task(others())
    assert [delta async for delta in llm.generate(prompt)]
    beside.cancel()
    assert turns >= 10, "one between any two of the caller's turns"


async def test_an_agent_whose_texts_are_filled_in_for_a_call_is_not_learnt_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learnt: list[int] = []
    init = Matcher.__init__

    def counted(matcher: Matcher, intents: Sequence[Intent]) -> None:
        learnt.append(len(intents))
        init(matcher, intents)

    monkeypatch.setattr(Matcher, "__init__", counted)
    door = Intent("a", ("open the door",), reply="For {{name}} I do.")
    agent = Agent("x", intents=(door, Intent("b", ("who are you",))), variables={"name": "you"})
    llm = FrontdeskLlm()
    await llm.warm(Prompt(agent=agent))
    for number in range(200):
        its = filled(agent, {"name": f"guest{number}"}, NOWHERE, datetime(2026, 11, 30, 14, 5))
        prompt = Prompt((Message("user", "open the door"),), agent=its)
        assert "".join(await texts(llm, prompt)) == f"For guest{number} I do."
    assert learnt == [2]

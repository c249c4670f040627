"""What the front desk does on the event loop is done in small steps, whatever clients send within `[limits]`.

The bounds are generous: a step takes 20 ms at most on a small machine, and took seconds where it was not bounded.
"""

import json
import string
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

import pytest

from tests.engines.llm.frontdesk.front_desk import FRONT_DESK as AGENT
from tests.engines.llm.frontdesk.front_desk import at_once
from tests.support.stopwatch import watched
from voicepipe.agent import Agent, ToolSpec
from voicepipe.config import LimitsConfig
from voicepipe.engines.base import Delta, Message, Prompt, ToolCall
from voicepipe.engines.llm.frontdesk import client_tools
from voicepipe.engines.llm.frontdesk.frontdesk_llm import FrontdeskLlm
from voicepipe.engines.llm.frontdesk.results import readable
from voicepipe.engines.llm.frontdesk.sounds_alike import alike

pytestmark = pytest.mark.slow

LIMITS = LimitsConfig()
LONGEST_S = 0.3
NOBODY = Agent("nobody")

Made = tuple[Delta, ...]


async def longest_step(llm: FrontdeskLlm, prompt: Prompt) -> tuple[float, Made]:
    """Processor time for which the front desk kept the loop from others, and what it said."""
    await llm.warm(prompt)
    async with watched() as longest:
        made = tuple([delta async for delta in llm.generate(prompt)])
    return longest.step_s, made


def names(number: int) -> list[str]:
    """Short ones, each once."""
    return ["".join(letters) for letters in islice(product(string.ascii_lowercase, repeat=3), number)]


def words_of(size: int, letters: int) -> Iterator[str]:
    """Words that differ, `size` characters of them with the spaces between them."""
    every = product(string.ascii_lowercase, repeat=letters)
    return ("".join(next(every)) for _ in range(size // (letters + 1)))


def tool(parameters: dict[str, Any], name: str = "fill_in", description: str = "") -> ToolSpec:
    assert len(json.dumps(parameters, separators=(",", ":"))) + len(description) < LIMITS.session_bytes
    return ToolSpec(name, description, parameters)


def forced(text: str, *tools: ToolSpec) -> Prompt:
    return Prompt((Message("user", text),), tools, "required", agent=NOBODY)


MANY_NAMES = tool({"type": "object", "required": names(15_000)})
MANY_YES_OR_NO = tool({"type": "object", "properties": {name: {"type": "boolean"} for name in names(5000)}})
MANY_OPTIONS = tool({"type": "object", "properties": {"a": {"enum": [f"{'a' * 85}Z{name}" for name in names(1300)]}}})
MANY_ENUMS = tool(
    {"type": "object", "properties": {name: {"enum": [f"{'a' * 60}b{'a' * 20}"] * 10} for name in names(140)}}
)
LONG_TOOL = tool({}, description=" ".join(words_of(130_000, 5)))
MANY_TOOLS = tuple(tool({}, f"tool_{name}", " ".join(words_of(170, 6)).replace("aaaa", name)) for name in names(600))
SHORT_TOOLS = tuple(tool({}, f"{name}Tool{name}") for name in names(3000))


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param(forced("a " * 240, MANY_NAMES), id="names"),
        pytest.param(forced("in " * 160, MANY_NAMES), id="prepositions"),
        pytest.param(forced("word " * 390, MANY_YES_OR_NO), id="yes or no"),
        pytest.param(forced("“" * 490 + "?" * 1500, MANY_NAMES), id="quotes"),
        pytest.param(forced("a" * 2000, MANY_OPTIONS), id="options"),
        pytest.param(forced("a" * 2000, MANY_ENUMS), id="enums"),
        pytest.param(forced("hello", LONG_TOOL), id="a long tool"),
        pytest.param(forced(" ".join(words_of(2000, 5)), *MANY_TOOLS), id="tools"),
        pytest.param(forced("hello", *SHORT_TOOLS), id="short tools"),
    ],
)  # fmt: skip
async def test_a_clients_tools_keep_nobody_waiting(prompt: Prompt) -> None:
    longest, made = await longest_step(FrontdeskLlm(), prompt)

    assert longest < LONGEST_S
    assert isinstance(made[0], ToolCall)
    assert len(made[0].arguments) < 2 * LIMITS.session_bytes


def results(number: int) -> Iterator[Message]:
    """Of tools that were called and whose results the agent has not told yet."""
    for n in range(number):
        yield Message("assistant", call=ToolCall(f"call_{n}", "look_up", "{}"))
        yield Message("tool", '{"found": true}', call_id=f"call_{n}")


LONG_RESULT = json.dumps(dict.fromkeys(names(2700), [1, True, None]))
assert len(LONG_RESULT) < LIMITS.item_bytes


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param((Message("user", "hi"), *results(990), Message("user", "and now?")), id="results"),
        pytest.param(
            (*(Message("user", f"{n} cars") for n in range(660)), *results(660), Message("user", "well")),
            id="results after much was said",
        ),
        pytest.param((Message("user", "hi"), *[Message("tool", LONG_RESULT)] * 15), id="long results"),
        pytest.param([Message("assistant", "For ho " * 9000)] * 15 + [Message("user", "hi")], id="long replies"),
        pytest.param([Message("system", "!" * 65_000)] * 15 + [Message("user", "!" * 65_000)], id="instructions"),
        pytest.param([Message("system", "say " + "with " * 12_000)] * 15 + [Message("user", "hi")], id="orders"),
        pytest.param((Message("system", "Say: " + "a " * 65_000), Message("user", "hi")), id="a long order"),
        pytest.param([Message("system", "greet with " * 9)] * 1990 + [Message("user", "hi")], id="many orders"),
        pytest.param([Message("system", "greet " + "the " * 16_000)] * 15 + [Message("user", "hi")], id="greetings"),
        pytest.param([Message("user", "The caller pressed the keys" + " 1" * 32_000)] * 15, id="keys"),
    ],
)  # fmt: skip
async def test_a_long_conversation_keeps_nobody_waiting(messages: list[Message]) -> None:
    assert len(messages) <= LIMITS.items
    longest, made = await longest_step(FrontdeskLlm(), Prompt(tuple(messages), agent=AGENT))

    assert longest < LONGEST_S
    assert made


async def test_conversations_that_are_new_each_time_keep_nobody_waiting() -> None:
    """What is kept of texts that were matched is full in the middle of the third: what went is not read in one step."""
    llm = FrontdeskLlm()
    for number in range(3):
        told = tuple(Message("user", f"{number} {n} {' '.join(words_of(200, 4))}") for n in range(1900))
        longest, _ = await longest_step(llm, Prompt(told, agent=AGENT))
        assert longest < LONGEST_S


@pytest.mark.parametrize("asked", ["For how many people?", "For which day?", "At what time?"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("q" + "aqi" * 660, id="a word"),
        pytest.param("q" + "aqi" * 330 + " " + "wip" * 330, id="two words"),
        pytest.param(" ".join(words_of(2000, 5)), id="words"),
        pytest.param(" ".join(f"{word} day" for word in words_of(1100, 5)), id="days"),
        pytest.param("1" * 2000, id="digits"),
        pytest.param("a" + " " * 1990 + "b", id="spaces"),
    ],
)  # fmt: skip
async def test_an_answer_of_any_length_keeps_nobody_waiting(asked: str, text: str) -> None:
    messages = (Message("user", "a table please"), Message("assistant", asked), Message("user", text))

    longest, made = await longest_step(FrontdeskLlm(), Prompt(messages, agent=AGENT))

    assert longest < LONGEST_S / 3
    assert made


def test_words_of_which_one_is_far_longer_do_not_sound_alike() -> None:
    assert alike("seven", "seven" * 400) == 0


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: {"properties": {"a": inner}},
        lambda inner: {"type": "array", "items": inner},
        lambda inner: {"anyOf": [inner]},
    ],
    ids=["properties", "items", "anyOf"],
)
def test_a_schema_of_many_levels_is_filled_in_as_far_as_it_is_read(wrap: Callable[[Any], dict[str, Any]]) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        schema = wrap(schema)

    json.loads(at_once(client_tools.arguments(ToolSpec("t", "", schema), "for Friday")))


def test_only_so_many_values_are_filled_in() -> None:
    made = json.loads(at_once(client_tools.arguments(MANY_NAMES, "for Friday")))

    assert list(made) == names(15_000)[: len(made)]
    assert 50 <= len(made) <= client_tools.MOST


def test_a_value_is_found_behind_a_line_break() -> None:
    assert client_tools.phrase("Look it up\nin Paris now") == "Paris"
    assert client_tools.phrase("look for\nred shoes\nin blue") == "blue"


def test_a_result_of_many_levels_is_told_as_it_is() -> None:
    for deep in (300, 600, 20_000):
        nested = "[" * deep + "]" * deep
        assert isinstance(readable(nested), str)

"""Which results a reply tells, and what is withdrawn of it."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from voicepipe.agent import Tool
from voicepipe.call.draft import Draft, Telling
from voicepipe.call.errands import Errand, Errands
from voicepipe.call.studio import Order, Studio
from voicepipe.config import LadderConfig
from voicepipe.conversation.history import History, Ids
from voicepipe.conversation.prompt import Prompt, ToolCall
from voicepipe.conversation.timing import TurnRecord


def begin(tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str) -> "asyncio.Task[str]":
    async def done() -> str:
        return "Booked."

    return asyncio.ensure_future(done())


@pytest.fixture
def errands() -> Errands:
    return Errands(History(), Ids("1"), begin)


async def done(errands: Errands, number: int = 0) -> Errand:
    """A tool that is over, and whose result no reply has told."""
    errand = errands.begin(Tool("book"), ToolCall(f"c{number}", "book", f'{{"n": {number}}}'), {}, remembered=True)
    await errand.wait()
    return errand


async def test_a_result_is_told_by_the_first_sentence_of_an_answer_that_knows_it(errands: Errands) -> None:
    telling = Telling(errands)
    telling.knows = [await done(errands)]
    assert errands.untold() == telling.knows
    telling.says(0, [800])
    assert errands.untold() == []
    assert telling.broke_off(heard=800) == []


async def test_of_a_reply_that_breaks_off_before_a_whole_sentence_nothing_was_told(errands: Errands) -> None:
    telling = Telling(errands)
    telling.knows = [errand := await done(errands)]
    telling.says(0, [800])
    assert telling.broke_off(heard=799) == [errand] == errands.untold()


async def test_a_result_that_comes_later_is_told_by_a_later_sentence(errands: Errands) -> None:
    telling = Telling(errands)
    telling.knows = [first := await done(errands, 1)]
    telling.says(0, [500])
    telling.knows.append(second := await done(errands, 2))
    telling.says(0, [900])
    assert telling.broke_off(heard=600) == [second] and first not in errands.untold()


async def test_an_answer_that_ends_in_calls_of_tools_tells_nothing(errands: Errands) -> None:
    telling = Telling(errands)
    telling.knows = [errand := await done(errands)]
    telling.says(0, [800])
    telling.calls_tools()
    assert errands.untold() == [errand]
    telling.says(0, [900])
    assert errands.untold() == [errand], "words of the answer before"
    telling.says(1, [1500])
    assert errands.untold() == []


def draft(errands: Errands) -> Draft:
    now = iter(range(10, 100, 10))
    studio = SimpleNamespace(errands=errands, ladder=LadderConfig(), clock=lambda: float(next(now)))
    settings: Any = SimpleNamespace(modality="audio")
    return Draft(cast(Studio, studio), Order(Prompt, settings), TurnRecord("turn_1"))


def test_what_the_model_takes_back_is_of_another_take(errands: Errands) -> None:
    one = draft(errands)
    before, one.ladder.answering = one.take, True
    one.withdraw()
    assert before.withdrawn and not one.take.withdrawn
    assert one.ladder.withdrawn and not one.ladder.answering


def test_nothing_is_noted_of_a_reply_that_is_over(errands: Errands) -> None:
    one = draft(errands)
    one.stamp("phrase")
    one.over = True
    one.stamp("speech")
    assert one.record.stamps == {"phrase": 10.0}

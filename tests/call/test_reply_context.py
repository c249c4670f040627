"""Which results a reply tells, and what is withdrawn of it."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from voicepipe.agent import Tool
from voicepipe.call.call_context import CallContext, ReplyOrder
from voicepipe.call.reply_context import ReplyContext, ResultDelivery
from voicepipe.call.tool_run import ToolRun
from voicepipe.call.tool_runs import ToolRuns
from voicepipe.config import LadderConfig
from voicepipe.conversation.history import History, Ids
from voicepipe.conversation.prompt import Prompt, ToolCall
from voicepipe.conversation.timing import TurnRecord
from voicepipe.tools.progress import Tell


def begin(tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str, tell: Tell) -> "asyncio.Task[str]":
    async def done() -> str:
        return "Booked."

    return asyncio.ensure_future(done())


@pytest.fixture
def tool_runs() -> ToolRuns:
    return ToolRuns(History(), Ids("1"), begin)


async def done(tool_runs: ToolRuns, number: int = 0) -> ToolRun:
    """A tool that is over, and whose result no reply has told."""
    tool_run = tool_runs.begin(Tool("book"), ToolCall(f"c{number}", "book", f'{{"n": {number}}}'), {}, remembered=True)
    await tool_run.wait()
    return tool_run


async def test_a_result_is_told_by_the_first_sentence_of_an_answer_that_knows_it(tool_runs: ToolRuns) -> None:
    delivery = ResultDelivery(tool_runs)
    delivery.knows = [await done(tool_runs)]
    assert tool_runs.due() == delivery.knows
    delivery.says(0, [800])
    assert tool_runs.due() == []
    assert delivery.broke_off(heard=800) == []


async def test_of_a_reply_that_breaks_off_before_a_whole_sentence_nothing_was_told(tool_runs: ToolRuns) -> None:
    delivery = ResultDelivery(tool_runs)
    delivery.knows = [tool_run := await done(tool_runs)]
    delivery.says(0, [800])
    assert delivery.broke_off(heard=799) == [tool_run] == tool_runs.due()


async def test_a_result_that_comes_later_is_told_by_a_later_sentence(tool_runs: ToolRuns) -> None:
    delivery = ResultDelivery(tool_runs)
    delivery.knows = [first := await done(tool_runs, 1)]
    delivery.says(0, [500])
    delivery.knows.append(second := await done(tool_runs, 2))
    delivery.says(0, [900])
    assert delivery.broke_off(heard=600) == [second] and first not in tool_runs.due()


async def test_an_answer_that_ends_in_calls_of_tools_tells_nothing(tool_runs: ToolRuns) -> None:
    delivery = ResultDelivery(tool_runs)
    delivery.knows = [tool_run := await done(tool_runs)]
    delivery.says(0, [800])
    delivery.calls_tools()
    assert tool_runs.due() == [tool_run]
    delivery.says(0, [900])
    assert tool_runs.due() == [tool_run], "words of the answer before"
    delivery.says(1, [1500])
    assert tool_runs.due() == []


def reply_context(tool_runs: ToolRuns) -> ReplyContext:
    now = iter(range(10, 100, 10))
    context = SimpleNamespace(tool_runs=tool_runs, ladder=LadderConfig(), clock=lambda: float(next(now)))
    settings: Any = SimpleNamespace(modality="audio")
    return ReplyContext(cast(CallContext, context), ReplyOrder(Prompt, settings), TurnRecord("turn_1"))


def test_what_the_model_takes_back_is_of_another_take(tool_runs: ToolRuns) -> None:
    one = reply_context(tool_runs)
    before, one.late_reply.answering = one.draft, True
    one.withdraw()
    assert before.withdrawn and not one.draft.withdrawn
    assert one.late_reply.withdrawn and not one.late_reply.answering


def test_nothing_is_noted_of_a_reply_that_is_over(tool_runs: ToolRuns) -> None:
    one = reply_context(tool_runs)
    one.stamp("phrase")
    one.over = True
    one.stamp("speech")
    assert one.record.stamps == {"phrase": 10.0}

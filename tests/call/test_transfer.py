"""Callers who are put through to a person. In virtual time."""

import asyncio
from typing import Any

import pytest

from tests.support.scenario import Does, Scenario, Transfers, play
from voicepipe.base.errors import TransferFailed
from voicepipe.call.call import Call
from voicepipe.conversation.events import ReplyDone

pytestmark = pytest.mark.virtual_time


async def test_an_agent_with_nothing_to_say_when_a_transfer_fails_does_not_ask_the_model() -> None:
    async def transfers(call: Call) -> None:
        await asyncio.sleep(0.5)
        call.transfer("sip:ann@example.com")

    silent = Scenario(about="", hears=[], says=[], length_ms=4000, agent={"transfer_failed": ""},
                      transfers=Transfers(500, "busy"))  # fmt: skip
    recording = await play(silent, asks=transfers)
    assert recording.llm.prompts == [] and not [event for _, event in recording.events if isinstance(event, ReplyDone)]


TO = "sip:ann@example.com"


def calling(transfers: Transfers | None, **changes: Any) -> Scenario:
    return Scenario(about="", hears=[], says=[], length_ms=9000, transfers=transfers, **changes)


async def test_who_is_put_through_leaves_the_call_with_where_to() -> None:
    recording = await play(calling(Transfers(2000), does=[Does(500, "transfer", TO)]))
    assert recording.line.transferred == [TO] and recording.story == [f"ended: transferred {TO}"]
    assert 2400 < recording.line.now_ms() < 2700


async def test_one_attempt_is_made_at_a_time_and_another_after_it_has_failed() -> None:
    refused: list[str] = []

    async def tries(call: Call) -> None:
        for wait_s in (0.5, 0.5, 2.0):
            await asyncio.sleep(wait_s)
            try:
                call.transfer(TO)
            except TransferFailed as error:
                refused.append(str(error))

    agent = {"transfer_failed": "Nobody is there."}
    recording = await play(calling(Transfers(1500, "busy"), agent=agent), asks=tries)
    assert refused == ["this caller is being transferred already"]
    assert recording.line.transferred == [TO, TO]
    assert recording.story.count("agent (completed): Nobody is there.") == 2


async def test_nobody_who_answers_in_time_is_a_failure() -> None:
    agent = {"transfer_failed": "Nobody is there.", "transfer_ms": 1000}
    recording = await play(calling(Transfers(5000), agent=agent, does=[Does(500, "transfer", TO)]))
    assert "agent (completed): Nobody is there." in recording.story
    assert 1500 <= (recording.audible(0) or 0) < 1700


async def test_a_line_that_cannot_transfer_says_so() -> None:
    recording = await play(calling(None, does=[Does(500, "transfer", TO)]))
    assert recording.refused == ["TransferFailed"] and recording.line.transferred == []

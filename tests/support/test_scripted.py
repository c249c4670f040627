"""Engines whose words and times are given to them: they pass the contract."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from tests.engines.contract import AsrContract, ToolContract, TtsContract
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts
from voicepipe.audio import RATE
from voicepipe.engines.base import Asr, Delta, Llm, Message, Prompt, ToolCall, Tts

SCRIPTED_REPLIES: dict[str, Delta | Sequence[Delta]] = {
    "what are your opening hours": "From noon to ten. Every day of the week.",
    "5": "That makes 5.",
    "add 2 and 3": [ToolCall("call_1", "add", '{"a": 2, "b": 3}')],
}


class TestScriptedAsr(AsrContract):
    @staticmethod
    def factory() -> Asr:
        return ScriptedAsr(["hello how are you"])


class TestScriptedLlm(ToolContract):
    @staticmethod
    def factory() -> Llm:
        return ScriptedLlm(SCRIPTED_REPLIES)


class TestScriptedTts(TtsContract):
    @staticmethod
    def factory() -> Tts:
        return ScriptedTts()


@pytest.mark.virtual_time
async def test_scripted_engines_take_the_time_that_is_set() -> None:
    loop = asyncio.get_running_loop()
    llm = ScriptedLlm({"hello": "One two three."}, first_token_ms=25, token_ms=7)
    begun = loop.time()
    times = [round(1000 * (loop.time() - begun)) async for _ in llm.generate(Prompt((Message("user", "Hello"),)))]
    assert times == [25, 32, 39]
    begun = loop.time()
    assert len([piece async for piece in ScriptedTts(first_ms=60).speak("hello")]) == 1
    assert loop.time() - begun == pytest.approx(0.06)


@pytest.mark.virtual_time
async def test_partials_grow_with_the_sound() -> None:
    partials: list[str] = []
    asr = ScriptedAsr([[(0, "hello"), (1600, "you")], "next time"])
    stream = asr.stream(lambda partial: partials.append(partial.text))
    for _ in range(15):
        stream.feed(np.zeros(160, np.int16))
        await asyncio.sleep(0.01)
    assert partials == ["hello", "hello you"]
    second = asr.stream(lambda partial: None)
    second.feed(np.zeros(RATE, np.int16))
    assert (await second.finish()).text == "next time"

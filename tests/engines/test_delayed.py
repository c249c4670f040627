"""Engines with the delays of a GPU added."""

import asyncio
from collections.abc import Awaitable

import numpy as np
import pytest

from tests.engines.contract import AsrContract, ToolContract, TtsContract, texts, whole
from tests.support.scripted import (
    ScriptedAsr,
    ScriptedLlm,
    ScriptedTts,
    ScriptedVad,
)
from tests.support.test_scripted import SCRIPTED_REPLIES
from voicepipe.config.engine_config import DelaysConfig
from voicepipe.engines.base import Asr, Engines, Llm, Message, Prompt, Tts
from voicepipe.engines.delayed import DelayedAsr, DelayedLlm, DelayedTts, delayed


class TestDelayedAsr(AsrContract):
    @staticmethod
    def factory() -> Asr:
        return DelayedAsr(ScriptedAsr(["hello how are you"]), asr_ms=5)


class TestDelayedLlm(ToolContract):
    @staticmethod
    def factory() -> Llm:
        return DelayedLlm(ScriptedLlm(SCRIPTED_REPLIES), first_token_ms=2, token_ms=1)


class TestDelayedTts(TtsContract):
    @staticmethod
    def factory() -> Tts:
        return DelayedTts(ScriptedTts(), tts_ms=2)


@pytest.mark.virtual_time
async def test_gpu_like_delays() -> None:
    loop = asyncio.get_running_loop()
    plain = Engines(ScriptedVad(), ScriptedAsr(["hello"]), ScriptedLlm({"a": "One two."}), ScriptedTts())
    engines = delayed(plain, DelaysConfig(asr_ms=60, first_token_ms=25, token_ms=7, tts_ms=40))
    assert delayed(plain, DelaysConfig()) == plain

    async def took(work: Awaitable[object]) -> int:
        begun = loop.time()
        await work
        return round(1000 * (loop.time() - begun))

    stream = engines.asr.stream(lambda partial: None)
    stream.feed(np.zeros(320, np.int16))
    assert await took(stream.settle()) == 60
    assert await took(stream.finish()) == 0, "what is settled costs nothing more"
    stream = engines.asr.stream(lambda partial: None)
    stream.feed(np.zeros(320, np.int16))
    assert await took(stream.finish()) == 60
    assert await took(texts(engines.llm, Prompt((Message("user", "a"),)))) == 32
    assert await took(whole(engines.tts, "hello")) == 40
    assert engines.tts.rate == plain.tts.rate and engines.tts.voices() == plain.tts.voices()

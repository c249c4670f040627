"""Every engine that ships passes the contract."""

import asyncio
from collections.abc import Awaitable, Sequence

import numpy as np
import pytest

from tests.engines.contract import AsrContract, ToolContract, TtsContract, VadContract, texts, whole
from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.config.engine_config import DelaysConfig, WhisperConfig
from voicepipe.engines.asr.whisper import WhisperAsr
from voicepipe.engines.base import Asr, Delta, Engines, Llm, Message, Prompt, ToolCall, Tts, Vad
from voicepipe.engines.delayed import DelayedAsr, DelayedLlm, DelayedTts, delayed
from voicepipe.engines.llm.frontdesk.frontdesk_llm import FrontdeskLlm
from voicepipe.engines.scripted import (
    ScriptedAsr,
    ScriptedLlm,
    ScriptedTts,
    ScriptedVad,
)
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.tts.hibari import HibariTts
from voicepipe.engines.vad.silero import SileroVad

SCRIPTED_REPLIES: dict[str, Delta | Sequence[Delta]] = {
    "what are your opening hours": "From noon to ten. Every day of the week.",
    "5": "That makes 5.",
    "add 2 and 3": [ToolCall("call_1", "add", '{"a": 2, "b": 3}')],
}


class TestScriptedVad(VadContract):
    @staticmethod
    def factory() -> Vad:
        return ScriptedVad()


@pytest.mark.engine
class TestSileroVad(VadContract):
    @staticmethod
    def factory() -> Vad:
        return SileroVad()


class TestScriptedAsr(AsrContract):
    @staticmethod
    def factory() -> Asr:
        return ScriptedAsr(["hello how are you"])


class TestDelayedAsr(AsrContract):
    @staticmethod
    def factory() -> Asr:
        return DelayedAsr(ScriptedAsr(["hello how are you"]), asr_ms=5)


@pytest.mark.engine
@pytest.mark.slow
class TestWhisperTinyEn(AsrContract):
    sound = np.empty(0, np.int16)

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def speech(cls) -> None:
        cls.sound = asyncio.run(_spoken("hello, what are your opening hours?"))

    @staticmethod
    def factory() -> Asr:
        return WhisperAsr(WhisperConfig())


class TestScriptedLlm(ToolContract):
    @staticmethod
    def factory() -> Llm:
        return ScriptedLlm(SCRIPTED_REPLIES)


class TestDelayedLlm(ToolContract):
    @staticmethod
    def factory() -> Llm:
        return DelayedLlm(ScriptedLlm(SCRIPTED_REPLIES), first_token_ms=2, token_ms=1)


class TestFrontdeskLlm(ToolContract):
    @staticmethod
    def factory() -> Llm:
        return FrontdeskLlm()


class TestScriptedTts(TtsContract):
    @staticmethod
    def factory() -> Tts:
        return ScriptedTts()


class TestDelayedTts(TtsContract):
    @staticmethod
    def factory() -> Tts:
        return DelayedTts(ScriptedTts(), tts_ms=2)


@pytest.mark.engine
class TestEspeakTts(TtsContract):
    @staticmethod
    def factory() -> Tts:
        return EspeakTts()


async def _spoken(text: str) -> Pcm:
    """`text` by hibari at 16 kHz, with a little silence after it."""
    tts = HibariTts()
    await tts.start()
    speech = await whole(tts, text)
    await tts.close()
    resampler = Resampler(tts.rate, RATE)
    return np.concatenate([resampler(speech.pcm), resampler.flush(), np.zeros(RATE // 4, np.int16)])


# --- the delays of scripted and delayed engines, in virtual time ---------------------------------------------------


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

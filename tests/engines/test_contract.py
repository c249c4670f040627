"""Every engine that ships passes the contract."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from tests.engines.contract import AsrContract, ToolContract, TtsContract, VadContract, whole
from voicepipe.audio import RATE, Pcm, Resampler
from voicepipe.engines.base import Asr, Delta, Llm, ToolCall, Tts, Vad
from voicepipe.engines.espeak import EspeakTts
from voicepipe.engines.frontdesk import FrontdeskLlm
from voicepipe.engines.scripted import (
    DelayedAsr,
    DelayedLlm,
    DelayedTts,
    ScriptedAsr,
    ScriptedLlm,
    ScriptedTts,
    ScriptedVad,
)
from voicepipe.engines.silero import SileroVad

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
class TestSphinxAsr(AsrContract):
    sound = np.empty(0, np.int16)

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def speech(cls) -> None:
        cls.sound = asyncio.run(_spoken("hello, what are your opening hours?"))

    @staticmethod
    def factory() -> Asr:
        from voicepipe.engines.sphinx import SphinxAsr

        return SphinxAsr()


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
    """`text` by espeak-ng at 16 kHz, with a little silence after it."""
    tts = EspeakTts()
    await tts.start()
    speech = await whole(tts, text)
    await tts.close()
    resampler = Resampler(tts.rate, RATE)
    return np.concatenate([resampler(speech.pcm), resampler.flush(), np.zeros(RATE // 4, np.int16)])

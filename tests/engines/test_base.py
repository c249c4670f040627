"""Every engine that ships passes the contract."""

import asyncio

import numpy as np
import pytest

from tests.engines.contract import AsrContract, ToolContract, TtsContract, VadContract, whole
from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.asr.whisper import WhisperAsr
from voicepipe.engines.base import Asr, Llm, Tts, Vad
from voicepipe.engines.llm.frontdesk.frontdesk_llm import FrontdeskLlm
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.tts.hibari import HibariTts
from voicepipe.engines.vad.silero import SileroVad


@pytest.mark.engine
class TestSileroVad(VadContract):
    @staticmethod
    def factory() -> Vad:
        return SileroVad()


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


class TestFrontdeskLlm(ToolContract):
    @staticmethod
    def factory() -> Llm:
        return FrontdeskLlm()


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

"""Engines that only take time: they pass the contract."""

from tests.engines.contract import AsrContract, LlmContract, TtsContract, VadContract
from voicepipe.engines.base import Asr, Llm, Tts, Vad
from voicepipe.engines.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad


class TestScriptedVad(VadContract):
    @staticmethod
    def factory() -> Vad:
        return ScriptedVad()


class TestScriptedAsr(AsrContract):
    @staticmethod
    def factory() -> Asr:
        return ScriptedAsr(["hello how are you"])


class TestScriptedLlm(LlmContract):
    @staticmethod
    def factory() -> Llm:
        return ScriptedLlm()


class TestScriptedTts(TtsContract):
    @staticmethod
    def factory() -> Tts:
        return ScriptedTts()

"""How long synthesis takes until the first sound, and what it takes of a GPU: Kokoro and VITS, which make a phrase as a
whole, and NeuTTS, which streams. Times are milliseconds."""

import math
from dataclasses import dataclass

from voicepipe.sizing import constants as c
from voicepipe.sizing import gpu_memory
from voicepipe.sizing.gpu_models import GpuModel, link
from voicepipe.sizing.language import ParallelGroup, loaded_llm
from voicepipe.sizing.shapes import LlmShape
from voicepipe.sizing.stage import Contention, LoadedStage, StageJob, loaded_stage, queueing_delay
from voicepipe.sizing.traffic import LATER_PHRASE_S, FirstPhrase, Traffic


@dataclass(frozen=True, slots=True)
class PhraseVoice:
    """A voice that makes whole phrases, one after the other. Its times are the same on every GPU: the source does not
    name its GPU, and most of the time goes into launching small kernels."""

    name: str

    @property
    def memory(self) -> int:
        """Bytes of memory, with the CUDA contexts of processes of its own."""
        own_process = c.CONTEXT if self.name == "coqui" else 0
        return c.TTS_WEIGHTS[self.name] + c.TTS_WORKSPACE + own_process

    def phrase(self, speech_s: float) -> StageJob:
        """Time of a phrase of so many seconds."""
        made = 1000 * c.RTF[self.name] * speech_s
        return StageJob(c.PHRASE_MS + (1 - c.KERNEL_SHARE) * made, c.KERNEL_SHARE * made)

    def stage(
        self, gpu: GpuModel, traffic: Traffic, calls: int, contention: Contention, first: FirstPhrase
    ) -> LoadedStage:
        """The stage with so many calls, beside others on the GPU. `first`: the phrase that callers wait for; phrases
        that are made for nothing are as in `traffic`."""
        awaited, dropped, later = map(self.phrase, (first.speech_s, traffic.phrase.speech_s, LATER_PHRASE_S))
        jobs = [(traffic.phrases(calls), later), (traffic.wasted(calls), dropped)]
        return loaded_stage(awaited, traffic.ends(calls), jobs, contention)


NEUTTS = LlmShape(24, 896, 14, 2, 64, 4864, 217_652, qkv_bias=True, kind="qwen2")
"""Qwen2-0.5B with 65,536 codes of sound in its vocabulary: 748 million weights with its output projection."""


@dataclass(frozen=True, slots=True)
class NeuTtsCost:
    """NeuTTS: a language model of sound in a process of its own, and a codec in the PoP's process, which decodes
    overlapping windows."""

    name: str = "neutts"

    @property
    def memory(self) -> int:
        """Bytes of memory, as in `PhraseVoice`."""
        model = gpu_memory.llm_weights(NEUTTS, "bf16") + c.LLM_WORKSPACE + c.CONTEXT + c.NEUTTS_CACHE
        return model + 4 * c.CODEC_WEIGHTS + c.TTS_WORKSPACE

    def window(self, gpu: GpuModel) -> StageJob:
        """Time of one window of the codec."""
        read = 4 * c.CODEC_WEIGHTS / (gpu.bandwidth_gbs * c.BANDWIDTH_SHARE["bf16"]) / 1e6
        multiply = 2 * c.CODEC_WEIGHTS * c.WINDOW_TOKENS / (gpu.bf16_tflops * c.CODEC_FLOPS) / 1e9
        return StageJob(c.CODEC_MS, read + multiply)

    def stage(
        self, gpu: GpuModel, traffic: Traffic, calls: int, contention: Contention, first: FirstPhrase
    ) -> LoadedStage:
        """As `PhraseVoice.stage`. All first phrases take the same."""
        wasted, window, slow = traffic.wasted(calls), self.window(gpu), contention.slowdown
        speech_s = calls * traffic.spoken / 1000 + wasted * traffic.phrase.speech_s  # a millisecond
        group = ParallelGroup(NEUTTS, "bf16", gpu, link("", gpu))
        model = loaded_llm(group, speech_s * c.SOUND_TOKENS_A_SECOND, c.VOICE_TOKENS, 0, contention)
        windows = traffic.phrases(calls) * _windows(LATER_PHRASE_S) + wasted * _windows(traffic.phrase.speech_s)
        duration, sound = window.duration(slow), model.work(c.FIRST_TOKENS) + window
        decoding = windows * duration
        first_window = sound.after_wait(duration, min(1.0, decoding), contention)
        return LoadedStage(
            latency=first_window + c.REQUEST_MS + duration * queueing_delay(decoding),
            busy=max(model.token * c.SOUND_TOKENS_A_SECOND / 1000, decoding),
            on_gpu=1 - (1 - model.on_gpu) * (1 - min(1.0, windows * slow * window.gpu)),
        )


def _windows(speech_s: float) -> int:
    """The windows of a phrase: 8, 16, 32, 48, 48 ... new tokens each."""
    return 3 + max(0, math.ceil((speech_s * c.SOUND_TOKENS_A_SECOND - 8 - 16 - 32) / 48))


Voice = PhraseVoice | NeuTtsCost


def voice(name: str) -> Voice:
    """The voice of a name that the configuration has."""
    return NeuTtsCost() if name == "neutts" else PhraseVoice(name)

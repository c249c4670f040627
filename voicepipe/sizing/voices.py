"""How long synthesis takes until the first sound, and what it takes of a GPU: Kokoro and VITS, which make a phrase as a
whole, and NeuTTS, which streams.

Anchor of Kokoro: 0.3 s of GPU time for 10 s of speech (gigagpu.com), which makes a first phrase 30 to 60 ms. NeuTTS has
no published figure with several calls; its language model is one as any other (`speed.py`).
"""

import math
from dataclasses import dataclass
from typing import Protocol

from voicepipe.sizing import gpu_memory
from voicepipe.sizing.gpu_models import GIB, GpuModel
from voicepipe.sizing.language import at_a_time, decode_step, prefill_step, present
from voicepipe.sizing.shapes import LlmShape
from voicepipe.sizing.speed import READING, REQUEST_MS, alone
from voicepipe.sizing.stage import Met, Stage, Work, queue
from voicepipe.sizing.traffic import LATER_PHRASE_S, Phrase, Traffic


class Voice(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def memory(self) -> int:
        """Bytes, with the CUDA contexts of processes of its own."""
        ...

    def stage(self, gpu: GpuModel, traffic: Traffic, calls: int, slow: float, first: Phrase) -> Stage:
        """Under so many calls. `slow`: by what its work on the GPU takes longer beside others. `first`: the phrase that
        is waited for; those that are made for nothing are as in `traffic`."""
        ...


RTF = {"kokoro": 0.03, "coqui": 0.02}
"""Time of one second of speech, in seconds."""
ON_GPU = 0.3
"""Share of that in which kernels run; the rest is launching them. Estimate: a stand-in of Kokoro's shape took 7.4 and
9.8 ms for phrases of 1.2 and 2.6 s under a CUDA graph (`latency_probes/figures/h100-voice-mps.json`), a fifth and an
eighth of this; a slower GPU needs more."""
PHRASE_MS = 15.0
"""Of each phrase: phonemes on the CPU, launching."""
PROCESSES = {"kokoro": 0, "coqui": 1}
"""Of their own."""


@dataclass(frozen=True, slots=True)
class PhraseVoice:
    """It makes a phrase as a whole, one after the other. Not scaled by GPU: the anchor does not say on which it was,
    and a phrase is bound by launching small kernels more than by what a data sheet tells."""

    name: str

    @property
    def memory(self) -> int:
        return gpu_memory.tts(gpu_memory.TTS_WEIGHTS[self.name], PROCESSES[self.name])

    def phrase(self, speech_s: float) -> Work:
        """Of so many seconds."""
        made = 1000 * RTF[self.name] * speech_s
        return Work(PHRASE_MS + (1 - ON_GPU) * made, ON_GPU * made)

    def stage(self, gpu: GpuModel, traffic: Traffic, calls: int, slow: float, first: Phrase) -> Stage:
        awaited, dropped, later = map(self.phrase, (first.speech_s, traffic.phrase.speech_s, LATER_PHRASE_S))
        phrases, wasted = calls * traffic.spoken / LATER_PHRASE_S / 1000, traffic.wasted(calls)
        busy = phrases * later.lasts(slow) + wasted * dropped.lasts(slow)
        lasts, met = awaited.lasts(slow), Met(min(1.0, phrases * later.lasts(slow)), later.lasts(slow))
        return Stage(
            ms=lasts * (1 + queue(traffic.ends(calls) * lasts)) + met.wait if busy < 1 else math.inf,
            gpu=awaited.gpu,
            met=met,
            busy=busy,
            least=busy,
            on_gpu=min(1.0, slow * (phrases * later.gpu + wasted * dropped.gpu)),
        )


NEUTTS = LlmShape(24, 896, 14, 2, 64, 4864, 217_652, qkv_bias=True, kind="qwen2")
"""Qwen2-0.5B with 65,536 codes of sound in its vocabulary: 748 million weights with its output projection."""
TOKENS_A_SECOND = 50
"""Of speech."""
PROMPT_TOKENS = 512
"""A voice's recording of up to 8 s, and phonemes; the recording stands behind the phonemes, so that no prefix cache
holds it."""
FIRST_TOKENS = 13
"""After which the first window of the codec is decoded: 8 that are sent, 5 behind them."""
WINDOW_TOKENS = 160
"""Of each window, of which 8, 16, 32, 48, 48 ... are new."""
CODEC_DECODER = 188_000_000
"""Weights, float32, by transformers' class (`NeuCodecModel`). The rest of it encodes voices' recordings, and leaves."""
CODEC_MS = 8.0
"""Launching the decoder's kernels, one by one. Estimate: there are some 300; an eager step of the recogniser launches
1,500 in 25 ms (`latency_probes/figures/h100-streaming.json`)."""
CODEC_FLOPS = 0.05
"""Share of the data sheet's bf16 FLOPS that float32 reaches: without tensor cores the data sheet has 7 %."""
NEUTTS_CACHE = GIB
"""`neutts.kv_cache_memory_bytes`."""


@dataclass(frozen=True, slots=True)
class NeuTts:
    """A language model of sound in a process of its own, and a codec in the PoP's, in overlapping windows."""

    name: str = "neutts"

    @property
    def memory(self) -> int:
        model = gpu_memory.llm_weights(NEUTTS, "bf16") + gpu_memory.LLM_WORKSPACE + gpu_memory.CONTEXT
        return model + NEUTTS_CACHE + 4 * CODEC_DECODER + gpu_memory.TTS_WORKSPACE

    def window(self, gpu: GpuModel) -> Work:
        """Of the codec."""
        flops = 2 * CODEC_DECODER * WINDOW_TOKENS
        read = 4 * CODEC_DECODER / (gpu.bandwidth_gbs * READING["bf16"]) / 1e6
        return Work(CODEC_MS, read + flops / (gpu.bf16_tflops * CODEC_FLOPS) / 1e9)

    def stage(self, gpu: GpuModel, traffic: Traffic, calls: int, slow: float, first: Phrase) -> Stage:
        group = alone(NEUTTS, gpu)
        speech_s = calls * traffic.spoken / 1000 + traffic.wasted(calls) * traffic.phrase.speech_s  # a millisecond
        voices = at_a_time(group, speech_s * TOKENS_A_SECOND, PROMPT_TOKENS, slow)
        step = decode_step(group, 1 + round(voices), PROMPT_TOKENS)
        prefill = prefill_step(group, PROMPT_TOKENS, 0, 1 + round(voices))
        window, token = self.window(gpu), step.lasts(slow)
        phrases = calls * traffic.spoken / LATER_PHRASE_S / 1000
        windows = phrases * _windows(LATER_PHRASE_S) + traffic.wasted(calls) * _windows(traffic.phrase.speech_s)
        decoding = windows * window.lasts(slow)
        met = Met(min(1.0, decoding), window.lasts(slow))
        busy = max(token * TOKENS_A_SECOND / 1000, decoding)
        speaks, decodes = present(voices) * slow * step.gpu / token, min(1.0, windows * slow * window.gpu)
        sound = [prefill, *[step] * (FIRST_TOKENS - 1), window]  # of any phrase
        return Stage(
            ms=REQUEST_MS + sum(work.lasts(slow) for work in sound) + window.lasts(slow) * queue(decoding) + met.wait,
            gpu=sum(work.gpu for work in sound),
            met=met,
            busy=busy,
            least=busy,
            on_gpu=1 - (1 - speaks) * (1 - decodes),
        )


def _windows(speech_s: float) -> int:
    """Of a phrase."""
    return 3 + max(0, math.ceil((speech_s * TOKENS_A_SECOND - 8 - 16 - 32) / 48))


def voice(name: str) -> Voice:
    """By the name that the configuration has for it."""
    return NeuTts() if name == "neutts" else PhraseVoice(name)

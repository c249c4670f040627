"""How long recognition takes, and what it takes of a GPU: Whisper by CTranslate2, Nemotron Speech Streaming by
transformers.

Anchors: faster-whisper with large-v3-turbo on an RTX 4090 205 to 219 ms for 2 to 10 s of sound, since it always reads
30. Nemotron Speech Streaming on an H100: 560 streams with chunks of 320 ms (NVIDIA, "Scaling Real-Time Voice Agents
with Cache-Aware Streaming ASR", January 2026), 240 with chunks of 80 ms (vllm-project/vllm#47455).
"""

from dataclasses import dataclass
from typing import Protocol

from voicepipe.sizing import gpu_memory
from voicepipe.sizing.gpu_models import GpuModel
from voicepipe.sizing.shapes import ASRS, AsrShape
from voicepipe.sizing.speed import READING
from voicepipe.sizing.stage import Met, Stage, Work, queue
from voicepipe.sizing.traffic import Traffic


class Recogniser(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def streams(self) -> bool:
        """It hears each bit of sound once, so that nothing can be left out."""
        ...

    def memory(self, calls: int) -> int:
        """Bytes, without its process's CUDA context."""
        ...

    def stage(self, gpu: GpuModel, traffic: Traffic, calls: int, slow: float) -> Stage:
        """Under so many calls. `slow`: by what its work on the GPU takes longer beside others."""
        ...


FRAMES_A_SECOND = 50
"""Of Whisper's encoder."""
ENCODING = 0.11
"""Share of the data sheet's FLOPS that CTranslate2's encoder reaches."""
DECODING = 0.5
"""Share of the bandwidth that its decoder reaches."""
WHISPER_LAYER_MS = 0.2
"""Launching one layer of the decoder's kernels, one by one."""
PASS_MS, FEATURES_MS = 10.0, 1.5
"""On the CPU: a pass; the spectrogram of one second."""
TOKENS_A_SECOND = 3.5
"""Of speech."""


@dataclass(frozen=True, slots=True)
class Whisper:
    """It reads an utterance in windows, again and again while it is said."""

    shape: AsrShape
    name: str = ""
    streams: bool = False

    def memory(self, calls: int) -> int:
        return gpu_memory.asr(gpu_memory.asr_weights(self.shape))

    def encoder_flops(self, seconds: float) -> float:
        """For a window of so many seconds, silence included."""
        shape, frames = self.shape, seconds * FRAMES_A_SECOND
        matrices = 12 * shape.dim * shape.dim * shape.layers
        return 2 * matrices * frames + 4 * shape.layers * frames * frames * shape.dim

    def tokens(self, speech_s: float) -> float:
        """That a pass decodes one by one: all of the utterance's, and four of the prompt and the end. Words that are
        forced on the decoder as a prefix are among them: CTranslate2 decodes those one by one, too."""
        return speech_s * TOKENS_A_SECOND + 4

    def reading(self, gpu: GpuModel, window_s: float, speech_s: float) -> Work:
        """One pass over an utterance with `speech_s` seconds of speech, in a window of `window_s`. A batch is no faster
        than a loop (OpenNMT/CTranslate2#1648)."""
        shape = self.shape
        encode = self.encoder_flops(window_s) / (gpu.bf16_tflops * ENCODING) / 1e9
        token = 2 * shape.decoder / (gpu.bandwidth_gbs * DECODING) / 1e6 + WHISPER_LAYER_MS * shape.decoder_layers
        return Work(PASS_MS + FEATURES_MS * window_s, encode + self.tokens(speech_s) * token)

    def stage(self, gpu: GpuModel, traffic: Traffic, calls: int, slow: float) -> Stage:
        reading = self.reading(gpu, traffic.window_s, traffic.utterance_s)
        lasts = reading.lasts(slow)
        finals = traffic.ends(calls)
        busy = (finals + calls * traffic.speaking / traffic.partial_s / 1000) * lasts
        met = Met(min(1.0, busy), lasts)
        return Stage(
            ms=lasts * (1 + queue(finals * lasts)) + met.wait,
            gpu=reading.gpu,
            met=met,
            busy=busy,
            least=finals * lasts,  # partials are left out where there is no time
            on_gpu=min(1.0, busy) * slow * reading.gpu / lasts,
        )


NEMOTRON_WEIGHTS = 617_000_000
"""By transformers' class of its default shape (`NemotronAsrStreamingForRNNT`)."""
LAYERS, DIM = 24, 1024
FRAME_MS, REMEMBERED = 80, 70
"""One frame of the encoder; those that each frame attends to."""
LAYER_MS = 0.14
"""Of each layer, its share of the transducer's loop included: launching from a CUDA graph. Measured: a step of one row
takes 3.7 to 4.7 ms on an H100 (`latency_probes/figures/h100-streaming.json` and others of that day)."""
REACHED = 0.0235
"""Share of the data sheet's FLOPS that a batch reaches. The one constant that was fitted, to both of NVIDIA's figures
at once. It is low because those are of a whole server; stand-ins of true shape under a CUDA graph took a fifth of this
a row (h100-streaming.json: 8.4 ms with 64 rows)."""
SLOT = 2 * 7_340_000
"""What a call remembers, and its copy while it is settled, 16-bit. Measured in the same file."""
SETTLE_STEPS = 2
"""Of silence, behind a copy of the slot."""


@dataclass(frozen=True, slots=True)
class Nemotron:
    """Nemotron Speech Streaming: each bit of sound is encoded once, in steps for all calls of which a chunk is due."""

    chunk_ms: int = 160
    name: str = "nemotron"
    gather_ms: float = 40
    """Steps begin no sooner than this after each other (`nemotron.gather_ms`); 0: as soon as a chunk is due."""
    streams: bool = True

    def memory(self, calls: int) -> int:
        return gpu_memory.asr(2 * NEMOTRON_WEIGHTS) + calls * SLOT

    def row_ms(self, gpu: GpuModel) -> float:
        """What a step takes more for each call in it: its frames, and keys and values of those that it remembers, which
        NVIDIA's server works out anew."""
        flops = 2 * NEMOTRON_WEIGHTS * self.chunk_ms / FRAME_MS + 4 * DIM * DIM * LAYERS * REMEMBERED
        return flops / (gpu.bf16_tflops * REACHED) / 1e9

    def step_ms(self, gpu: GpuModel, rows: float) -> float:
        """One step of so many calls."""
        read = 2 * NEMOTRON_WEIGHTS / (gpu.bandwidth_gbs * READING["bf16"]) / 1e6
        return read + LAYER_MS * LAYERS + rows * self.row_ms(gpu)

    def most_streams(self, gpu: GpuModel) -> int:
        """That a GPU of its own serves: one step of all of them takes no longer than a chunk."""
        return int((self.chunk_ms - self.step_ms(gpu, 0)) / self.row_ms(gpu))

    def stage(self, gpu: GpuModel, traffic: Traffic, calls: int, slow: float) -> Stage:
        chunks = calls * traffic.speaking / self.chunk_ms  # a millisecond
        finals = traffic.ends(calls)
        settle = SETTLE_STEPS * slow * self.step_ms(gpu, 1)
        rows, steps = self._steps(gpu, chunks, slow)
        met = Met(min(1.0, steps * slow * self.step_ms(gpu, rows)), slow * self.step_ms(gpu, rows))
        busy = slow * self.step_ms(gpu, calls * traffic.speaking) / self.chunk_ms + finals * settle
        return Stage(
            ms=settle * (1 + queue(finals * settle)) + met.wait,
            gpu=settle / slow,
            met=met,
            busy=busy,
            least=busy,
            on_gpu=min(1.0, met.share + finals * settle),
        )

    def _steps(self, gpu: GpuModel, chunks: float, slow: float) -> tuple[float, float]:
        """Calls in a step, and steps a millisecond: one begins when a chunk is due, none is under way, and the last one
        began `gather_ms` ago."""
        fixed, row = slow * self.step_ms(gpu, 0), slow * self.row_ms(gpu)
        if chunks * (fixed + row) <= 1:
            rows, steps = 1.0, chunks
        else:
            rows = chunks * fixed / max(1 - chunks * row, 1e-3)
            steps = 1 / (fixed + rows * row)
        if self.gather_ms and steps > 1 / self.gather_ms:
            return chunks * self.gather_ms, 1 / self.gather_ms
        return rows, steps


def recogniser(name: str) -> Recogniser:
    """By the name that `voicepipe plan --asr` has for it."""
    return Nemotron() if name == "nemotron" else Whisper(ASRS[name], name)

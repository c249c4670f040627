"""How long recognition takes, and what it takes of a GPU: Whisper by CTranslate2, Nemotron Speech Streaming by
transformers. Times are milliseconds."""

from dataclasses import dataclass

from voicepipe.sizing import constants as c
from voicepipe.sizing import gpu_memory
from voicepipe.sizing.gpu_models import GpuModel
from voicepipe.sizing.shapes import ASRS, AsrShape
from voicepipe.sizing.stage import Contention, LoadedStage, StageJob, loaded_stage
from voicepipe.sizing.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Whisper:
    """Whisper, which reads an utterance in windows, again and again while it is said."""

    shape: AsrShape
    name: str = ""
    streams: bool = False

    @property
    def memory(self) -> int:
        """Bytes of memory, without its process's CUDA context."""
        return gpu_memory.whisper(self.shape)

    def reading(self, gpu: GpuModel, window_s: float, speech_s: float) -> StageJob:
        """Time of one pass over an utterance with `speech_s` seconds of speech, in a window of `window_s`, silence
        included. A batch is no faster than a loop (OpenNMT/CTranslate2#1648)."""
        shape, frames = self.shape, window_s * c.FRAMES_A_SECOND
        matrices = 12 * shape.dim**2 * shape.layers
        encode_flops = 2 * matrices * frames + 4 * shape.layers * frames**2 * shape.dim
        encode = encode_flops / (gpu.bf16_tflops * c.ENCODER_FLOPS_SHARE) / 1e9
        read = 2 * shape.decoder / (gpu.bandwidth_gbs * c.DECODER_BANDWIDTH_SHARE) / 1e6
        token = read + c.WHISPER_LAYER_MS * shape.decoder_layers
        tokens = speech_s * c.WORDS_TOKENS_A_SECOND + c.PROMPT_TOKENS
        return StageJob(c.PASS_MS + c.FEATURES_MS * window_s, encode + tokens * token)

    def stage(self, gpu: GpuModel, traffic: Traffic, calls: int, contention: Contention) -> LoadedStage:
        """The stage with so many calls, beside others on the GPU."""
        reading = self.reading(gpu, traffic.window_s, traffic.utterance_s)
        finals, partials = traffic.ends(calls), calls * traffic.speaking / traffic.partial_s / 1000
        # Partials are left out where there is no time.
        least = finals * reading.duration(contention.slowdown)
        return loaded_stage(reading, finals, [(finals + partials, reading)], contention, least)


@dataclass(frozen=True, slots=True)
class Nemotron:
    """Nemotron Speech Streaming, which encodes each chunk of sound once. A step serves all calls of which a chunk is
    due."""

    chunk_ms: int = 160
    name: str = "nemotron"
    gather_ms: float = 40
    """Steps begin no sooner than this after each other (`nemotron.gather_ms`); 0: as soon as a chunk is due."""
    streams: bool = True

    @property
    def memory(self) -> int:
        """Bytes of memory, without its process's CUDA context."""
        return 2 * c.NEMOTRON_WEIGHTS + c.ASR_WORKSPACE + c.NEMOTRON_STREAMS * c.NEMOTRON_SLOT

    def row_ms(self, gpu: GpuModel) -> float:
        """Time that a step takes more for each call in it: its frames, and keys and values of those that it remembers,
        which NVIDIA's server computes anew."""
        remembered = 4 * c.NEMOTRON_DIM**2 * c.NEMOTRON_LAYERS * c.REMEMBERED
        flops = 2 * c.NEMOTRON_WEIGHTS * self.chunk_ms / c.FRAME_MS + remembered
        return flops / (gpu.bf16_tflops * c.NEMOTRON_FLOPS_SHARE) / 1e9

    def step_ms(self, gpu: GpuModel, rows: float) -> float:
        """Time of one step of so many calls."""
        read = 2 * c.NEMOTRON_WEIGHTS / (gpu.bandwidth_gbs * c.BANDWIDTH_SHARE["bf16"]) / 1e6
        return read + c.NEMOTRON_LAYER_MS * c.NEMOTRON_LAYERS + rows * self.row_ms(gpu)

    def stage(self, gpu: GpuModel, traffic: Traffic, calls: int, contention: Contention) -> LoadedStage:
        """As `Whisper.stage`. A step begins when a chunk is due, none is in progress, and the last one began
        `gather_ms` ago; where there is no time, each takes all calls."""
        speaking, finals, slow = calls * traffic.speaking, traffic.ends(calls), contention.slowdown
        chunks = speaking / self.chunk_ms  # a millisecond
        one_by_one = max(1e-3, 1 - chunks * slow * self.row_ms(gpu)) / (slow * self.step_ms(gpu, 0))
        steps = min(chunks, one_by_one, 1 / (self.gather_ms or 1e-9))
        step, settle = (
            StageJob(0, self.step_ms(gpu, chunks / steps)),
            StageJob(0, c.SETTLE_STEPS * self.step_ms(gpu, 1)),
        )
        least = slow * self.step_ms(gpu, speaking) / self.chunk_ms + finals * settle.duration(slow)
        return loaded_stage(settle, finals, [(steps, step), (finals, settle)], contention, least)


Recogniser = Whisper | Nemotron


def recogniser(name: str) -> Recogniser:
    """The recogniser of a name that `voicepipe plan --asr` has."""
    return Nemotron() if name == "nemotron" else Whisper(ASRS[name], name)

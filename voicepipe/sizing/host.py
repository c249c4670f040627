"""One host: a model with engines for speech on its GPUs, and the memory that they need."""

from dataclasses import dataclass, field, replace
from typing import Any

from voicepipe.sizing import constants as c
from voicepipe.sizing import gpu_memory
from voicepipe.sizing.gpu_models import GIB, GpuModel
from voicepipe.sizing.language import ParallelGroup
from voicepipe.sizing.recognition import Recogniser
from voicepipe.sizing.traffic import Traffic
from voicepipe.sizing.voices import Voice


@dataclass(frozen=True, slots=True)
class SizedHost:
    """A host with `gpus` GPUs. The language model's group takes the first ones. Recognition and synthesis run on the
    next GPU; if there is none, they share the first."""

    group: ParallelGroup
    gpus: int
    asr: Recogniser
    tts: Voice
    mps: bool = False
    """CUDA MPS runs, so that processes work at the same time and not in turns."""
    max_model_len: int = 8192
    traffic: Traffic = field(default_factory=Traffic)

    def with_group(self, **changes: Any) -> "SizedHost":
        """The host with these changes to its group."""
        return replace(self, group=replace(self.group, **changes))

    @property
    def gpu(self) -> GpuModel:
        return self.group.gpu

    @property
    def shared(self) -> bool:
        """Whether a GPU of the group does recognition and synthesis, too."""
        return self.group.gpus >= self.gpus

    @property
    def usable(self) -> int:
        """Bytes of each GPU."""
        return round(self.gpu.memory_gib * GIB * c.USABLE)

    @property
    def llm_fixed(self) -> int:
        """Bytes of each GPU of the group without the KV cache."""
        weights = gpu_memory.llm_weights(self.group.shape, self.group.dtype)
        return weights // self.group.gpus + c.LLM_WORKSPACE + c.CONTEXT

    @property
    def speech_fixed(self) -> int:
        """Bytes of the GPU for recognition and synthesis."""
        return self.asr.memory + self.tts.memory + c.CONTEXT

    @property
    def kv_room(self) -> int:
        """Bytes of each GPU of the group for the KV cache; below 0: so much is missing without any."""
        return self.usable - self.llm_fixed - (self.speech_fixed if self.shared else 0)

    def kv_needed(self, calls: int) -> int:
        """Bytes of each GPU of the group that the KV cache needs. vLLM wants room for one context of `max_model_len`,
        too."""
        shape = self.group.shape
        all_calls = calls * gpu_memory.kv_call(shape, self.traffic.context_tokens)
        shards = gpu_memory.kv_shards(shape, self.group.tensor) * self.group.pipeline
        return -(-max(all_calls, gpu_memory.kv_call(shape, self.max_model_len)) // shards)

    @property
    def fits(self) -> bool:
        """Whether it fits, with room for one call."""
        return self.kv_needed(1) <= self.kv_room and self.speech_fixed <= self.usable

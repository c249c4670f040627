"""A language model by the roofline: each step takes the time of reading memory or of multiplying numbers, whichever is
longer. Under load it generates several replies at a time. Times are milliseconds."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from voicepipe.sizing.constants import (
    BANDWIDTH_SHARE,
    FLOPS_SHARE,
    LAYER_MS,
    MOST_SEQUENCES,
    REQUEST_MS,
    STEP_MS,
    STEP_TOKENS,
)
from voicepipe.sizing.gpu_memory import DTYPES, kv_shards, kv_token
from voicepipe.sizing.gpu_models import GpuModel, Link
from voicepipe.sizing.shapes import LlmShape
from voicepipe.sizing.stage import Contention, StageJob


@dataclass(frozen=True, slots=True)
class ParallelGroup:
    """A language model and the GPUs that it is spread over."""

    shape: LlmShape
    dtype: str
    gpu: GpuModel
    link: Link
    tensor: int = 1
    """GPUs that share each layer."""
    pipeline: int = 1
    """Groups of such GPUs that each have a part of the layers. A token goes through one after the other, so they save
    memory and no time."""

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline


def step_ms(group: ParallelGroup, tokens: int, context: int, *, sequences: int) -> float:
    """Time of one step with `tokens` tokens, of `sequences` sequences with `context` earlier tokens each."""
    shape, gpu = group.shape, group.gpu
    linear = shape.layers * (shape.attention + _experts_touched(shape, tokens) * shape.mlp)
    wide = BANDWIDTH_SHARE["bf16"]
    reading = linear * DTYPES[group.dtype] / BANDWIDTH_SHARE[group.dtype] + 2 * shape.embedding / wide
    cache = sequences * context * kv_token(shape) / kv_shards(shape, group.tensor) * group.tensor
    read_ms = (reading + cache / wide) / (gpu.bandwidth_gbs * group.tensor) / 1e6
    used = shape.layers * (shape.attention + shape.experts_used * shape.mlp)
    attended = 4 * shape.layers * shape.heads * shape.head_dim * context
    flops = tokens * (2 * used + attended) + sequences * 2 * shape.embedding
    tflops = gpu.fp8_tflops if group.dtype == "fp8" and gpu.fp8_tflops else gpu.bf16_tflops
    multiply_ms = flops / (tflops * FLOPS_SHARE * group.tensor) / 1e9
    return max(read_ms, multiply_ms) + STEP_MS + LAYER_MS * shape.layers + communication_ms(group, tokens)


def _experts_touched(shape: LlmShape, tokens: int) -> float:
    """The number of a layer's experts that at least one of the tokens goes through, if they are chosen at random."""
    return shape.experts * (1 - (1 - shape.experts_used / shape.experts) ** tokens) if shape.experts > 1 else 1.0


def communication_ms(group: ParallelGroup, tokens: int) -> float:
    """Time of one step's communication: two all-reduces a layer within the tensor-parallel group, in which each GPU
    sends and gets 2 (n - 1) / n of the numbers; a transfer between a pipeline's parts."""
    link, gpus = group.link, group.tensor
    latency_ms, all_ms = link.latency_us / 1e3, tokens * group.shape.dim * 2 / link.gbs / 1e6
    reduce_ms = latency_ms * (1 + 0.5 * (math.log2(gpus) - 1)) + 2 * (gpus - 1) / gpus * all_ms
    hand_over_ms = (group.pipeline - 1) * (latency_ms + all_ms)
    return hand_over_ms + (2 * group.shape.layers * reduce_ms if gpus > 1 else 0.0)


def prefill_ms(group: ParallelGroup, new: int, cached: int, sequences: int) -> float:
    """Time until a prompt of `new` tokens behind `cached` ones is read, in chunks, beside `sequences` - 1 replies, each
    of which gets a token in each step."""
    others = sequences - 1
    chunk = max(1, STEP_TOKENS - others)
    chunks = ((min(chunk, new - read), cached + read) for read in range(0, new, chunk))
    return sum(step_ms(group, tokens + others, context, sequences=sequences) for tokens, context in chunks)


class LoadedLlm(NamedTuple):
    """A language model under load, with its times. The GPU is idle while a step is scheduled."""

    prefill: StageJob
    """Time until the first token."""
    step: StageJob
    """Time of each token after it."""
    replies: float
    """Replies at a time, in the mean. `MOST_SEQUENCES`: they come faster than they end."""
    contention: Contention

    @property
    def token(self) -> float:
        """Time from one token to the next."""
        return self.step.duration(self.contention.slowdown)

    @property
    def present(self) -> float:
        """Part of the time in which it generates at least one reply, if replies come at random."""
        return 1 - math.exp(-self.replies)

    @property
    def on_gpu(self) -> float:
        """Part of the time in which it has work on the GPU."""
        return self.present * self.contention.slowdown * self.step.gpu / self.token

    @property
    def full(self) -> bool:
        """Whether more replies come at a time than it takes, at least one time in twenty."""
        return self.replies + 2 * math.sqrt(self.replies) > MOST_SEQUENCES

    def work(self, tokens: int) -> StageJob:
        """Time until so many tokens are generated."""
        return self.prefill + self.step.times(tokens - 1)

    def latency(self, tokens: int) -> NormalDist:
        """As `work`, from the request on, after the step that is in progress then."""
        work = self.work(tokens).after_wait(self.token, self.present, self.contention)
        return work + (math.inf if self.full else REQUEST_MS)


def loaded_llm(group: ParallelGroup, tokens: float, new: int, cached: int, contention: Contention) -> LoadedLlm:
    """A language model that generates `tokens` a millisecond. Prompts have `new` tokens behind `cached` ones."""

    def step(batch: int) -> StageJob:
        return StageJob(STEP_MS, step_ms(group, batch, cached or new, sequences=batch) - STEP_MS)

    replies = 1.0
    for _ in range(2):  # the more replies there are, the longer each takes; a third round changes next to nothing
        replies = min(MOST_SEQUENCES, tokens * step(max(1, math.ceil(replies))).duration(contention.slowdown))
    batch = 1 + round(replies)
    return LoadedLlm(
        StageJob(STEP_MS, prefill_ms(group, new, cached, batch) - STEP_MS), step(batch), replies, contention
    )

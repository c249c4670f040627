"""How long a step of the language model takes, by the roofline: memory is read, or numbers are multiplied.

Anchors, a token: Qwen3-8B on an H100 7.1 to 7.4 ms in bf16, 5.6 in fp8 (gpustack's performance lab); Llama-3.1-8B in
bf16 on an A100-40 13.3 ms (johnmusgrave.com).
"""

import math
from dataclasses import dataclass

from voicepipe.sizing.gpu_memory import DTYPES, kv_shards, kv_token
from voicepipe.sizing.gpu_models import GpuModel, Link, link
from voicepipe.sizing.shapes import LlmShape

READING = {"bf16": 0.80, "fp8": 0.60, "awq4": 0.50}
"""Share of the memory's bandwidth at which matrices are read; kernels for narrow weights are further from it."""
MULTIPLYING = 0.5
"""Share of the data sheet's FLOPS that a prompt of a few hundred tokens reaches."""
STEP_MS, LAYER_MS = 1.0, 0.015
"""Of each step: scheduling and sampling; launching a layer's kernels from a CUDA graph."""
REQUEST_MS = 6.0
"""From our process to vLLM's and back: tokenising, its queue, its scheduler."""
STEP_TOKENS = 512
"""`vllm.args.max_num_batched_tokens` as our configurations set it. A longer prompt is read in pieces, so that no reply
waits longer for its next token than such a piece takes."""


@dataclass(frozen=True, slots=True)
class Group:
    """A model and the GPUs that it is spread over."""

    shape: LlmShape
    dtype: str
    gpu: GpuModel
    link: Link
    tensor: int = 1
    """GPUs that share each layer."""
    pipeline: int = 1
    """Groups of such GPUs that each have a part of the layers."""

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline


def alone(shape: LlmShape, gpu: GpuModel) -> Group:
    """On one GPU, 16-bit."""
    return Group(shape, "bf16", gpu, link("", gpu))


def step_ms(group: Group, tokens: int, context: int, *, sequences: int) -> float:
    """One step: `tokens` tokens in, of `sequences` sequences with `context` tokens each behind them.

    A token goes through the parts of a pipeline one after the other, so those save memory and no time.
    """
    shape, gpu = group.shape, group.gpu
    touched = _experts_touched(shape, tokens)
    linear = shape.layers * (shape.attention + touched * shape.mlp)
    reading = linear * DTYPES[group.dtype] / READING[group.dtype] + 2 * shape.embedding / READING["bf16"]
    cache = sequences * context * kv_token(shape) / kv_shards(shape, group.tensor) * group.tensor
    read_ms = (reading + cache / READING["bf16"]) / (gpu.bandwidth_gbs * group.tensor) / 1e6
    used = shape.layers * (shape.attention + shape.experts_used * shape.mlp)
    attended = 4 * shape.layers * shape.heads * shape.head_dim * context
    flops = tokens * (2 * used + attended) + sequences * 2 * shape.embedding
    tflops = gpu.fp8_tflops if group.dtype == "fp8" and gpu.fp8_tflops else gpu.bf16_tflops
    multiply_ms = flops / (tflops * MULTIPLYING * group.tensor) / 1e9
    return max(read_ms, multiply_ms) + STEP_MS + LAYER_MS * shape.layers + communication_ms(group, tokens)


def decode_ms(group: Group, batch: int, context: int) -> float:
    """From one token to the next, of `batch` replies at a time (TPOT)."""
    return step_ms(group, batch, context, sequences=batch)


def prefill_ms(group: Group, new: int, context: int, sequences: int) -> float:
    """Until a prompt of `new` tokens behind `context` cached ones is read, in pieces, beside `sequences` - 1 replies,
    each of which gets a token in each step."""
    others, read, ms = sequences - 1, 0, 0.0
    while read < new:
        piece = min(new - read, max(1, STEP_TOKENS - others))
        ms += step_ms(group, piece + others, context + read, sequences=sequences)
        read += piece
    return ms


def communication_ms(group: Group, tokens: int) -> float:
    """Of one step: two all-reduces a layer within the tensor-parallel group, a hand-over between a pipeline's parts."""
    size = tokens * group.shape.dim * 2
    hops = (group.pipeline - 1) * (group.link.latency_us / 1e3 + size / group.link.gbs / 1e6)
    return 2 * group.shape.layers * all_reduce_ms(group.link, size, group.tensor) + hops


def all_reduce_ms(link: Link, size: int, gpus: int) -> float:
    """Of `size` bytes among `gpus` GPUs: each sends and gets 2 (n - 1) / n of them."""
    if gpus == 1:
        return 0.0
    latency_us = link.latency_us * (1 + 0.5 * (math.log2(gpus) - 1))
    return latency_us / 1e3 + 2 * (gpus - 1) / gpus * size / link.gbs / 1e6


def _experts_touched(shape: LlmShape, tokens: int) -> float:
    """Of the experts of a layer, how many at least one of the tokens goes through, if chance chooses."""
    return shape.experts * (1 - (1 - shape.experts_used / shape.experts) ** tokens) if shape.experts > 1 else 1.0

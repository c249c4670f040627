"""What is in a GPU's memory, in bytes."""

from voicepipe.sizing.gpu_models import GIB
from voicepipe.sizing.shapes import AsrShape, LlmShape

DTYPES = {"bf16": 2.0, "fp8": 1.0, "awq4": (4 + (16 + 4) / 128) / 8}
"""Bytes of one weight of a matrix. awq4: 4 bits, and for each 128 of them a scale of 16 and a zero point of 4."""
CONTEXT = GIB // 2
"""CUDA's own, of each process on a GPU."""
LLM_WORKSPACE = 3 * GIB // 2
"""vLLM's activations, CUDA graphs and NCCL's buffers, of each GPU of the group."""
ASR_WORKSPACE = GIB
"""Activations of a batch, and what cuBLAS keeps."""
TTS_WORKSPACE = GIB
"""onnxruntime's arena, or torch's cache."""
TTS_WEIGHTS = {"kokoro": 330_000_000, "coqui": 150_000_000}
"""Kokoro: 82 million weights, float32; VITS: 36 million and its vocoder's training twin."""
BLOCK_TOKENS = 16
"""vLLM gives out its cache in blocks of so many tokens."""


def llm_weights(shape: LlmShape, dtype: str) -> int:
    """Of the whole model. Embedding, output projection and norms stay 16-bit in the usual quantised checkpoints."""
    wide = shape.others + (1 if shape.tied else 2) * shape.embedding
    return round(shape.linear * DTYPES[dtype] + 2 * wide)


def kv_token(shape: LlmShape) -> int:
    """Of one token of what a call has said: a key and a value for each layer and head of them, 16-bit."""
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * 2


def kv_call(shape: LlmShape, tokens: int) -> int:
    """Of one call with so many tokens of context."""
    blocks = -(-tokens // BLOCK_TOKENS)
    return blocks * BLOCK_TOKENS * kv_token(shape)


def kv_shards(shape: LlmShape, tensor_parallel: int) -> int:
    """Among how many GPUs of a tensor-parallel group the cache is divided: a head of it is never split."""
    return min(tensor_parallel, shape.kv_heads)


def asr_weights(shape: AsrShape) -> int:
    """16-bit."""
    return 2 * shape.weights


def asr(weights: int) -> int:
    """Of the recogniser with so many bytes of weights, without its process's CUDA context."""
    return weights + ASR_WORKSPACE


def tts(weights: int, processes: int = 0) -> int:
    """Of speech synthesis; `processes`: each has the model and a CUDA context of its own, 0: it is in the PoP's."""
    return (weights + TTS_WORKSPACE) * max(1, processes) + CONTEXT * processes

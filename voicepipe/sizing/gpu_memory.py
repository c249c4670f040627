"""What models take of a GPU's memory, in bytes."""

from voicepipe.sizing.constants import ASR_WORKSPACE, BLOCK_TOKENS, WHISPER_BATCH, WHISPER_LOGITS
from voicepipe.sizing.shapes import AsrShape, LlmShape

DTYPES = {"bf16": 2.0, "fp8": 1.0, "awq4": (4 + (16 + 4) / 128) / 8}
"""Bytes of one weight of a matrix, the most precise first. awq4: 4 bits, and for each 128 of them a scale of 16 and a
zero point of 4."""


def llm_weights(shape: LlmShape, dtype: str) -> int:
    """Bytes of the whole model. Embedding, output projection and norms stay 16-bit in the usual quantised
    checkpoints."""
    wide = shape.others + (1 if shape.tied else 2) * shape.embedding
    return round(shape.linear * DTYPES[dtype] + 2 * wide)


def kv_token(shape: LlmShape) -> int:
    """Bytes of one token in the KV cache: a key and a value for each layer and head, 16-bit."""
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * 2


def kv_call(shape: LlmShape, tokens: int) -> int:
    """Bytes of a call with so many tokens of context."""
    blocks = -(-tokens // BLOCK_TOKENS)
    return blocks * BLOCK_TOKENS * kv_token(shape)


def kv_shards(shape: LlmShape, tensor_parallel: int) -> int:
    """GPUs of a tensor-parallel group among which the cache is divided: a head of it is never split."""
    return min(tensor_parallel, shape.kv_heads)


def whisper_working(batch: int = WHISPER_BATCH) -> int:
    """Bytes of Whisper without its weights. The logits of all steps are kept (`return_logits_vocab`)."""
    return ASR_WORKSPACE + batch * WHISPER_LOGITS


def whisper(shape: AsrShape) -> int:
    """Bytes of Whisper with 16-bit weights, without its process's CUDA context."""
    return 2 * shape.weights + whisper_working()

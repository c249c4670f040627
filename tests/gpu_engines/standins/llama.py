"""A decoder of the Llama family: grouped-query attention, RMSNorm, rotary positions, SwiGLU; as Llama 3, Qwen 2.5 and
Qwen 3 have them. Keys and values stay in a cache of fixed size, so that a step can be recorded.

Llama 3: arXiv 2407.21783. Rotary positions: arXiv 2104.09864, in the halves' order of published checkpoints.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voicepipe.sizing.shapes import LlmShape

TINY = LlmShape(2, 128, 4, 2, 32, 256, 512)
"""For machines without a GPU."""
ROPE_THETA, EPS = 500_000.0, 1e-5
"""Llama 3's; no model is faster or slower for its own."""


class Cache:
    """Keys and values: [layers, 2, slots, length, kv_heads, head_dim]; a slot holds one sequence."""

    def __init__(self, shape: LlmShape, slots: int, length: int, like: Tensor) -> None:
        self.slots, self.length = slots, length
        size = (shape.layers, 2, slots, length, shape.kv_heads, shape.head_dim)
        self.kv = torch.zeros(size, dtype=like.dtype, device=like.device)


class Context:
    """Where the tokens of one forward pass stand. `slots` int64[B]: which sequences; None: those of the first B slots,
    whose cache is then read in place. `positions` int64[B, T]."""

    def __init__(self, shape: LlmShape, cache: Cache, slots: Tensor | None, positions: Tensor) -> None:
        self.cache, self.slots, self.positions = cache, slots, positions
        batch, device = positions.shape[0], positions.device
        self.rows = (torch.arange(batch, device=device) if slots is None else slots)[:, None]
        half = torch.arange(0, shape.head_dim, 2, device=device, dtype=torch.float32) / shape.head_dim
        angles = positions[:, :, None].float() * ROPE_THETA**-half
        dtype = cache.kv.dtype
        self.cos = angles.cos().repeat(1, 1, 2)[:, :, None].to(dtype)
        self.sin = torch.cat([-angles.sin(), angles.sin()], -1)[:, :, None].to(dtype)
        # A group of heads shares its keys: for the attention kernel they are one head with so many times the queries.
        seen = torch.arange(cache.length, device=device) <= positions[:, :, None]
        bias = torch.zeros_like(seen, dtype=dtype).masked_fill_(~seen, float("-inf"))
        self.bias = bias[:, None].repeat(1, 1, shape.heads // shape.kv_heads, 1)

    def rotated(self, x: Tensor) -> Tensor:
        """x [B, T, heads, head_dim] turned by its positions."""
        return torch.addcmul(x * self.cos, x.roll(x.shape[-1] // 2, -1), self.sin)

    def remember(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write [B, T, kv_heads, head_dim] and return all that is cached for these sequences, [B, length, ...]."""
        cached = self.cache.kv[layer]
        found = []
        for store, new in zip(cached, (keys, values), strict=True):
            store[self.rows, self.positions] = new
            found.append(store[: new.shape[0]] if self.slots is None else store[self.slots])
        return found[0], found[1]


class LlamaAttention(nn.Module):
    def __init__(self, shape: LlmShape, layer: int) -> None:
        super().__init__()
        self.shape, self.layer = shape, layer
        queries, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.qkv = nn.Linear(shape.dim, queries + 2 * kv, bias=shape.qkv_bias)
        self.out = nn.Linear(queries, shape.dim, bias=False)
        if shape.qk_norm:
            self.q_norm, self.k_norm = (nn.RMSNorm(shape.head_dim, EPS) for _ in range(2))

    def forward(self, x: Tensor, context: Context) -> Tensor:
        heads, kv_heads = self.shape.heads, self.shape.kv_heads
        batch, tokens = x.shape[:2]
        split = self.qkv(x).view(batch, tokens, heads + 2 * kv_heads, self.shape.head_dim)
        if self.shape.qk_norm:
            q, k = self.q_norm(split[:, :, :heads]), self.k_norm(split[:, :, heads : heads + kv_heads])
            turned = context.rotated(torch.cat([q, k], 2))
        else:
            turned = context.rotated(split[:, :, : heads + kv_heads])
        keys, values = context.remember(self.layer, turned[:, :, heads:], split[:, :, heads + kv_heads :])
        # [B, T, heads, d] -> [B, kv_heads, group * T, d]
        queries = turned[:, :, :heads].unflatten(2, (kv_heads, -1)).permute(0, 2, 3, 1, 4).flatten(2, 3)
        mixed = F.scaled_dot_product_attention(
            queries, keys.transpose(1, 2), values.transpose(1, 2), context.bias, scale=self.shape.head_dim**-0.5
        )
        mixed = mixed.unflatten(2, (heads // kv_heads, tokens)).permute(0, 3, 1, 2, 4).flatten(2)
        return self.out(mixed)


class Layer(nn.Module):
    def __init__(self, shape: LlmShape, layer: int) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.dim, EPS)
        self.attention = LlamaAttention(shape, layer)
        self.mlp_norm = nn.RMSNorm(shape.dim, EPS)
        self.gate_up = nn.Linear(shape.dim, 2 * shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.dim, bias=False)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        x = x + self.attention(self.attention_norm(x), context)
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    """Tokens int64[B, T] -> logits [B, vocab] of the last of them."""

    def __init__(self, shape: LlmShape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocab, shape.dim)
        self.layers = nn.ModuleList(Layer(shape, number) for number in range(shape.layers))
        self.norm = nn.RMSNorm(shape.dim, EPS)
        if not shape.tied:
            self.head = nn.Linear(shape.dim, shape.vocab, bias=False)

    def forward(self, tokens: Tensor, cache: Cache, slots: Tensor | None, positions: Tensor) -> Tensor:
        context = Context(self.shape, cache, slots, positions)
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, context)
        x = self.norm(x[:, -1])
        return F.linear(x, self.embed.weight if self.shape.tied else self.head.weight)

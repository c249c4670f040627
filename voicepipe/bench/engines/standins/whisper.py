"""Whisper's encoder and decoder (arXiv 2212.04356), of the published checkpoints' layout; the words are noise.

A reading is of fixed length from sound to the last token, so that it can be recorded as a whole.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voicepipe.sizing.shapes import AsrShape

RATE = 16_000
HOP, WINDOW = 160, 400
"""Samples between two mel frames and under each; two frames make one position of the encoder."""
MAX_POSITIONS = 1500
"""30 s."""
MAX_TOKENS = 448
PROMPT = 4
"""Tokens before the first word: start, language, task, no times."""


class WhisperAttention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.out, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim, bias=False)

    def split(self, x: Tensor) -> Tensor:
        """[B, T, dim] -> [B, heads, T, dim / heads]"""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.split(self.key(x)), self.split(self.value(x))

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, *, causal: bool = False) -> Tensor:
        mixed = F.scaled_dot_product_attention(self.split(self.query(x)), keys, values, is_causal=causal)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Mlp(nn.Sequential):
    def __init__(self, dim: int) -> None:
        super().__init__(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))


class EncoderLayer(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.attention, self.attention_norm = WhisperAttention(dim, heads), nn.LayerNorm(dim)
        self.mlp, self.mlp_norm = Mlp(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.attention_norm(x)
        x = x + self.attention(normed, *self.attention.keys_values(normed))
        return x + self.mlp(self.mlp_norm(x))


class WhisperEncoder(nn.Module):
    """Mel frames [B, mels, 2 * n] -> [B, n, dim]; n may be less than the 1500 positions of 30 s."""

    def __init__(self, shape: AsrShape) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(shape.mels, shape.dim, 3, padding=1)
        self.conv2 = nn.Conv1d(shape.dim, shape.dim, 3, stride=2, padding=1)
        self.positions = nn.Parameter(torch.empty(MAX_POSITIONS, shape.dim))
        self.layers = nn.ModuleList(EncoderLayer(shape.dim, shape.heads) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.dim)

    def forward(self, mel: Tensor) -> Tensor:
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).transpose(1, 2)
        x = x + self.positions[: x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class DecoderLayer(nn.Module):
    """`past`: keys and values of the tokens so far, [B, heads, t, d] each; grown by those of x."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.attention, self.attention_norm = WhisperAttention(dim, heads), nn.LayerNorm(dim)
        self.cross, self.cross_norm = WhisperAttention(dim, heads), nn.LayerNorm(dim)
        self.mlp, self.mlp_norm = Mlp(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor, sound: tuple[Tensor, Tensor], past: list[Tensor]) -> Tensor:
        normed = self.attention_norm(x)
        new = self.attention.keys_values(normed)
        past[:] = [torch.cat(pair, 2) for pair in zip(past, new, strict=True)] if past else new
        x = x + self.attention(normed, past[0], past[1], causal=x.shape[1] > 1)
        x = x + self.cross(self.cross_norm(x), *sound)
        return x + self.mlp(self.mlp_norm(x))


class WhisperDecoder(nn.Module):
    def __init__(self, shape: AsrShape) -> None:
        super().__init__()
        self.embed = nn.Embedding(shape.vocab, shape.dim)
        self.positions = nn.Parameter(torch.empty(MAX_TOKENS, shape.dim))
        self.layers = nn.ModuleList(DecoderLayer(shape.dim, shape.heads) for _ in range(shape.decoder_layers))
        self.norm = nn.LayerNorm(shape.dim)

    def heard(self, encoded: Tensor) -> list[tuple[Tensor, Tensor]]:
        """What each layer attends to of the sound."""
        return [layer.cross.keys_values(encoded) for layer in self.layers]

    def forward(self, tokens: Tensor, sound: list[tuple[Tensor, Tensor]], past: list[list[Tensor]]) -> Tensor:
        """Tokens int64[B, T] after those in `past` (a list for each layer; T > 1 only while it is empty) -> logits
        [B, vocab] of the last."""
        begun = past[0][0].shape[2] if past[0] else 0
        x = self.embed(tokens) + self.positions[begun : begun + tokens.shape[1]]
        for layer, heard, before in zip(self.layers, sound, past, strict=True):
            x = layer(x, heard, before)
        return F.linear(self.norm(x[:, -1]), self.embed.weight)


class Whisper(nn.Module):
    def __init__(self, shape: AsrShape) -> None:
        super().__init__()
        self.encoder, self.decoder = WhisperEncoder(shape), WhisperDecoder(shape)

    def read(self, mel: Tensor, prompt: Tensor, count: int) -> Tensor:
        """mel [B, mels, frames] and prompt int64[B, n] -> `count` tokens each, the likeliest: int64[B, count]."""
        sound = self.decoder.heard(self.encoder(mel))
        past: list[list[Tensor]] = [[] for _ in self.decoder.layers]
        told, tokens = [], prompt
        for _ in range(count):
            tokens = self.decoder(tokens, sound, past).argmax(-1, keepdim=True)
            told.append(tokens)
        return torch.cat(told, 1)


class Mel(nn.Module):
    """Sound [B, n] in -1..1 at 16 kHz -> log-mel frames [B, mels, n / 160], by a product with sines, which can be
    recorded where an FFT's plans might not be. The bands are mel-spaced triangles up to 8 kHz."""

    def __init__(self, mels: int, device: torch.device) -> None:
        super().__init__()
        at = torch.arange(WINDOW, device=device) / WINDOW
        bins = torch.arange(WINDOW // 2 + 1, device=device)
        phase = 2 * math.pi * at[:, None] * bins
        hann = torch.hann_window(WINDOW, device=device)[:, None]
        self.waves = torch.cat([phase.cos() * hann, phase.sin() * hann], 1)
        """[400, 2 * 201]"""
        edges = 700 * (10 ** (torch.linspace(0, 2595 * math.log10(1 + 8000 / 700), mels + 2, device=device) / 2595) - 1)
        hz = bins * (RATE / WINDOW)
        rise = (hz[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
        fall = (edges[2:] - hz[:, None]) / (edges[2:] - edges[1:-1])
        self.bands = torch.minimum(rise, fall).clamp_(min=0)
        """[201, mels]"""

    def forward(self, sound: Tensor) -> Tensor:
        frames = F.pad(sound, (WINDOW // 2, WINDOW // 2 - HOP)).unfold(1, WINDOW, HOP)
        real, imaginary = (frames @ self.waves).chunk(2, -1)
        power = (real.square() + imaginary.square()) @ self.bands
        log = power.clamp(min=1e-10).log10()
        log = torch.maximum(log, log.amax((1, 2), keepdim=True) - 8)
        return ((log + 4) / 4).transpose(1, 2)

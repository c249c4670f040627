"""A synthesiser of Kokoro-82M's layers and sizes: phonemes -> prosody -> frames of 25 ms -> 24 kHz speech.

StyleTTS 2 (arXiv 2306.07691) with ALBERT (1909.11942) for the phonemes and iSTFTNet (2203.02395) for the sound. Each
phoneme is as long as every other, so that the work of a phrase depends on its length alone; all of a trained model's
work is done, that of the durations too.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.gpu_engines.standins.vocoder import AdaptiveNorm, Vocoder


@dataclass(frozen=True)
class TtsShape:
    """The defaults are Kokoro-82M's."""

    hidden: int = 512
    style: int = 128
    bert: int = 768
    bert_heads: int = 12
    bert_ffn: int = 2048
    bert_layers: int = 12
    """Passes through one layer's weights."""
    decoder: int = 1024
    symbols: int = 178


TINY = TtsShape(hidden=64, style=16, bert=64, bert_heads=4, bert_ffn=128, bert_layers=2, decoder=64)
"""For machines without a GPU."""
PHONEMES_A_SECOND = 15
FRAMES_A_SECOND = 40
"""Before the decoder doubles them."""


class SharedLayer(nn.Module):
    """ALBERT's only layer, which is passed `times` times. [B, T, dim]"""

    def __init__(self, dim: int, heads: int, ffn: int, times: int) -> None:
        super().__init__()
        self.heads, self.times = heads, times
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, ffn), nn.Linear(ffn, dim)
        self.attention_norm, self.norm = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.times):
            q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            x = self.attention_norm(x + self.out(mixed))
            x = self.norm(x + self.down(F.gelu(self.up(x), approximate="tanh")))
        return x


class PhonemeBert(nn.Module):
    """Phonemes int64[B, T] -> [B, T, bert]"""

    NARROW, LONGEST = 128, 512

    def __init__(self, shape: TtsShape) -> None:
        super().__init__()
        self.symbols = nn.Embedding(shape.symbols, self.NARROW)
        self.positions = nn.Embedding(self.LONGEST, self.NARROW)
        self.norm = nn.LayerNorm(self.NARROW)
        self.widen = nn.Linear(self.NARROW, shape.bert)
        self.layer = SharedLayer(shape.bert, shape.bert_heads, shape.bert_ffn, shape.bert_layers)

    def forward(self, phonemes: Tensor) -> Tensor:
        x = self.symbols(phonemes) + self.positions.weight[: phonemes.shape[1]]
        return self.layer(self.widen(self.norm(x)))


def both_ways(dim: int, out: int) -> nn.LSTM:
    return nn.LSTM(dim, out // 2, batch_first=True, bidirectional=True)


class TextEncoder(nn.Module):
    """Phonemes int64[B, T] -> [B, T, hidden]"""

    def __init__(self, shape: TtsShape) -> None:
        super().__init__()
        self.symbols = nn.Embedding(shape.symbols, shape.hidden)
        self.convs = nn.ModuleList(nn.Conv1d(shape.hidden, shape.hidden, 5, padding=2) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(shape.hidden) for _ in range(3))
        self.lstm = both_ways(shape.hidden, shape.hidden)

    def forward(self, phonemes: Tensor) -> Tensor:
        x = self.symbols(phonemes)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.leaky_relu(norm(conv(x.transpose(1, 2)).transpose(1, 2)), 0.2)
        return self.lstm(x)[0]


class StyledBlock(nn.Module):
    """Two convolutions in a given style: [B, dim, T] -> [B, out, T], or twice as many frames."""

    def __init__(self, dim: int, out: int, style: int, *, double: bool = False) -> None:
        super().__init__()
        self.norm1, self.norm2 = AdaptiveNorm(style, dim), AdaptiveNorm(style, out)
        self.conv1, self.conv2 = nn.Conv1d(dim, out, 3, padding=1), nn.Conv1d(out, out, 3, padding=1)
        self.short = nn.Conv1d(dim, out, 1, bias=False) if dim != out else nn.Identity()
        self.grow = (
            nn.ConvTranspose1d(dim, dim, 3, stride=2, groups=dim, padding=1, output_padding=1) if double else None
        )

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        y = F.leaky_relu(self.norm1(x, style), 0.2)
        if self.grow is not None:
            x, y = x.repeat_interleave(2, -1), self.grow(y)
        y = self.conv2(F.leaky_relu(self.norm2(self.conv1(y), style), 0.2))
        return (self.short(x) + y) * 2**-0.5


class Prosody(nn.Module):
    """How long each phoneme is, and pitch and energy of each frame."""

    def __init__(self, shape: TtsShape) -> None:
        super().__init__()
        dim, style = shape.hidden, shape.style
        self.lstms = nn.ModuleList(both_ways(dim + style, dim) for _ in range(3))
        self.norms = nn.ModuleList(nn.Linear(style, 2 * dim) for _ in range(3))
        self.long_lstm, self.durations = both_ways(dim + style, dim), nn.Linear(dim, 50)
        self.frames_lstm = both_ways(dim + style, dim)
        self.pitch, self.energy = self._curve(dim, style), self._curve(dim, style)

    def _curve(self, dim: int, style: int) -> nn.ModuleList:
        blocks = (
            StyledBlock(dim, dim, style),
            StyledBlock(dim, dim // 2, style, double=True),
            StyledBlock(dim // 2, dim // 2, style),
        )
        return nn.ModuleList([*blocks, nn.Conv1d(dim // 2, 1, 1)])

    def forward(self, x: Tensor, style: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        """[B, T, hidden], style [B, style] and the phoneme of each frame, int64[frames] -> pitch and energy [B, 1,
        2 * frames]"""
        wide = style[:, None].expand(-1, x.shape[1], -1)
        x = torch.cat([x, wide], -1)
        for lstm, norm in zip(self.lstms, self.norms, strict=True):
            y = lstm(x)[0]
            scale, shift = norm(style)[:, None].chunk(2, -1)
            x = torch.cat([F.layer_norm(y, y.shape[-1:]) * (1 + scale) + shift, wide], -1)
        seconds = self.durations(self.long_lstm(x)[0]).sigmoid().sum(-1, keepdim=True)
        x = x + 0 * seconds
        frames = self.frames_lstm(x[:, at])[0].transpose(1, 2)
        return self._drawn(self.pitch, frames, style), self._drawn(self.energy, frames, style)

    @staticmethod
    def _drawn(curve: nn.ModuleList, x: Tensor, style: Tensor) -> Tensor:
        *blocks, last = curve
        for block in blocks:
            x = block(x, style)
        return last(x)


class Frames(nn.Module):
    """Phonemes' frames with pitch and energy -> [B, hidden, 2 * frames] for the vocoder."""

    NARROW = 64

    def __init__(self, shape: TtsShape) -> None:
        super().__init__()
        dim, style, inner = shape.hidden, shape.style, shape.decoder
        self.encode = StyledBlock(dim + 2, inner, style)
        mixed = inner + 2 + self.NARROW
        self.blocks = nn.ModuleList(StyledBlock(mixed, inner, style) for _ in range(3))
        self.last = StyledBlock(mixed, dim, style, double=True)
        self.pitch, self.energy = (nn.Conv1d(1, 1, 3, stride=2, padding=1) for _ in range(2))
        self.narrow = nn.Conv1d(dim, self.NARROW, 1)

    def forward(self, x: Tensor, pitch: Tensor, energy: Tensor, style: Tensor) -> Tensor:
        curves = [self.pitch(pitch), self.energy(energy)]
        kept = [self.narrow(x), *curves]
        x = self.encode(torch.cat([x, *curves], 1), style)
        for block in (*self.blocks, self.last):
            x = block(torch.cat([x, *kept], 1), style)
        return x


class Kokoro(nn.Module):
    def __init__(self, shape: TtsShape) -> None:
        super().__init__()
        self.bert, self.narrow = PhonemeBert(shape), nn.Linear(shape.bert, shape.hidden)
        self.prosody, self.text = Prosody(shape), TextEncoder(shape)
        self.frames, self.vocoder = Frames(shape), Vocoder(shape.hidden, shape.style)

    def forward(self, phonemes: Tensor, style: Tensor, frames: int) -> Tensor:
        """Phonemes int64[B, T] and the voice [B, 2 * style] -> float[B, 600 * frames] in -1..1 at 24 kHz."""
        voice, manner = style.chunk(2, -1)
        at = torch.arange(frames, device=phonemes.device) * phonemes.shape[1] // frames
        pitch, energy = self.prosody(self.narrow(self.bert(phonemes)), manner, at)
        x = self.text(phonemes)[:, at].transpose(1, 2)
        return self.vocoder(self.frames(x, pitch, energy, voice), pitch, voice)


def lengths(seconds: float) -> tuple[int, int]:
    """Phonemes and frames of so much speech; a silence stands before it and after it."""
    return math.ceil(PHONEMES_A_SECOND * seconds) + 2, round(FRAMES_A_SECOND * seconds)

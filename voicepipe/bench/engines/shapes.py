"""Sizes of models as their authors published them in config.json, and the numbers of weights that follow. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LlmShape:
    """A decoder of the Llama family."""

    layers: int
    dim: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool = False
    """The output projection is the embedding."""
    qkv_bias: bool = False
    qk_norm: bool = False
    rope_theta: float = 500_000.0
    norm_eps: float = 1e-5
    kind: str = "llama"
    """`model_type` of config.json."""

    @property
    def weights(self) -> int:
        kv = self.kv_heads * self.head_dim
        q = self.heads * self.head_dim
        attention = self.dim * (2 * q + 2 * kv) + self.qkv_bias * (q + 2 * kv) + self.qk_norm * 2 * self.head_dim
        layer = attention + 3 * self.dim * self.ffn + 2 * self.dim
        return self.layers * layer + self.dim + (1 if self.tied else 2) * self.vocab * self.dim


@dataclass(frozen=True)
class AsrShape:
    """Whisper: `layers` of the encoder, `decoder_layers` of the decoder."""

    mels: int
    dim: int
    heads: int
    layers: int
    decoder_layers: int
    vocab: int

    @property
    def weights(self) -> int:
        dim = self.dim
        attention = 4 * dim * dim + 3 * dim  # the keys' projection has no bias
        mlp = 8 * dim * dim + 5 * dim
        norm = 2 * dim
        stem = 3 * dim * (self.mels + dim) + 2 * dim
        encoder = stem + 1500 * dim + self.layers * (attention + mlp + 2 * norm) + norm
        decoder = (self.vocab + 448) * dim + self.decoder_layers * (2 * attention + mlp + 3 * norm) + norm
        return encoder + decoder


LLMS = {
    "llama-3.2-1b": LlmShape(16, 2048, 32, 8, 64, 8192, 128_256, tied=True),
    "llama-3.2-3b": LlmShape(28, 3072, 24, 8, 128, 8192, 128_256, tied=True),
    "llama-3.1-8b": LlmShape(32, 4096, 32, 8, 128, 14_336, 128_256),
    "qwen2.5-7b": LlmShape(
        28, 3584, 28, 4, 128, 18_944, 152_064, qkv_bias=True, rope_theta=1e6, norm_eps=1e-6, kind="qwen2"
    ),
    "qwen3-4b": LlmShape(
        36, 2560, 32, 8, 128, 9728, 151_936, tied=True, qk_norm=True, rope_theta=1e6, norm_eps=1e-6, kind="qwen3"
    ),
    "qwen3-8b": LlmShape(
        36, 4096, 32, 8, 128, 12_288, 151_936, qk_norm=True, rope_theta=1e6, norm_eps=1e-6, kind="qwen3"
    ),
    "tiny": LlmShape(2, 64, 4, 2, 16, 128, 512),
}
"""Meta's, Alibaba's, and one for machines without a GPU."""
ASRS = {
    "tiny": AsrShape(80, 384, 6, 4, 4, 51_865),
    "base": AsrShape(80, 512, 8, 6, 6, 51_865),
    "small": AsrShape(80, 768, 12, 12, 12, 51_865),
    "medium": AsrShape(80, 1024, 16, 24, 24, 51_865),
    "large-v3": AsrShape(128, 1280, 20, 32, 32, 51_866),
    "large-v3-turbo": AsrShape(128, 1280, 20, 32, 4, 51_866),
}
"""OpenAI's Whisper."""


@dataclass(frozen=True)
class TtsShape:
    """Kokoro: StyleTTS 2 with an iSTFTNet vocoder."""

    hidden: int = 512
    style: int = 128
    bert: int = 768
    bert_heads: int = 12
    bert_ffn: int = 2048
    bert_layers: int = 12
    """Passes through one layer's weights."""
    decoder: int = 1024
    symbols: int = 178


TTSS = {
    "kokoro-82m": TtsShape(),
    "tiny": TtsShape(hidden=64, style=16, bert=64, bert_heads=4, bert_ffn=128, bert_layers=2, decoder=64),
}
"""hexgrad's, and one for machines without a GPU."""

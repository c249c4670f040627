"""Shapes of models as their authors published them in config.json, and the numbers of weights that follow; the names
of models: ours, the hub's, and those of quantised copies. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

from voicepipe.base.errors import ConfigError


@dataclass(frozen=True, slots=True)
class LlmShape:
    """A decoder of the Llama family: grouped-query attention and a gated MLP, or several MLPs (experts) a layer."""

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
    experts: int = 1
    experts_used: int = 1
    """Experts that one token goes through."""
    kind: str = "llama"
    """`model_type` of config.json."""

    @property
    def attention(self) -> int:
        """Weights of one layer's four projections."""
        return self.dim * 2 * (self.heads + self.kv_heads) * self.head_dim

    @property
    def mlp(self) -> int:
        """Weights of one MLP."""
        return 3 * self.dim * self.ffn

    @property
    def linear(self) -> int:
        """Weights of all layers' matrices: what quantisation makes smaller."""
        router = self.dim * self.experts if self.experts > 1 else 0
        return self.layers * (self.attention + self.experts * self.mlp + router)

    @property
    def embedding(self) -> int:
        """Weights of the embedding, and of the output projection, which is as large."""
        return self.vocab * self.dim

    @property
    def others(self) -> int:
        """Weights of norms and biases."""
        heads = self.heads + 2 * self.kv_heads
        bias = heads * self.head_dim if self.qkv_bias else 0
        return self.layers * (2 * self.dim + bias + 2 * self.head_dim * self.qk_norm) + self.dim

    @property
    def weights(self) -> int:
        return self.linear + self.others + (1 if self.tied else 2) * self.embedding


@dataclass(frozen=True, slots=True)
class AsrShape:
    """Whisper: `layers` of the encoder, `decoder_layers` of the decoder."""

    mels: int
    dim: int
    layers: int
    decoder_layers: int
    vocab: int

    @property
    def encoder(self) -> int:
        """Weights of the encoder. Keys' projections have no bias."""
        dim = self.dim
        layer = 12 * dim * dim + 8 * dim + 4 * dim
        return 3 * dim * (self.mels + dim) + 2 * dim + 1500 * dim + self.layers * layer + 2 * dim

    @property
    def decoder(self) -> int:
        dim = self.dim
        layer = 16 * dim * dim + 11 * dim + 6 * dim
        return (self.vocab + 448) * dim + self.decoder_layers * layer + 2 * dim

    @property
    def weights(self) -> int:
        return self.encoder + self.decoder


def _llama(
    layers: int, dim: int, heads: int, ffn: int, vocab: int = 128_256, kind: str = "llama", *, head_dim: int = 128,
    tied: bool = False,
) -> LlmShape:  # fmt: skip
    return LlmShape(layers, dim, heads, 8, head_dim, ffn, vocab, tied, kind=kind)


def _qwen2(layers: int, dim: int, heads: int, kv: int, ffn: int, vocab: int = 152_064, tied: bool = False) -> LlmShape:
    return LlmShape(layers, dim, heads, kv, 128, ffn, vocab, tied, qkv_bias=True, kind="qwen2")


def _qwen3(layers: int, dim: int, heads: int, ffn: int, tied: bool = False) -> LlmShape:
    return LlmShape(layers, dim, heads, 8, 128, ffn, 151_936, tied, qk_norm=True, kind="qwen3")


def _gemma3(layers: int, dim: int, heads: int, head_dim: int, ffn: int) -> LlmShape:
    return LlmShape(layers, dim, heads, heads // 2, head_dim, ffn, 262_208, True, qk_norm=True, kind="gemma3_text")


MODELS = {
    "llama-3.2-1b": ("meta-llama/Llama-3.2-1B-Instruct", _llama(16, 2048, 32, 8192, head_dim=64, tied=True)),
    "llama-3.2-3b": ("meta-llama/Llama-3.2-3B-Instruct", _llama(28, 3072, 24, 8192, tied=True)),
    "llama-3.1-8b": ("meta-llama/Llama-3.1-8B-Instruct", _llama(32, 4096, 32, 14_336)),
    "llama-3.1-70b": ("meta-llama/Llama-3.1-70B-Instruct", _llama(80, 8192, 64, 28_672)),
    "llama-3.3-70b": ("meta-llama/Llama-3.3-70B-Instruct", _llama(80, 8192, 64, 28_672)),
    "llama-3-8b": ("meta-llama/Meta-Llama-3-8B-Instruct", _llama(32, 4096, 32, 14_336)),
    "llama-3-70b": ("meta-llama/Meta-Llama-3-70B-Instruct", _llama(80, 8192, 64, 28_672)),
    "mistral-7b": ("mistralai/Mistral-7B-Instruct-v0.3", _llama(32, 4096, 32, 14_336, 32_768, "mistral")),
    "mistral-small-24b": (
        "mistralai/Mistral-Small-24B-Instruct-2501",
        _llama(40, 5120, 32, 32_768, 131_072, "mistral"),
    ),
    "qwen2.5-1.5b": ("Qwen/Qwen2.5-1.5B-Instruct", _qwen2(28, 1536, 12, 2, 8960, 151_936, tied=True)),
    "qwen2.5-3b": ("Qwen/Qwen2.5-3B-Instruct", _qwen2(36, 2048, 16, 2, 11_008, 151_936, tied=True)),
    "qwen2.5-7b": ("Qwen/Qwen2.5-7B-Instruct", _qwen2(28, 3584, 28, 4, 18_944)),
    "qwen2.5-14b": ("Qwen/Qwen2.5-14B-Instruct", _qwen2(48, 5120, 40, 8, 13_824)),
    "qwen2.5-32b": ("Qwen/Qwen2.5-32B-Instruct", _qwen2(64, 5120, 40, 8, 27_648)),
    "qwen2.5-72b": ("Qwen/Qwen2.5-72B-Instruct", _qwen2(80, 8192, 64, 8, 29_568)),
    "qwen3-0.6b": ("Qwen/Qwen3-0.6B", _qwen3(28, 1024, 16, 3072, tied=True)),
    "qwen3-1.7b": ("Qwen/Qwen3-1.7B", _qwen3(28, 2048, 16, 6144, tied=True)),
    "qwen3-4b": ("Qwen/Qwen3-4B", _qwen3(36, 2560, 32, 9728, tied=True)),
    "qwen3-8b": ("Qwen/Qwen3-8B", _qwen3(36, 4096, 32, 12_288)),
    "qwen3-14b": ("Qwen/Qwen3-14B", _qwen3(40, 5120, 40, 17_408)),
    "qwen3-32b": ("Qwen/Qwen3-32B", _qwen3(64, 5120, 64, 25_600)),
    "qwen3-30b-a3b": (
        "Qwen/Qwen3-30B-A3B",
        LlmShape(48, 2048, 32, 4, 128, 768, 151_936, False, False, True, 128, 8, "qwen3_moe"),
    ),
    "gemma-3-4b": ("google/gemma-3-4b-it", _gemma3(34, 2560, 8, 256, 10_240)),
    "gemma-3-12b": ("google/gemma-3-12b-it", _gemma3(48, 3840, 16, 256, 15_360)),
    "gemma-3-27b": ("google/gemma-3-27b-it", _gemma3(62, 5376, 32, 128, 21_504)),
}
"""Meta's, Mistral's, Alibaba's and Google's (without what sees pictures): their names on the hub, and their shapes."""
HUB = {name: hub for name, (hub, _) in MODELS.items()}
LLMS = {name: shape for name, (_, shape) in MODELS.items()}
ASRS = {
    "tiny": AsrShape(80, 384, 4, 4, 51_865),
    "base": AsrShape(80, 512, 6, 6, 51_865),
    "small": AsrShape(80, 768, 12, 12, 51_865),
    "medium": AsrShape(80, 1024, 24, 24, 51_865),
    "large-v3": AsrShape(128, 1280, 32, 32, 51_866),
    "large-v3-turbo": AsrShape(128, 1280, 32, 4, 51_866),
}
"""Shapes of OpenAI's Whisper models."""

NARROW = {
    "fp8": r"fp8|int8|w8a8|w8a16|8bit",
    "awq4": r"awq|gptq|int4|w4a16|nvfp4|mxfp4|4bit|bnb",
}
"""Parts of names of quantised copies that give their weights' bits; those of methods mean 4 where nothing else is
given. 8-bit integers count as fp8."""
MANNER = re.compile(
    rf"instruct|chat|it|hf|base|dynamic|quantized|bf16|fp16|v\d+(\.\d+)?|\d{{4}}|{'|'.join(NARROW.values())}"
)
"""Parts of a name that change nothing of a model's shape: how it was trained or stored, and when."""

TOOL_CALLS = {"qwen": "hermes", "llama-3.": "llama3_json"}
"""Formats of tool calls, by the beginnings of models' names, as vLLM names their parsers. Llama 3.0 was not trained to
make any."""

FOREIGN = {
    "its attention is latent": ("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim"),
    "some of its experts serve each token": (
        "n_routed_experts", "n_shared_experts", "shared_expert_intermediate_size", "first_k_dense_replace",
    ),
}  # fmt: skip
"""Features that `LlmShape` does not have, with the keys that show them."""


def of_config(config: Mapping[str, Any]) -> LlmShape:
    """The shape in a config.json as transformers writes it. Raises ConfigError: it is of another kind of model."""
    text = config.get("text_config") or config  # what sees pictures has its language model inside
    for key in ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"):
        if key not in text:
            raise ConfigError(f"config.json: there is no {key}; sizing knows decoders of the Llama family")
    kind, heads, dim = str(text.get("model_type", "llama")), text["num_attention_heads"], text["hidden_size"]
    foreign = [f"{key}: {meaning}" for meaning, keys in FOREIGN.items() for key in keys if text.get(key)]
    if (kinds := set(text.get("layer_types") or ())) - {"full_attention"}:
        foreign.append(f"layer_types: {', '.join(sorted(kinds))}")
    if text.get("sliding_window") and (text.get("sliding_window_pattern") or kind.startswith("gemma")):
        foreign += ["sliding_window: some layers remember less"] if text.get("use_sliding_window", True) else []
    if foreign:
        raise ConfigError(f"config.json: {foreign[0]}, and sizing cannot tell what that kind of model takes")
    experts = text.get("num_experts") or text.get("num_local_experts") or 1
    expert_ffn = text.get("moe_intermediate_size") if experts > 1 else None
    return LlmShape(
        layers=text["num_hidden_layers"],
        dim=dim,
        heads=heads,
        kv_heads=text.get("num_key_value_heads") or heads,
        head_dim=text.get("head_dim") or dim // heads,
        ffn=expert_ffn or text.get("intermediate_size") or 4 * dim,
        vocab=text["vocab_size"],
        tied=text.get("tie_word_embeddings", kind.startswith("gemma")),
        qkv_bias=text.get("attention_bias", kind == "qwen2"),
        qk_norm=kind.startswith(("qwen3", "gemma3")),
        experts=experts,
        experts_used=text.get("num_experts_per_tok") or 1,
        kind=kind,
    )


def quantised(config: Mapping[str, Any]) -> str:
    """The entry of `gpu_memory.DTYPES` for a config.json's weights: by their bits, since names of methods do not give
    them. 8-bit integers count as fp8. Raises ConfigError: none of them."""
    quantisation = config.get("quantization_config") or {}
    if not (method := str(quantisation.get("quant_method", ""))):
        return "bf16"
    bits = _bits(quantisation, method)
    if bits not in {4, 8}:
        raise ConfigError(f"config.json: weights of {bits or 'unknown'} bits by {method}; sizing knows 4, 8 and 16")
    return "fp8" if bits == 8 else "awq4"


def _bits(quantisation: Mapping[str, Any], method: str) -> int:
    """Bits of one weight; 0: not given."""
    groups = (quantisation.get("config_groups") or {}).values()  # compressed-tensors, ModelOpt
    said = [quantisation.get("bits"), quantisation.get("w_bit")]  # GPTQ, AWQ
    said += [((group or {}).get("weights") or {}).get("num_bits") for group in groups]
    if bits := next(filter(None, said), 0):
        return int(bits)
    if method == "bitsandbytes":
        return 8 if quantisation.get("load_in_8bit") else 4
    if "4" in str(quantisation.get("quant_algo", "")) or "fp4" in method:  # NVFP4, MXFP4, W4A16
        return 4
    if "fp8" in method or method == "modelopt":
        return 8
    return 4 if "awq" in method or "gptq" in method else 0


class NamedModel(NamedTuple):
    """A model that is known by its name."""

    name: str
    """Its name in `shapes.LLMS`."""
    source: str
    """The value for `vllm.model`."""
    dtype: str
    """The type of its weights, if they are quantised; empty: 16-bit."""


def known_model(text: str) -> NamedModel | None:
    """The model of this name. None: it is not known."""
    owner, _, last = text.rpartition("/")
    parts = [part for part in re.split(r"[-_]|\.(?!\d)", last.lower()) if part]
    kept = [part for part in parts if not MANNER.fullmatch(part)]
    name = "-".join(kept).removeprefix("meta-")
    if name not in LLMS:
        return None
    dtype = next((dtype for dtype, bits in NARROW.items() if any(re.fullmatch(bits, part) for part in parts)), "")
    return NamedModel(name, text if owner else (HUB[name] if not dtype else last), dtype)


def nearest_name(text: str) -> str:
    """The known name that is most similar; empty: none is."""
    return next(iter(get_close_matches(text.rpartition("/")[2].lower(), LLMS, n=1)), "")


def tool_call_parser(text: str) -> str:
    """The value for `vllm.tool_call_parser` for the model of this name; empty: unknown."""
    name = found.name if (found := known_model(text)) else ""
    return next((parser for begins, parser in TOOL_CALLS.items() if name.startswith(begins)), "")

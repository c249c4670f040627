"""A configuration's engines with a vLLM model of random weights as the language model: to measure a model before it is
fetched.

Random weights take as long as trained ones, and say noise. vLLM gets a tokenizer in which every word is a token, so
that prompts are rendered. What it says is spoken as a syllable a token.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from voicepipe.agent import Agent
from voicepipe.base.errors import ConfigError
from voicepipe.bench.configured import QUESTIONS, configured
from voicepipe.bench.load import BY_LENGTH, CACHED_TOKENS, TRAFFIC
from voicepipe.bench.measure import Progress
from voicepipe.bench.play import PlayedEngines
from voicepipe.config import Config
from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines.hosting import gpus
from voicepipe.sizing.gpu_memory import kv_call
from voicepipe.sizing.shapes import LLMS, LlmShape

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""vLLM's architectures by `model_type` of config.json."""
SHAPES = {name: shape for name, shape in LLMS.items() if shape.kind in ARCHITECTURES} | {
    "tiny": LlmShape(2, 128, 4, 2, 32, 256, 512)
}
"""Shapes that can be measured, and a small one for tests."""
AGENT = Agent("bench", instructions="You answer the phone.")
LONGEST = 2 * CACHED_TOKENS
"""Tokens of a prompt and its reply."""
TEMPLATE = "{% for message in messages %}{{ message['role'] + ' ' + message['content'] + ' ' }}{% endfor %}assistant"
LARGE = 1_000_000_000
"""Weights of a language model that keeps a CPU busy for minutes."""
ITS_OWN = {"tokenizer", "tokenizer_revision", "revision", "speculative_config"}
"""Arguments of vLLM's that belong to a trained model."""


@asynccontextmanager
async def shaped(config: Config, name: str, calls: int, progress: Progress) -> AsyncIterator[PlayedEngines]:
    """The engines of `configured`, with a language model of the shape `name`. Raises ConfigError, EngineError."""
    shape, cuda = shape_of(name), bool(gpus.read().gpus)
    if said := slow(shape.weights, cuda=cuda):
        progress(said)
    with TemporaryDirectory() as folder:
        write_model(Path(folder), shape)
        engines = msgspec.structs.replace(config.engines, llm="vllm")
        config = msgspec.structs.replace(
            config, engines=engines, vllm=_vllm(config.vllm, Path(folder), shape, calls, cuda)
        )
        async with configured(config, calls, AGENT) as played:
            yield replace(played, phrasing=BY_LENGTH, llm_name=f"vLLM: {name}, random weights")


def shape_of(name: str) -> LlmShape:
    """The shape of this name. Raises ConfigError: there is none."""
    if name in SHAPES:
        return SHAPES[name]
    near = get_close_matches(name.lower(), SHAPES, 1)
    hint = f"did you mean {near[0]}? Or " if near else ""
    raise ConfigError(f"--shape {name}: there is no such shape; {hint}choose one of {', '.join(SHAPES)}.")


def slow(weights: int, *, cuda: bool) -> str:
    """A warning about a language model of so many weights where there is no GPU, in 32 bits; empty: it is small."""
    if cuda or weights < LARGE:
        return ""
    size = f"{weights / 1e9:.0f} billion weights on a CPU: {weights * 4 / 1e9:.0f} GB of memory"
    return f"{size}, and minutes before the first figure; --shape tiny is a trial"


def write_model(folder: Path, shape: LlmShape) -> None:
    """Write the files of a model without its weights."""
    (folder / "config.json").write_text(json.dumps(config_json(shape)))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE, "eos_token": word(2)})
    )
    tokenizer(shape.vocab).save(str(folder / "tokenizer.json"))


def _vllm(config: VllmConfig, model: Path, shape: LlmShape, calls: int, cuda: bool) -> VllmConfig:
    """vLLM with the configuration's own arguments, so that its quantisation or batches are measured, too."""
    usual = {
        "dtype": "bfloat16" if cuda else "float32",
        "max_num_seqs": max(8, calls),
        "enforce_eager": not cuda,  # compiling takes minutes on a CPU
    }
    # For all calls' conversations, and the replies that were made since, which are dropped first.
    kv_cache_bytes = max(8, calls) * kv_call(shape, LONGEST) * (1 if cuda else 2)
    own = {name: value for name, value in config.args.items() if name not in ITS_OWN}
    return msgspec.structs.replace(
        config,
        model=str(model),
        tool_call_parser="",
        max_model_len=LONGEST,
        kv_cache_memory_bytes=kv_cache_bytes,
        max_tokens=TRAFFIC.reply_tokens,
        args=usual | own | {"load_format": "dummy"},
    )


def config_json(shape: LlmShape) -> dict[str, object]:
    """The config.json of such a model."""
    return {
        "architectures": [ARCHITECTURES[shape.kind]],
        "model_type": shape.kind,
        "hidden_size": shape.dim,
        "intermediate_size": shape.ffn,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocab,
        "tie_word_embeddings": shape.tied,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500_000.0,
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "bfloat16",
    }


def tokenizer(vocabulary: int) -> Any:
    """A tokenizer by which every word is a token, also those of our prompts; it has one for unknown words. Words
    without meaning are read as a syllable."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    known = sorted({text for question in QUESTIONS for text in question.split()})[: vocabulary // 2]
    words = [word(number) for number in range(3)] + [f"▁{text}" for text in known]
    words += [word(number) for number in range(len(words), vocabulary)]
    made = Tokenizer(models.WordLevel({text: number for number, text in enumerate(words)}, unk_token=word(0)))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Sequence([decoders.Replace(Regex(r"w\d+"), "la"), decoders.Metaspace()])
    return made


def word(number: int) -> str:
    """The text of a token without meaning."""
    return f"▁w{number}"

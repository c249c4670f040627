"""Real engines with random weights of a shape: vLLM and faster-whisper, where they are installed, as a PoP loads them.

vLLM gets a tokenizer in which every word is a token, so that prompts are rendered and replies are text; its words mean
nothing. Whisper says twelve words, whatever it hears.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from voicepipe.agent import Agent
from voicepipe.bench.engines.chosen import Options, Progress
from voicepipe.bench.engines.configured import QUESTIONS, stages
from voicepipe.bench.engines.load import BY_LENGTH, CACHED_TOKENS, TRAFFIC
from voicepipe.bench.engines.play import PlayedEngines
from voicepipe.bench.engines.random_whisper import SAYS, Shape, make_whisper
from voicepipe.bench.engines.readings import BATCH
from voicepipe.config import Config
from voicepipe.config.engine_config import EnginesConfig, VllmConfig, WhisperConfig
from voicepipe.engines.loader import loaded
from voicepipe.errors import ConfigError
from voicepipe.sizing import gpu_memory
from voicepipe.sizing.shapes import AsrShape, LlmShape

if TYPE_CHECKING:
    from voicepipe.bench.engines.standins.device import Device

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
LONGEST = 2 * CACHED_TOKENS
"""Tokens of a prompt and its reply."""
TEMPLATE = "{% for message in messages %}{{ message['role'] + ' ' + message['content'] + ' ' }}{% endfor %}assistant"


@asynccontextmanager
async def shaped(
    options: Options, llm: LlmShape, asr: AsrShape, device: "Device", progress: Progress
) -> AsyncIterator[PlayedEngines]:
    """Those of the two that are installed, warm. Raises ConfigError, EngineError."""
    with TemporaryDirectory() as folder:
        whisper, vllm = bool(find_spec("faster_whisper")), bool(find_spec("vllm"))
        if vllm and device.torch.index:
            raise ConfigError(
                f"--device {device.torch}: vLLM takes the first GPU that it sees; leave --device out and set the "
                f"environment variable CUDA_VISIBLE_DEVICES={device.torch.index}, or measure with --stand-ins."
            )
        config = Config(
            engines=EnginesConfig(
                vad="scripted", asr="whisper" if whisper else "scripted", llm="vllm" if vllm else "scripted",
                tts="scripted",
            ),
            whisper=_whisper(Path(folder, "whisper"), asr, options, device) if whisper else WhisperConfig(),
            vllm=_vllm(Path(folder, "llm"), llm, options, device.cuda) if vllm else VllmConfig(),
        )  # fmt: skip
        real = [f"LLM: {options.llm}, by vLLM"] * vllm + [f"ASR: Whisper {options.asr}, by faster-whisper"] * whisper
        progress("; ".join(real))
        agent = Agent("bench", instructions="You answer the phone.")
        async with loaded(config) as engines:
            played = stages(config, engines, agent, max(options.calls), CACHED_TOKENS)
            assert played.llm and played.asr
            played.llm.phrasing = BY_LENGTH
            played.llm.name, played.llm.weights = f"vLLM: {options.llm}, random weights", llm.weights
            played.asr.name = f"faster-whisper: {options.asr} with windows of {options.window_s} s, random weights"
            played.asr.weights = asr.weights
            yield PlayedEngines(asr=played.asr if whisper else None, llm=played.llm if vllm else None)


def _whisper(folder: Path, shape: AsrShape, options: Options, device: "Device") -> WhisperConfig:
    widths = Shape(shape.dim, shape.heads, shape.layers, shape.decoder_layers, shape.mels, shape.vocab)
    made = make_whisper(folder, SAYS, multilingual=True, shape=widths)
    return WhisperConfig(model=str(made), device=str(device.torch), window_ms=1000 * options.window_s, batch=BATCH)


def _vllm(folder: Path, shape: LlmShape, options: Options, cuda: bool) -> VllmConfig:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config_json(shape)))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE, "eos_token": word(2)})
    )
    tokenizer(shape.vocab).save(str(folder / "tokenizer.json"))
    calls = max(options.calls)
    return VllmConfig(
        model=str(folder),
        max_model_len=LONGEST,
        kv_cache_memory_bytes=kv_cache_bytes(shape, calls, wide=not cuda),
        max_tokens=TRAFFIC.reply_tokens,
        args={
            "load_format": "dummy",
            "dtype": "bfloat16" if cuda else "float32",
            "max_num_seqs": max(8, calls),
            "enforce_eager": not cuda,  # compiling takes minutes on a CPU
        },
    )


def kv_cache_bytes(shape: LlmShape, calls: int, *, wide: bool) -> int:
    """For what all calls have said and the replies that were made since, which are forgotten first. `wide`: float32."""
    return max(8, calls) * gpu_memory.kv_call(shape, LONGEST) * (2 if wide else 1)


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
    """Every word is a token, those of our prompts too; what it does not know is one."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    known = sorted({text for question in QUESTIONS for text in question.split()})[: vocabulary // 2]
    words = [word(number) for number in range(3)] + [f"▁{text}" for text in known]
    words += [word(number) for number in range(len(words), vocabulary)]
    made = Tokenizer(models.WordLevel({text: number for number, text in enumerate(words)}, unk_token=word(0)))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return made


def word(number: int) -> str:
    """Text of a token that means nothing."""
    return f"▁w{number}"

"""Configurations whose models are files of true sizes, with nothing in them."""

import json
from pathlib import Path
from typing import Any

from tests.support.fake_nvml import GIB
from voicepipe import config
from voicepipe.config import Config


def configured(**tables: dict[str, Any]) -> Config:
    engines = {"asr": "whisper", "llm": "vllm", "tts": "kokoro"}
    whisper = {"device": "auto", **tables.pop("whisper", {})}
    return config.parse({"engines": {**engines, **tables.pop("engines", {})}, "whisper": whisper, **tables})


def sparse_models(tmp_path: Path) -> Config:
    """Qwen3-8B, Whisper large-v3-turbo, Kokoro."""

    def file(name: str, size: int) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with (tmp_path / name).open("wb") as sparse:
            sparse.truncate(size)

    for name, size in (("llm/1.safetensors", 9), ("llm/2.safetensors", 7), ("asr/model.bin", 2), ("kokoro.onnx", 1)):
        file(name, size * GIB)
    shape = {"num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
             "head_dim": 128, "vocab_size": 151_936, "intermediate_size": 12_288}  # fmt: skip
    (tmp_path / "llm" / "config.json").write_text(json.dumps(shape))
    file("voices.bin", 0)
    return configured(
        vllm={"model": str(tmp_path / "llm"), "kv_cache_memory_bytes": 20 * GIB},
        whisper={"model": str(tmp_path / "asr")},
        kokoro={"model": str(tmp_path / "kokoro.onnx"), "voices": str(tmp_path / "voices.bin")},
    )

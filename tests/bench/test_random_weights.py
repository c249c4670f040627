"""Models of true shape without weights."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from voicepipe.base.errors import ConfigError
from voicepipe.bench.configured import QUESTIONS
from voicepipe.bench.random_weights import SHAPES, _vllm, shape_of, slow, write_model
from voicepipe.config.engine_config import VllmConfig


def test_a_large_model_on_a_cpu_is_said_to_take_long() -> None:
    weights = SHAPES["llama-3.1-8b"].weights
    assert slow(weights, cuda=False).startswith("8 billion weights on a CPU: 32 GB of memory, and minutes")
    assert "--shape tiny" in slow(weights, cuda=False)
    assert slow(weights, cuda=True) == slow(SHAPES["tiny"].weights, cuda=False) == ""


@pytest.mark.parametrize(("name", "near"), [("llama-3.1-8B", "did you mean llama-3.1-8b?"), ("zzz", "choose one of")])
def test_a_shape_that_there_is_not(name: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"--shape {name}: there is no such shape; ") as error:
        shape_of(name)
    assert near in str(error.value) and "qwen3-8b" in str(error.value)
    assert ("did you mean" in str(error.value)) == (name != "zzz")


def test_a_model_without_weights_says_syllables(tmp_path: Path) -> None:
    """Prompts are known word by word, and what it says is spoken as a reply is."""
    write_model(tmp_path, SHAPES["tiny"])
    words = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    asked = QUESTIONS[0]
    assert words.decode(words.encode(asked).ids) == asked and 0 not in words.encode(asked).ids
    assert words.decode([200, 201, 202]) == "la la la"
    assert json.loads((tmp_path / "config.json").read_text())["num_hidden_layers"] == 2


def test_a_configurations_own_arguments_of_vllm_stay() -> None:
    config = VllmConfig(
        model="org/model",
        args={"quantization": "fp8", "max_num_seqs": 32, "revision": "main", "tokenizer": "org/other"},
    )
    made = _vllm(config, Path("/made"), SHAPES["llama-3.1-8b"], calls=16, cuda=True)
    assert made.model == "/made" and made.revision == ""
    assert made.args == {
        "dtype": "bfloat16", "enforce_eager": False, "quantization": "fp8", "max_num_seqs": 32, "load_format": "dummy",
    }  # fmt: skip
    assert made.kv_cache_memory_bytes == 16 * 4096 * 128 * 1024

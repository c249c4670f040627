"""`voicepipe bench engines`: what it is asked for, and what it says."""

import json
from pathlib import Path

import pytest
from huggingface_hub import constants
from tokenizers import Tokenizer

from voicepipe.base.errors import ConfigError
from voicepipe.bench.configured import QUESTIONS
from voicepipe.bench.shaped import SHAPES, _vllm, shape_of, slow, write_model
from voicepipe.commands.cli import main
from voicepipe.config.engine_config import VllmConfig


@pytest.mark.engine
def test_models_that_are_not_here_are_fetched_by_a_command_that_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    config, agents = tmp_path / "pop.toml", Path(__file__).parents[2] / "configs" / "agents"
    config.write_text(f'[pop]\nagents = "{agents}"\n[engines]\nasr = "whisper"\n[whisper]\nmodel = "org/none"\n')
    assert main(["bench", "engines", "--config", str(config)]) == 2
    assert f"fetch it with `voicepipe models pull {config}`" in capsys.readouterr().err


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


def test_a_run_of_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "engines", "--seconds", "0.5"]) == 2
    assert "--seconds 0.5: a run takes 1 second or more" in capsys.readouterr().err


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


@pytest.mark.parametrize("calls", ["", "0", "1,", "many"])
def test_numbers_of_calls(calls: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "engines", "--calls", calls])
    assert "as in 1,8,32" in capsys.readouterr().err

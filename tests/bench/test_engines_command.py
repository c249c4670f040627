"""`voicepipe bench engines`: what it is asked for, and what it says."""

import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from voicepipe.bench.engines import run
from voicepipe.bench.engines.chosen import Options, _shape, slow
from voicepipe.bench.engines.shapes import TINY_LLM
from voicepipe.commands.cli import main
from voicepipe.errors import ConfigError
from voicepipe.sizing.shapes import LLMS


def test_without_torch_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "voicepipe.bench.engines.standins.device", raising=False)
    assert main(["bench", "engines"]) == 2
    said = capsys.readouterr().err
    assert "the environment of pops/gpu.md" in said and "--config FILE" in said


@pytest.mark.engine
def test_models_that_are_not_here_are_fetched_by_a_command_that_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    config, agents = tmp_path / "pop.toml", Path(__file__).parents[2] / "configs" / "agents"
    config.write_text(f'[pop]\nagents = "{agents}"\n[engines]\nasr = "whisper"\n[whisper]\nmodel = "org/none"\n')
    assert main(["bench", "engines", "--config", str(config)]) == 2
    assert f"fetch it with `voicepipe models pull {config}`" in capsys.readouterr().err


def test_a_trial_is_asked_for_as_of_the_other_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Options] = []

    def noted(options: Options, json_file: Path | None, markdown: bool) -> int:
        asked.append(options)
        return 0

    monkeypatch.setattr(run, "run", noted)
    for option in (["--tiny"], ["--shape", "tiny"]):
        assert main(["bench", "engines", *option]) == 0
    assert asked[0] == asked[1] and (asked[0].llm, asked[0].calls) == ("tiny", (1, 2))


def test_a_large_model_on_a_cpu_is_said_to_take_long() -> None:
    weights = LLMS["llama-3.1-8b"].weights
    assert slow(weights, cuda=False).startswith("8 billion weights on a CPU: 32 GB of memory, and minutes")
    assert "--tiny" in slow(weights, cuda=False)
    assert slow(weights, cuda=True) == slow(TINY_LLM.weights, cuda=False) == ""


@pytest.mark.parametrize(("name", "near"), [("llama-3.1-8B", "did you mean llama-3.1-8b?"), ("zzz", "choose one of")])
def test_a_shape_that_there_is_not(name: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"--shape {name}: there is no such shape; ") as error:
        _shape("--shape", LLMS, name)
    assert near in str(error.value) and "qwen3-8b" in str(error.value)
    assert ("did you mean" in str(error.value)) == (name != "zzz")


@pytest.mark.parametrize("calls", ["", "0", "1,", "many"])
def test_numbers_of_calls(calls: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "engines", "--calls", calls])
    assert "as in 1,8,32" in capsys.readouterr().err

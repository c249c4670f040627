"""The configuration that `voicepipe plan` prints."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from voicepipe.commands import cli


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert cli.main(["plan", *argv]) == 0
    out = capsys.readouterr().out
    return out[out.index("[engines]") : out.index("All of it is predicted")]


def read(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    return tomllib.loads(printed(capsys, *argv))


def test_it_is_a_configuration(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for model, gpus in (("qwen3-8b", "H100"), ("llama-3.1-70b", "H100:4"), ("llama-3.1-8b", "RTX-5090")):
        file = tmp_path / "my.toml"
        file.write_text(printed(capsys, "--model", model, "--gpus", gpus))
        assert cli.main(["check", str(file)]) == 0
        capsys.readouterr()


def test_a_model_that_must_be_had_in_awq_is_left_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--model", "qwen3-8b", "--gpus", "H100", "--calls", "15")
    assert 'model = ""  # a checkpoint of Qwen/Qwen3-8B in AWQ, 4 bits\n' in text, "its own name would load 16 bits"


@pytest.mark.parametrize(("model", "gpu", "calls"), [("qwen3-8b", "H100", 100), ("Qwen/Qwen3-4B-AWQ", "RTX-4090", 50)])
def test_the_cache_is_for_the_slots_that_are_printed(
    capsys: pytest.CaptureFixture[str], model: str, gpu: str, calls: int
) -> None:
    """Not for the calls that were asked for, where the host answers fewer."""
    argv = ("--model", model, "--gpus", gpu, "--calls")
    many = read(capsys, *argv, str(calls))
    slots, cache = many["pop"]["slots"], many["vllm"]["kv_cache_memory_bytes"]
    call = 2048 * 144 * 1024
    assert slots < calls and slots * call <= cache < (1.2 * slots + 1) * call
    assert read(capsys, *argv, str(slots))["vllm"]["kv_cache_memory_bytes"] == cache
    one = read(capsys, *argv, "1")["vllm"]
    assert one["kv_cache_memory_bytes"] >= one["max_model_len"] * 144 * 1024, "room for one context"


def test_agents_can_use_tools(capsys: pytest.CaptureFixture[str]) -> None:
    for model, parser in (("Qwen/Qwen3-8B", "hermes"), ("llama-3.2-3b", "llama3_json")):
        assert read(capsys, "--model", model, "--gpus", "H100")["vllm"]["tool_call_parser"] == parser
    text = printed(capsys, "--model", "gemma-3-4b", "--gpus", "H100")
    assert 'tool_call_parser = ""  # "hermes", "llama3_json", ...; empty: agents cannot use tools\n' in text

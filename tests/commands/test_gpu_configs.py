"""The configurations of GPU hosts: what stands in them is what `voicepipe plan` says."""

import json
import re
import tomllib
from typing import Any

import pytest

from tests.support.paths import ROOT
from voicepipe.commands import cli

SHIPPED = ("gpu.toml", "gpu-24gb.toml", "gpu-whisper.toml")


def planned(capsys: pytest.CaptureFixture[str], argv: str, *more: str) -> dict[str, Any]:
    capsys.readouterr()
    cli.main(["plan", *argv.split(), *more, "--json"])
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_configured_is_what_is_planned(capsys: pytest.CaptureFixture[str], name: str) -> None:
    text = (ROOT / "configs" / name).read_text()
    shipped = tomllib.loads(text)
    command = re.search(r"^#   voicepipe plan (.*)$", text, re.MULTILINE)
    assert command, "its header says how it was sized"
    facts = planned(capsys, command[1])
    chosen = next(option for option in facts["options"] if option["name"] == facts["best"])
    vllm = shipped["vllm"]
    assert shipped["ladder"] == {"first_phrase": "short"} and "--first-phrase short" in command[1]
    assert shipped["pop"]["slots"] == facts["calls"] == chosen["calls_in_time"]
    assert vllm["kv_cache_memory_bytes"] == chosen["kv_cache_memory_bytes"]
    assert vllm.get("tensor_parallel_size", 1) == chosen["tensor_parallel_size"]
    in_name = "AWQ" in vllm["model"] and "awq4"
    assert chosen["dtype"] == (in_name or vllm["args"].get("quantization", "bf16"))
    asr, tts = shipped["engines"]["asr"], shipped["engines"]["tts"]
    assert (asr == "whisper") == ("--asr large-v3-turbo" in command[1]) and tts == "kokoro"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_lines_that_plan_prints_stand_in_the_file(capsys: pytest.CaptureFixture[str], name: str) -> None:
    text = (ROOT / "configs" / name).read_text()
    command = re.search(r"^#   voicepipe plan (.*)$", text, re.MULTILINE)
    assert command
    cli.main(["plan", *command[1].split()])
    out = capsys.readouterr().out
    printed = tomllib.loads(out[out.index("[engines]") : out.index("All of it is predicted")])
    shipped = tomllib.loads(text)
    assert shipped["vllm"]["args"] == printed["vllm"]["args"] and shipped["ladder"] == printed["ladder"]
    for key in ("model", "max_model_len", "tool_call_parser"):
        assert shipped["vllm"][key] == printed["vllm"][key]


@pytest.mark.parametrize(
    ("name", "gpus"),
    [("gpu.toml", ("H100", "H200")), ("gpu-24gb.toml", ("RTX-4090", "L4")), ("gpu-whisper.toml", ("A100-40",))],
)
def test_it_fits_on_the_gpus_that_it_names(
    capsys: pytest.CaptureFixture[str], name: str, gpus: tuple[str, ...]
) -> None:
    text = (ROOT / "configs" / name).read_text()
    shipped = tomllib.loads(text)
    command = re.search(r"^#   voicepipe plan (.*)$", text, re.MULTILINE)
    assert command
    best = planned(capsys, command[1])["best"]
    for gpu in gpus:
        facts = planned(capsys, re.sub(r"--gpus \S+", f"--gpus {gpu}", command[1]))
        option = next((each for each in facts["options"] if each["name"] == best), facts["options"][0])
        taken = option["llm_bytes_a_gpu"] + option["speech_bytes"] + shipped["vllm"]["kv_cache_memory_bytes"]
        assert option["fits"] and taken < 0.97 * facts["gpu"]["memory_gib"] * 2**30


@pytest.mark.parametrize(
    "argv",
    [
        "--model Qwen/Qwen3-4B-AWQ --first-phrase short --gpus L4",
        "--model qwen3-8b --asr large-v3-turbo --first-phrase short --gpus A100",
        "--model Qwen/Qwen3-8B-FP8 --asr large-v3-turbo --first-phrase short --gpus A100",
    ],
)
def test_gpus_on_which_it_fits_and_answers_nobody_in_time(capsys: pytest.CaptureFixture[str], argv: str) -> None:
    """As headers say."""
    assert planned(capsys, argv)["options"][0]["calls_in_time"] == 0

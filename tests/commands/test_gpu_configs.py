"""The configurations of GPU hosts: what stands in them and in their headers is what `voicepipe plan` says."""

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


def by_dtype(facts: dict[str, Any]) -> dict[str, Any]:
    """Those on one GPU."""
    return {option["dtype"]: option for option in facts["options"]}


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
    assert f"An {facts['gpu']['name'].replace('-', ' ')} answers {chosen['calls_in_time']} calls in time" in text
    page = (ROOT / "pops" / "gpu.md").read_text()
    assert re.search(rf"^\| \[{name}\].* \| {chosen['calls_in_time']} \|$", page, re.MULTILINE)
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


def test_what_else_the_headers_say(capsys: pytest.CaptureFixture[str]) -> None:
    page = " ".join((ROOT / "pops" / "gpu.md").read_text().split())
    header = " ".join((ROOT / "configs" / "gpu.toml").read_text().replace("\n#", "\n").split())
    base = "--model qwen3-8b --first-phrase short --gpus"
    usual = by_dtype(planned(capsys, "--model qwen3-8b --gpus H100"))
    h100 = by_dtype(planned(capsys, f"{base} H100"))
    with_mps, streamed = (by_dtype(planned(capsys, f"{base} H100 --mps", *more)) for more in ((), ("--tts", "neutts")))
    a100 = by_dtype(planned(capsys, f"{base} A100"))
    assert f"and {with_mps['fp8']['calls_in_time']} where CUDA MPS runs" in header
    assert f'with tts = "neutts" and CUDA MPS, {streamed["fp8"]["calls_in_time"]} calls' in header
    assert f"{h100['fp8']['calls_in_time']} calls in place of {h100['bf16']['calls_in_time']}" in header
    shorter = f"{h100['fp8']['calls_in_time']} calls in place of {usual['fp8']['calls_in_time']}."
    assert shorter in header and shorter in page
    assert f"on an A100 take this line out and set `slots = {a100['bf16']['calls_in_time']}`" in header
    assert h100["fp8"]["bound"] == "synthesis" and "Synthesis bounds it." in header

    header = " ".join((ROOT / "configs" / "gpu-whisper.toml").read_text().replace("\n#", "\n").split())
    whisper = "--asr large-v3-turbo --first-phrase short --gpus"
    usual = by_dtype(planned(capsys, "--model qwen3-8b --asr large-v3-turbo --gpus H100"))
    h100 = by_dtype(planned(capsys, f"--model qwen3-8b {whisper} H100"))
    on_a100 = [
        planned(capsys, f"--model {model} {whisper} A100")["options"][0] for model in ("qwen3-8b", "Qwen/Qwen3-8B-FP8")
    ]
    assert f"in place of {h100['bf16']['calls_in_time']} in bf16" in header
    assert f"{h100['fp8']['calls_in_time']} calls in place of {usual['fp8']['calls_in_time']};" in header
    assert [option["calls_in_time"] for option in on_a100] == [0, 0] and "an A100 answers none in time" in header
    assert "it fits in 40 GB" in header, "as test_it_fits_on_the_gpus_that_it_names checks"

    header = " ".join((ROOT / "configs" / "gpu-24gb.toml").read_text().replace("\n#", "\n").split())
    usual = by_dtype(planned(capsys, "--model Qwen/Qwen3-4B-AWQ --gpus RTX-4090"))
    alone, with_mps = (
        by_dtype(planned(capsys, "--model Qwen/Qwen3-4B-AWQ --first-phrase short --gpus RTX-4090", *more))
        for more in ((), ("--mps",))
    )
    on_l4 = by_dtype(planned(capsys, "--model Qwen/Qwen3-4B-AWQ --first-phrase short --gpus L4"))
    small = by_dtype(planned(capsys, "--model llama-3.2-1b --first-phrase short --gpus L4"))
    assert f"{alone['awq4']['calls_in_time']} calls in place of {usual['awq4']['calls_in_time']};" in header
    assert f"and {with_mps['awq4']['calls_in_time']} where CUDA MPS runs" in header
    assert on_l4["awq4"]["calls_in_time"] == 0 and "an L4 answers none in time with this model" in header
    in_awq, in_fp8 = small["awq4"]["calls_in_time"], small["fp8"]["calls_in_time"]
    assert f"It answers {in_awq} of Llama 3.2 1B in AWQ, and {in_fp8} in fp8" in header

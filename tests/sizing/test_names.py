"""Models by the names that the hub and those who quantise have for them."""

import pytest

from voicepipe.sizing.names import known_model, nearest_name, tool_call_parser
from voicepipe.sizing.shapes import HUB, LLMS


@pytest.mark.parametrize(
    ("text", "name", "source", "dtype"),
    [
        ("Llama-3.3-70B-Instruct", "llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct", ""),
        ("Meta-Llama-3-8B-Instruct", "llama-3-8b", "meta-llama/Meta-Llama-3-8B-Instruct", ""),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b", "meta-llama/Meta-Llama-3.1-8B-Instruct", ""),
        ("meta-llama/Llama-3.2-3B", "llama-3.2-3b", "meta-llama/Llama-3.2-3B", ""),
        ("Qwen/Qwen3-8B", "qwen3-8b", "Qwen/Qwen3-8B", ""),
        ("Qwen/Qwen3-8B-AWQ", "qwen3-8b", "Qwen/Qwen3-8B-AWQ", "awq4"),
        ("Qwen/Qwen3-8B-FP8", "qwen3-8b", "Qwen/Qwen3-8B-FP8", "fp8"),
        ("Qwen/Qwen3-4B-Instruct-2507-FP8", "qwen3-4b", "Qwen/Qwen3-4B-Instruct-2507-FP8", "fp8"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B-Instruct-2507", ""),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "fp8"),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "llama-3.1-8b",
         "hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "awq4"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "llama-3.1-8b",
         "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "fp8"),
        ("RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16", "llama-3.3-70b",
         "RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16", "awq4"),
        ("nvidia/Llama-3.1-8B-Instruct-NVFP4", "llama-3.1-8b", "nvidia/Llama-3.1-8B-Instruct-NVFP4", "awq4"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b", "mistralai/Mistral-7B-Instruct-v0.3", ""),
        ("google/gemma-3-12b-it", "gemma-3-12b", "google/gemma-3-12b-it", ""),
        ("qwen3-8b", "qwen3-8b", "Qwen/Qwen3-8B", ""),
        ("QWEN3_8B", "qwen3-8b", "Qwen/Qwen3-8B", ""),
    ],
)  # fmt: skip
def test_a_name(text: str, name: str, source: str, dtype: str) -> None:
    assert known_model(text) == (name, source, dtype)


def test_every_model_is_known_by_both_its_names() -> None:
    assert set(HUB) == set(LLMS)
    for name, hub_name in HUB.items():
        assert known_model(name) == known_model(hub_name) == (name, hub_name, "")


@pytest.mark.parametrize("text", ["gpt-9", "", "/", "llama", "Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen3Guard-8B", "3-8b"])
def test_what_is_no_known_model(text: str) -> None:
    assert known_model(text) is None


def test_a_name_that_is_misspelt() -> None:
    assert (
        nearest_name("quen3-8b") == "qwen3-8b"
        and nearest_name("Quen/Quen3-8B") == "qwen3-8b"
        and nearest_name("gpt") == ""
    )


@pytest.mark.parametrize(
    ("text", "parser"),
    [
        ("qwen3-8b", "hermes"),
        ("Qwen/Qwen3-4B-AWQ", "hermes"),
        ("/models/Qwen2.5-7B-Instruct", "hermes"),
        ("llama-3.1-8b", "llama3_json"),
        ("meta-llama/Llama-3.2-1B-Instruct", "llama3_json"),
        ("llama-3.3-70b", "llama3_json"),
        ("llama-3-8b", ""),  # it was not trained to call tools
        ("mistral-7b", ""),
        ("/models/mine", ""),
    ],
)
def test_how_it_writes_tool_calls(text: str, parser: str) -> None:
    assert tool_call_parser(text) == parser

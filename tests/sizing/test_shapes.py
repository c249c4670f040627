"""Shapes of models, against what authors publish of theirs: the number of weights, config.json; and their names."""

import pytest

from voicepipe.base.errors import ConfigError
from voicepipe.sizing.shapes import (
    ASRS,
    HUB,
    LLMS,
    LlmShape,
    known_model,
    nearest_name,
    of_config,
    quantised,
    tool_call_parser,
)

QWEN3_8B = {
    "architectures": ["Qwen3ForCausalLM"], "head_dim": 128, "hidden_size": 4096, "intermediate_size": 12_288,
    "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
    "tie_word_embeddings": False, "vocab_size": 151_936,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llama-3.2-1b", 1.24), ("llama-3.2-3b", 3.21), ("llama-3.1-8b", 8.03), ("llama-3.1-70b", 70.6),
        ("mistral-7b", 7.25), ("mistral-small-24b", 23.6), ("qwen2.5-7b", 7.62), ("qwen3-4b", 4.02),
        ("qwen3-8b", 8.19), ("qwen3-14b", 14.8), ("qwen3-32b", 32.8), ("qwen3-30b-a3b", 30.5), ("gemma-3-4b", 3.88),
        ("gemma-3-12b", 11.8), ("gemma-3-27b", 27.0),
    ],
)  # fmt: skip
def test_weights_of_language_models(name: str, billions: float) -> None:
    assert LLMS[name].weights / 1e9 == pytest.approx(billions, rel=0.005)


@pytest.mark.parametrize(
    ("name", "millions"),
    [("tiny", 37.8), ("base", 72.6), ("small", 242), ("medium", 764), ("large-v3", 1543), ("large-v3-turbo", 809)],
)
def test_weights_of_whisper(name: str, millions: float) -> None:
    assert ASRS[name].weights / 1e6 == pytest.approx(millions, rel=0.01)


def test_a_config_json() -> None:
    assert of_config(QWEN3_8B) == LLMS["qwen3-8b"]
    assert of_config({"model_type": "gemma3", "text_config": QWEN3_8B}) == LLMS["qwen3-8b"]
    assert quantised(QWEN3_8B) == "bf16"
    assert quantised({"quantization_config": {"quant_method": "awq", "bits": 4}}) == "awq4"
    assert quantised({"quantization_config": {"quant_method": "fp8"}}) == "fp8"
    with pytest.raises(ConfigError, match="no num_hidden_layers; sizing knows decoders of the Llama family"):
        of_config({"d_model": 384})


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"model_type": "deepseek_v3", "kv_lora_rank": 512}, "kv_lora_rank: its attention is latent"),
        ({"n_routed_experts": 128, "kv_lora_rank": None}, "n_routed_experts: some of its experts serve each token"),
        ({"layer_types": ["sliding_attention", "full_attention"]}, "layer_types: full_attention, sliding_attention"),
        ({"model_type": "gemma3_text", "sliding_window": 1024}, "sliding_window: some layers remember less"),
    ],
)
def test_models_of_another_kind_are_not_sized(tables: dict[str, object], said: str) -> None:
    for config in ({**QWEN3_8B, **tables}, {"text_config": {**QWEN3_8B, **tables}}):
        with pytest.raises(ConfigError, match=f"{said}.*sizing cannot tell"):
            of_config(config)
    plain = {"layer_types": ["full_attention"] * 36, "sliding_window": 4096, "use_sliding_window": False}
    assert of_config({**QWEN3_8B, **plain}) == LLMS["qwen3-8b"]


@pytest.mark.parametrize(
    ("quantisation", "dtype"),
    [
        ({"quant_method": "gptq", "bits": 8}, "fp8"),
        ({"quant_method": "gptq", "bits": 4}, "awq4"),
        ({"quant_method": "compressed-tensors", "config_groups": {"0": {"weights": {"num_bits": 8}}}}, "fp8"),
        ({"quant_method": "compressed-tensors", "config_groups": {"0": {"weights": {"num_bits": 4}}}}, "awq4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "fp8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False}, "awq4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "awq4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "mxfp4"}, "awq4"),
    ],
)  # fmt: skip
def test_quantised_by_its_bits(quantisation: dict[str, object], dtype: str) -> None:
    """8-bit integers take what fp8 does."""
    assert quantised({"quantization_config": quantisation}) == dtype


def test_bits_that_sizing_does_not_know() -> None:
    with pytest.raises(ConfigError, match="weights of 3 bits by gptq; sizing knows 4, 8 and 16"):
        quantised({"quantization_config": {"quant_method": "gptq", "bits": 3}})


def test_a_config_json_says_only_what_is_unusual() -> None:
    """Llama 2 has as many key heads as query heads and names neither them nor their size."""
    llama2 = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "vocab_size": 32_000,
              "intermediate_size": 11_008}  # fmt: skip
    assert of_config(llama2) == LlmShape(32, 4096, 32, 32, 128, 11_008, 32_000)
    assert of_config(llama2).weights / 1e9 == pytest.approx(6.74, rel=0.005)


def test_experts() -> None:
    config = {"num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4,
              "head_dim": 128, "vocab_size": 151_936, "intermediate_size": 6144, "moe_intermediate_size": 768,
              "num_experts": 128, "num_experts_per_tok": 8, "model_type": "qwen3_moe"}  # fmt: skip
    assert of_config(config) == LLMS["qwen3-30b-a3b"]


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
    assert nearest_name("quen3-8b") == nearest_name("Quen/Quen3-8B") == "qwen3-8b"
    assert nearest_name("gpt") == ""


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

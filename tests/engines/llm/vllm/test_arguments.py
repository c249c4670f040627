"""vLLM's arguments: passed on unchanged, and refused with what to write instead."""

import re

import pytest

from voicepipe.base.errors import EngineError
from voicepipe.config.engine_config import NeuttsConfig, VllmConfig
from voicepipe.engines.llm.vllm.arguments import LITTLE, arguments, check_parser, voice_arguments
from voicepipe.engines.weights import needed_models

HERE = {"vllm.model": "/models/name"}
KNOWN = ("model", "tensor_parallel_size", "max_model_len", "quantization", "max_num_seqs", "scheduling_policy")


def test_what_the_table_and_its_args_say() -> None:
    config = VllmConfig("org/name", tensor_parallel_size=2, kv_cache_memory_bytes=10, args={"quantization": "fp8"})
    assert arguments(config, {"vllm.model": "/models/name"}, KNOWN) == {
        "model": "/models/name",
        "served_model_name": "org/name",
        "tensor_parallel_size": 2,
        "max_model_len": 8192,
        "kv_cache_memory_bytes": 10,
        "gpu_memory_utilization": LITTLE,
        "scheduling_policy": "priority",
        "quantization": "fp8",
    }


def test_where_the_caches_size_is_given_no_share_of_the_gpu_must_be_free_but_what_is_set() -> None:
    assert "gpu_memory_utilization" not in arguments(VllmConfig(), HERE, KNOWN)
    known, share = {*KNOWN, "gpu_memory_utilization"}, {"gpu_memory_utilization": 0.5}
    set_so = arguments(VllmConfig(kv_cache_memory_bytes=10, args=share), HERE, known)
    assert set_so["gpu_memory_utilization"] == 0.5


def test_no_bound_on_the_cache_is_none() -> None:
    assert arguments(VllmConfig(), HERE, KNOWN)["kv_cache_memory_bytes"] is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("quantisation", "did you mean quantization?"),
        ("max-num-seqs", "did you mean max_num_seqs?"),
        ("--max-num-seqs", "did you mean max_num_seqs?"),
        ("colour", "lists them as Engine Arguments"),
        ("max_model_len", "set it as vllm.max_model_len."),
        ("tool_call_parser", "set it as vllm.tool_call_parser."),
        ("scheduling_policy", "leave it out; voicepipe has confirmed turns go before speculative ones."),
    ],
)
def test_other_names_are_refused(name: str, said: str) -> None:
    with pytest.raises(EngineError, match=re.escape(f"vllm.args.{name}: ") + ".*" + re.escape(said)):
        arguments(VllmConfig(args={name: 1}), HERE, KNOWN)


def test_a_tokenizer_has_a_revision_of_its_own_only_where_it_comes_from_elsewhere() -> None:
    known, revision = {"revision", "tokenizer", "tokenizer_revision"}, {"tokenizer_revision": "v2"}
    with pytest.raises(EngineError, match=r"the tokenizer comes with the model, as vllm\.args\.revision has it"):
        arguments(VllmConfig(args=revision), HERE, known)
    arguments(VllmConfig(args={"tokenizer": "org/other", **revision}), HERE, known)


def test_all_models_are_given_by_where_they_are() -> None:
    """A name would be looked up at the hub, which a PoP never waits for; a path has no revision."""
    draft = {"model": "org/draft", "revision": "v1", "num_speculative_tokens": 3}
    args = {"tokenizer": "org/other", "tokenizer_revision": "v2", "speculative_config": draft}
    config = VllmConfig("org/name", args=args)
    paths = {model.key: f"/models/{model.name}" for model in needed_models.vllm(config)}
    assert arguments(config, paths, {*KNOWN, *args}) == arguments(
        VllmConfig("", args={}), {"vllm.model": "/models/org/name"}, KNOWN
    ) | {
        "served_model_name": "org/name",
        "tokenizer": "/models/org/other",
        "speculative_config": {"model": "/models/org/draft", "num_speculative_tokens": 3},
    }
    assert draft["revision"] == "v1", "the configuration stays what it is"


def test_parsers_of_tool_calls() -> None:
    known = ("hermes", "llama3_json")
    for name in ("", "hermes"):
        check_parser("vllm.tool_call_parser", name, known)
    with pytest.raises(EngineError, match="no parser 'lama3_json'; did you mean llama3_json?"):
        check_parser("vllm.tool_call_parser", "lama3_json", known)
    with pytest.raises(EngineError, match="there are hermes, llama3_json."):
        check_parser("vllm.tool_call_parser", "xml", known)


def test_a_voice_has_a_small_cache_of_its_own_on_its_gpu() -> None:
    """Beside a language model: vLLM asks at its start whether most of the GPU is free, unless told to want little."""
    args = voice_arguments(NeuttsConfig("org/voice", args={"max_num_seqs": 32}), "/models/voice", 1, {"max_num_seqs"})
    assert args["model"] == "/models/voice" and args["device_ids"] == [1] and args["max_num_seqs"] == 32
    assert args["kv_cache_memory_bytes"] == 2**30 and args["gpu_memory_utilization"] == LITTLE
    assert "device_ids" not in voice_arguments(NeuttsConfig(), "/models/voice", None, ())
    for name, said in (
        ("max_num_seq", "no such engine argument; did you mean max_num_seqs"),
        ("model", "leave it out"),
    ):
        with pytest.raises(EngineError, match=f"neutts.args.{name}: .*{said}"):
            voice_arguments(NeuttsConfig(args={name: 1}), "/models/voice", None, {"max_num_seqs", "model"})

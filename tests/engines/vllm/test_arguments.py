"""vLLM's arguments: passed on unchanged, and refused with what to write instead."""

import re

import pytest

from voicepipe.engine_config import VllmConfig
from voicepipe.engines.vllm.arguments import arguments, check_parser
from voicepipe.errors import EngineError

KNOWN = ("model", "tensor_parallel_size", "max_model_len", "quantization", "max_num_seqs", "scheduling_policy")


def test_what_the_table_and_its_args_say() -> None:
    config = VllmConfig("org/name", tensor_parallel_size=2, kv_cache_memory_bytes=10, args={"quantization": "fp8"})
    assert arguments(config, "/models/name", KNOWN) == {
        "model": "/models/name",
        "tensor_parallel_size": 2,
        "max_model_len": 8192,
        "kv_cache_memory_bytes": 10,
        "scheduling_policy": "priority",
        "quantization": "fp8",
    }


def test_no_bound_on_the_cache_is_none() -> None:
    assert arguments(VllmConfig(), "", KNOWN)["kv_cache_memory_bytes"] is None


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
        arguments(VllmConfig(args={name: 1}), "", KNOWN)


def test_a_tokenizer_has_a_revision_of_its_own_only_where_it_comes_from_elsewhere() -> None:
    known, revision = {"revision", "tokenizer", "tokenizer_revision"}, {"tokenizer_revision": "v2"}
    with pytest.raises(EngineError, match=r"the tokenizer comes with the model, as vllm\.args\.revision has it"):
        arguments(VllmConfig(args=revision), "", known)
    assert arguments(VllmConfig(args={"tokenizer": "org/other", **revision}), "", known)["tokenizer_revision"] == "v2"


def test_parsers_of_tool_calls() -> None:
    known = ("hermes", "llama3_json")
    for name in ("", "hermes"):
        check_parser("vllm.tool_call_parser", name, known)
    with pytest.raises(EngineError, match="no parser 'lama3_json'; did you mean llama3_json?"):
        check_parser("vllm.tool_call_parser", "lama3_json", known)
    with pytest.raises(EngineError, match="there are hermes, llama3_json."):
        check_parser("vllm.tool_call_parser", "xml", known)

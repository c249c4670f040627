"""vLLM's engine arguments out of our configuration, checked against vLLM's own names before anything is loaded."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from voicepipe.base.errors import EngineError
from voicepipe.config.engine_config import NeuttsConfig, VllmConfig
from voicepipe.engines.llm.vllm import adapters
from voicepipe.engines.weights.needed_models import DRAFT, TOKENIZER

OURS = frozenset(VllmConfig.__struct_fields__) - {"args"}
"""Engine arguments that have a key of their own in the table."""
VOICE_OURS = {
    "model", "tokenizer", "max_model_len", "kv_cache_memory_bytes", "skip_tokenizer_init", "scheduling_policy",
    "device_ids", "disable_log_stats", "tensor_parallel_size",
}  # fmt: skip
"""Engine arguments that a voice has in its table, or could not work without."""
FIXED = {"scheduling_policy": "voicepipe has confirmed turns go before speculative ones"}
"""Arguments that may not be set otherwise, and why."""

LITTLE = 0.01
"""Of the GPU's memory. With a cache of a given size vLLM takes what it needs, whatever gpu_memory_utilization says, but
it does not start unless that share, 92 % unless set, is free, which it is not beside recognition and synthesis."""


def arguments(config: VllmConfig, paths: Mapping[str, str], known: Collection[str]) -> dict[str, Any]:
    """Keyword arguments of AsyncEngineArgs, whose fields are `known`. Raises EngineError.

    `paths`: by their keys, where the models are; by their names vLLM would ask the hub for them.
    """
    for name in config.args:
        if name in OURS:
            raise EngineError(f"vllm.args.{name}: set it as vllm.{name}.")
        if name in FIXED:
            raise EngineError(f"vllm.args.{name}: leave it out; {FIXED[name]}.")
    _check_known("vllm", config.args, known)
    if "tokenizer_revision" in config.args and "tokenizer" not in config.args:
        raise EngineError(
            "vllm.args.tokenizer_revision: leave it out; the tokenizer comes with the model, "
            "as vllm.args.revision has it."
        )
    args = dict(config.args)
    if config.kv_cache_memory_bytes:
        args.setdefault("gpu_memory_utilization", LITTLE)
    if TOKENIZER in paths:
        args["tokenizer"] = paths[TOKENIZER]
        args.pop("tokenizer_revision", None)
    if DRAFT in paths:
        draft = {key: value for key, value in args["speculative_config"].items() if key != "revision"}
        args["speculative_config"] = draft | {"model": paths[DRAFT]}
    return {
        "model": paths["vllm.model"],
        "served_model_name": config.model,  # what its metrics call it
        "tensor_parallel_size": config.tensor_parallel_size,
        "max_model_len": config.max_model_len,
        "kv_cache_memory_bytes": config.kv_cache_memory_bytes or None,
        "scheduling_policy": "priority",
        **adapters.arguments(config.lora, paths),
        **args,
    }


def voice_arguments(config: NeuttsConfig, model: str, gpu: int | None, known: Collection[str]) -> dict[str, Any]:
    """Keyword arguments of AsyncEngineArgs for the language model of a voice, which is at the path `model`. `gpu`: its
    index; None: vLLM chooses. Raises EngineError."""
    for name in config.args:
        if name in VOICE_OURS:
            raise EngineError(f"neutts.args.{name}: leave it out; what may be set of it is in [neutts].")
    _check_known("neutts", config.args, known)
    chosen: dict[str, Any] = {} if gpu is None else {"device_ids": [gpu]}
    if "performance_mode" in known:
        chosen["performance_mode"] = "interactivity"  # a CUDA graph for each batch of up to 32
    return {
        "model": model,
        "served_model_name": config.model,
        "skip_tokenizer_init": True,  # it is given tokens, and gives tokens
        "max_model_len": config.max_model_len,
        "kv_cache_memory_bytes": config.kv_cache_memory_bytes,
        "gpu_memory_utilization": LITTLE,
        "scheduling_policy": "priority",
        "generation_config": "vllm",
        **chosen,
        **config.args,
    }


def _check_known(table: str, args: Collection[str], known: Collection[str]) -> None:
    for name in args:
        if name not in known:
            hint = (
                _meant(name.lstrip("-").replace("-", "_"), known) or "its documentation lists them as Engine Arguments."
            )
            raise EngineError(f"{table}.args.{name}: the installed vLLM has no such engine argument; {hint}")


def check_parser(key: str, name: str, known: Collection[str]) -> None:
    """Raises EngineError: `name`, if any is set as `key`, is none of vLLM's."""
    if name and name not in known:
        hint = _meant(name, known) or f"there are {', '.join(sorted(known))}."
        raise EngineError(f"{key}: the installed vLLM has no parser {name!r}; {hint}")


def _meant(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else ""

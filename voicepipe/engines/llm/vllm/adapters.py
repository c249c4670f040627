"""LoRA adapters of the model in vLLM, which agents name as their own model. Reads their files; imports no vLLM.

An adapter is a directory as peft writes it: adapter_config.json, which says how large its matrices are, and
adapter_model.safetensors. https://docs.vllm.ai/en/latest/features/lora.html
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from voicepipe.agent import Agent
from voicepipe.base.errors import EngineError
from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines.base import Answering
from voicepipe.engines.weights import hub
from voicepipe.engines.weights.needed_models import LORA

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""vLLM reserves room for one of these ranks."""


def arguments(names: Iterable[str], paths: Mapping[str, str]) -> dict[str, Any]:
    """vLLM's engine arguments for these adapters, all of which may be used at a time; none for none. `paths`: by their
    keys, where models are. Raises EngineError: one is no adapter."""
    ranks = {name: _rank(name, Path(paths[LORA + name])) for name in names}
    if not ranks:
        return {}
    largest = max(ranks.values())
    fits = next((rank for rank in RANKS if rank >= largest), 0)
    if not fits:
        name = max(ranks, key=ranks.__getitem__)
        raise EngineError(f"{LORA}{name}: its rank is {largest}, and vLLM takes {RANKS[-1]} at most.")
    return {"enable_lora": True, "max_loras": len(ranks), "max_lora_rank": fits}


def _rank(name: str, directory: Path) -> int:
    """The largest rank of an adapter's matrices: one for all, unless a pattern gives some another."""
    said = hub.json_object(directory / "adapter_config.json")
    patterns = said.get("rank_pattern") or {}
    ranks = [said.get("r"), *(patterns.values() if isinstance(patterns, dict) else ())]
    if not all(type(rank) is int and rank > 0 for rank in ranks):
        raise EngineError(
            f"{LORA}{name}: {directory} is no LoRA adapter: it has no adapter_config.json with a rank (r)."
        )
    return max(int(rank) for rank in ranks if rank)


def answering(config: VllmConfig, agent: Agent) -> Answering:
    """Which of the models answers the agent's callers."""
    model = agent.model or config.model
    return Answering(f"{model} in vLLM", config.lacks_model(agent.name, agent.model))

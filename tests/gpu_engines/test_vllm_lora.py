"""LoRA adapters in the real vLLM with the nano LLM: agents that name different ones get different answers. The adapters
have random weights, written here as peft writes them."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from safetensors.numpy import save_file

from tests.engines.contract import texts
from tests.gpu_engines.test_vllm import NANO, configured, started
from voicepipe.agent import Agent
from voicepipe.base.errors import RequestRefused
from voicepipe.engines.base import Message, Prompt
from voicepipe.engines.llm.vllm.vllm_llm import VllmLlm

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]
RANK = 8
HOURS = (Message("user", "what are your opening hours"),)


def write_adapter(folder: Path, scale: float) -> str:
    """An adapter of all query and value projections. `scale` 0: it changes nothing."""
    folder.mkdir()
    shape = json.loads((NANO / "config.json").read_text())
    width, head = shape["hidden_size"], shape["head_dim"]
    heads = {"q_proj": shape["num_attention_heads"], "v_proj": shape["num_key_value_heads"]}
    chance, weights = np.random.default_rng(1), {}
    for layer in range(shape["num_hidden_layers"]):
        for name, count in heads.items():
            at = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            weights[f"{at}.lora_A.weight"] = chance.normal(0, 1, (RANK, width)).astype(np.float32)
            weights[f"{at}.lora_B.weight"] = (scale * chance.normal(0, 1, (count * head, RANK))).astype(np.float32)
    save_file(weights, folder / "adapter_model.safetensors")
    said = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": list(heads), "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(said | {"task_type": "CAUSAL_LM"}))
    return str(folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[VllmLlm]:
    folder = tmp_path_factory.mktemp("lora")
    lora = {"same": write_adapter(folder / "same", 0.0), "other": write_adapter(folder / "other", 0.3)}
    async with started(configured(lora=lora)) as llm:
        yield llm


async def answer(engine: VllmLlm, model: str) -> str:
    return "".join(await texts(engine, Prompt(HOURS, max_tokens=24, agent=Agent("desk", model=model))))


async def test_an_agent_is_answered_with_the_adapter_that_it_names(engine: VllmLlm) -> None:
    plain = await answer(engine, "")
    assert await answer(engine, "same") == await answer(engine, str(NANO)) == plain
    assert await answer(engine, "other") != plain
    assert await answer(engine, "") == plain, "the prefix cache of one is not the other's"


async def test_an_adapter_that_is_not_there_is_refused_with_those_that_are(engine: VllmLlm) -> None:
    with pytest.raises(RequestRefused, match=r"there is no vllm\.lora\.none; allowed: .*, same, other"):
        await answer(engine, "none")

"""LoRA adapters: their files, vLLM's arguments for them, and who is answered by which. vLLM's own half is tested with
the real one (tests/gpu_engines/test_vllm_lora.py)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from voicepipe import config
from voicepipe.agent import Agent
from voicepipe.base.errors import ConfigError, EngineError
from voicepipe.config.agent_store import open_agents
from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines.llm.vllm.adapters import answering, arguments
from voicepipe.engines.llm.vllm.arguments import arguments as engine_arguments
from voicepipe.engines.weights import needed_models


def adapter(folder: Path, **said: Any) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(said))
    return str(folder)


@pytest.mark.parametrize(
    ("ranks", "most"), [([{"r": 8}], 8), ([{"r": 4}, {"r": 24}], 32), ([{"r": 8, "rank_pattern": {"q_proj": 40}}], 64)]
)
def test_vllm_reserves_room_for_the_largest_of_all(ranks: list[dict[str, Any]], most: int, tmp_path: Path) -> None:
    paths = {f"vllm.lora.a{n}": adapter(tmp_path / str(n), **said) for n, said in enumerate(ranks)}
    names = [key.removeprefix("vllm.lora.") for key in paths]
    assert arguments(names, paths) == {"enable_lora": True, "max_loras": len(ranks), "max_lora_rank": most}


def test_without_adapters_vllm_is_told_of_none_and_its_own_arguments_win(tmp_path: Path) -> None:
    assert arguments((), {}) == {}
    paths = {"vllm.model": "/model", "vllm.lora.clinic": adapter(tmp_path, r=8)}
    settings = VllmConfig("org/llm", lora={"clinic": str(tmp_path)}, args={"max_loras": 3})
    assert engine_arguments(settings, paths, ("max_loras",))["max_loras"] == 3


@pytest.mark.parametrize("said", [{}, {"r": "8"}, {"r": 0}, {"r": 8, "rank_pattern": {"q": None}}])
def test_what_is_no_adapter_is_named(said: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=re.escape("vllm.lora.clinic") + ".*is no LoRA adapter"):
        arguments(("clinic",), {"vllm.lora.clinic": adapter(tmp_path, **said)})


def test_a_rank_beyond_vllms_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="its rank is 1000, and vLLM takes 512 at most"):
        arguments(("clinic",), {"vllm.lora.clinic": adapter(tmp_path, r=1000)})


def test_an_agent_is_answered_by_its_adapter_or_by_the_model() -> None:
    settings = VllmConfig("org/llm", lora={"clinic": "x", "desk": "y"})
    assert (
        answering(settings, Agent("a")).by == answering(settings, Agent("a", model="org/llm")).by == "org/llm in vLLM"
    )
    assert answering(settings, Agent("a", model="clinic")).by == "clinic in vLLM"
    assert answering(settings, Agent("a", model="clinik")).lacks == (
        "Agent a: model: there is no vllm.lora.clinik; allowed: org/llm, clinic, desk"
    )


def test_no_pop_starts_with_an_agent_whose_adapter_is_not_configured(tmp_path: Path) -> None:
    (tmp_path / "desk.toml").write_text("name = 'desk'\nmodel = 'clinik'")
    tables: dict[str, Any] = {"pop": {"agents": str(tmp_path), "default_agent": "desk"}, "engines": {"llm": "vllm"}}
    with pytest.raises(
        ConfigError, match=r"Agent desk: model: there is no vllm\.lora\.clinik; allowed: org/llm, clinic"
    ):
        open_agents(config.parse(tables | {"vllm": {"model": "org/llm", "lora": {"clinic": "x"}}}))
    assert open_agents(config.parse(tables | {"engines": {"llm": "openai"}})), "a server's models are not known here"


def test_adapters_are_beside_the_file_that_names_them_and_an_absent_one_is_told(tmp_path: Path) -> None:
    file = tmp_path / "pop.toml"
    file.write_text("[engines]\nllm = 'vllm'\n[vllm]\nmodel = 'org/llm'\nlora = { here = 'here', gone = './gone' }")
    adapter(tmp_path / "here", r=8)
    settings = config.load(file)
    assert settings.vllm.lora == {"here": str(tmp_path / "here"), "gone": str(tmp_path / "gone")}
    keys = [model.key for model in needed_models.vllm(settings.vllm)]
    assert keys == ["vllm.model", "vllm.lora.here", "vllm.lora.gone"]
    assert any("vllm.lora.gone" in problem for problem in needed_models.problems(settings))


def test_an_adapter_is_not_named_as_the_model() -> None:
    with pytest.raises(ConfigError, match=r"lora\.org/llm: give the adapter a name of its own"):
        config.parse({"vllm": {"model": "org/llm", "lora": {"org/llm": "x"}}})

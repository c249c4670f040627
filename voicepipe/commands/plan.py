"""`voicepipe plan`: which GPUs a model needs and what a turn will take on them, by arithmetic alone."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from voicepipe.base.errors import ConfigError, EngineMissing
from voicepipe.commands import plan_text
from voicepipe.commands.plan_cost import Prices
from voicepipe.commands.plan_text import BUDGET_MS, Plan
from voicepipe.engines.weights import hub
from voicepipe.sizing import gpu_memory, gpu_models, shapes
from voicepipe.sizing.advice import advice
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import ParallelGroup
from voicepipe.sizing.options import Option, best, evaluated, options
from voicepipe.sizing.prediction import BEFORE_COMPUTE_MS
from voicepipe.sizing.recognition import recogniser
from voicepipe.sizing.shapes import LLMS, LlmShape
from voicepipe.sizing.traffic import Traffic
from voicepipe.sizing.voices import voice


@dataclass(frozen=True, slots=True)
class HostOptions:
    """The settings of the host in the plan."""

    asr: str = "nemotron"
    tts: str = "kokoro"
    mps: bool = False
    first_phrase: Literal["clause", "short"] = "clause"


USUAL = HostOptions()


def run(
    model: str, gpus: str, calls: int, *, interconnect: str = "", host: HostOptions = USUAL,
    prices: Prices | None = None, as_json: bool = False,
) -> int:  # fmt: skip
    """Print the plan, with costs if there are prices; several hosts, with commas between them, are compared. Exit
    status 1 if no call is answered in time. Raises ConfigError."""
    if calls < 1:
        raise ConfigError(f"--calls: {calls}: give at least 1")
    source, name, shape, only = _model(model)
    traffic = Traffic().cut_short() if host.first_phrase == "short" else Traffic()

    def ways(text: str) -> list[Option]:
        gpu, count = gpu_models.parsed(text)
        dtypes = [only] if only else [dtype for dtype in gpu_memory.DTYPES if dtype != "fp8" or gpu.fp8_tflops]
        group = ParallelGroup(shape, dtypes[0], gpu, gpu_models.link(interconnect, gpu))
        alone = SizedHost(group, count, recogniser(host.asr), voice(host.tts), host.mps, traffic=traffic)
        return [evaluated(way, calls, BUDGET_MS - BEFORE_COMPUTE_MS) for way in options(alone, dtypes)]

    if "," in gpus:
        if prices or as_json:
            raise ConfigError("--gpus: several are compared in one table; --price and --json are for one")
        plan_text.compare([ways(text) for text in gpus.split(",")], name)
        return 0
    found = ways(gpus)
    nearest = best(found, calls)
    chosen = nearest if nearest and nearest.calls else None
    said = [*advice(found, calls, BUDGET_MS), *(prices.advice(chosen, calls) if prices else ())]
    plan = Plan(name, source, found, chosen, calls, prices, said)
    if as_json:
        print(json.dumps(_facts(plan), indent=2))
    else:
        plan_text.show(plan)
    return 0 if chosen else 1


def _model(text: str) -> tuple[str, str, LlmShape, str]:
    """The value for `vllm.model`, the model's name, its shape, and its only dtype, if it is quantised."""
    if known := shapes.known_model(text):
        return known.source, known.name, LLMS[known.name], known.dtype
    try:
        path = hub.local(text)
    except EngineMissing:
        near = shapes.nearest_name(text)
        raise ConfigError(
            f"--model: {text}: {f'did you mean {near}? ' if near else ''}give the path of a config.json or of a "
            f"directory with one, or one of {', '.join(LLMS)}"
        ) from None
    file = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"--model: {file}: cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise ConfigError(f"--model: {file}: is no model's config.json")
    dtype = shapes.quantised(config)
    source = str(path if path.is_dir() else path.parent) if Path(text).expanduser().exists() else text
    return source, text, shapes.of_config(config), "" if dtype == "bf16" else dtype


def _facts(plan: Plan) -> dict[str, Any]:
    """The plan for other programs. Bytes and milliseconds; what never comes is null."""
    host, shape, prices = plan.found[0].host, plan.found[0].group.shape, plan.prices
    sizes = {"weights": shape.weights, "kv_bytes_a_token": gpu_memory.kv_token(shape)}
    return {
        "model": {"name": plan.name, "shape": asdict(shape), **sizes},
        "gpu": asdict(host.gpu), "gpus": host.gpus, "interconnect": asdict(host.group.link), "calls": plan.calls,
        "traffic": asdict(host.traffic), "budget_ms": BUDGET_MS,
        "options": [_option(option, plan.calls, prices) for option in plan.found],
        "best": plan.chosen.name if plan.chosen else None, "advice": plan.advice,
        "cost": prices.facts() if prices else None,
    }  # fmt: skip


def _option(option: Option, calls: int, prices: Prices | None) -> dict[str, Any]:
    host, at = option.host, option.turn
    return {
        "name": option.name, "dtype": option.group.dtype, "tensor_parallel_size": option.group.tensor,
        "pipeline_parallel_size": option.group.pipeline, "fits": host.fits,
        "llm_bytes_a_gpu": host.llm_fixed, "speech_bytes": host.speech_fixed, "speech_shares": host.shared,
        "kv_room_bytes_a_gpu": host.kv_room, "kv_needed_bytes_a_gpu": host.kv_needed(calls),
        "kv_cache_memory_bytes": option.kv_cache_bytes(calls) if host.fits else None,
        "turn_ms": {key: _finite(value) for key, value in asdict(at).items()},
        "compute_ms": _finite(at.compute), "compute_p95_ms": _finite(at.compute_p95),
        "calls_in_time": option.calls, "pops_a_host": option.pops, "bound": option.bound,
        "cost": prices.facts_of(option) if prices else None,
    }  # fmt: skip


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

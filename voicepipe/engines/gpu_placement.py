"""Which stage runs on which GPU, and whether it has the memory for that: decided before anything is loaded.

The language model's group is the first GPUs that this process sees, as vLLM takes them. Recognition and synthesis go to
the GPU after the group if there is one, since they and the language model slow each other down; else to GPU 0, and to
the last one where Ray chooses the model's GPUs. A device that is configured is obeyed.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from voicepipe.base.errors import EngineError
from voicepipe.config import Config
from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines.hosting.gpus import VisibleGpu
from voicepipe.sizing.gpu_models import GIB

MIB = 2**20
PLACED = ("whisper", "nemotron", "kokoro", "neutts", "coqui")
"""Tables with a device; vLLM counts GPUs by itself."""


@dataclass(frozen=True, slots=True)
class Need:
    """The GPU memory in bytes that a stage (recognition, language, synthesis) needs on each of its GPUs."""

    stage: str
    gpus: tuple[int, ...]
    weights: int
    working: int
    """Activations, CUDA contexts of its processes."""


@dataclass(frozen=True, slots=True)
class LlmNeed(Need):
    """The GPU memory in bytes that vLLM needs on each of its GPUs."""

    cache: int = 0
    """The KV cache, which holds what calls have said."""
    cache_least: int = 0
    """One context of `max_model_len`: with less vLLM does not start."""
    rest: float = 0.0
    """Share of the GPU's memory that vLLM takes in all, where no size is configured for the cache."""
    weights_fp8: int = 0
    """Bytes that 8-bit weights would take; 0: the weights have no more bits already."""


def uses_gpus(config: Config) -> bool:
    """Whether an engine is chosen that may use one."""
    return any(may_use_gpu(config, engine) for engine in (config.engines.asr, config.engines.llm, config.engines.tts))


def may_use_gpu(config: Config, engine: str) -> bool:
    """Whether `engine` can, and is not put on the CPU."""
    return engine == "vllm" or (engine in PLACED and getattr(config, engine).device != "cpu")


def group(vllm: VllmConfig) -> int:
    """GPUs of this machine that vLLM takes, the first ones; 0: only its executor knows."""
    args = vllm.args
    if vllm.by_ray or args.get("distributed_executor_backend") == "external_launcher":
        return 0
    if vllm.hosts > 1:
        return vllm.processes // vllm.hosts if args.get("data_parallel_size", 1) == 1 else 0
    return vllm.processes * int(args.get("data_parallel_size_local", args.get("data_parallel_size", 1)))


def place(config: Config, gpus: int, on_cpu: Collection[str] = ()) -> Config:
    """`config` with a device in place of each "auto", on a machine with so many GPUs. Raises EngineError.

    `on_cpu`: tables whose engine, as it is installed here, can use no GPU.
    """
    llm = group(config.vllm) if config.engines.llm == "vllm" else 0
    if gpus and llm > gpus:
        raise EngineError(
            f"vllm: the model is to be spread over {llm} GPUs, and this process sees {gpus}; lower "
            "vllm.tensor_parallel_size (or what multiplies it in vllm.args), let it see more (CUDA_VISIBLE_DEVICES), "
            "or take more hosts (vllm.args.nnodes, see pops/gpu.md)"
        )
    spread = config.engines.llm == "vllm" and not llm
    # Only vLLM knows which GPUs of this machine a model takes that is spread over several: the last is the likeliest to
    # be free.
    auto = "cpu" if not gpus else f"cuda:{gpus - 1 if spread else llm if llm < gpus else 0}"
    replaced = {}
    for name in PLACED:
        section = getattr(config, name)
        if section.device == "auto":
            replaced[name] = msgspec.structs.replace(section, device="cpu" if name in on_cpu else auto)
        elif gpus and (index := device_index(section.device)) is not None and index >= gpus:
            raise EngineError(
                f"{name}.device: there is no {section.device}: this process sees {gpus} GPUs, from cuda:0 to "
                f"cuda:{gpus - 1}; choose one of them, or auto"
            )
    return msgspec.structs.replace(config, **replaced)


def device_index(device: str) -> int | None:
    """ "cuda:1" -> 1, "cuda" -> 0; None: it is no GPU."""
    if not device.startswith("cuda"):
        return None
    return int(device.partition(":")[2] or 0)


def check(needs: Sequence[Need], gpus: Sequence[VisibleGpu]) -> None:
    """Raises EngineError: something is placed where there is no memory for it; says what would fit."""
    for gpu in gpus:
        here = [need for need in needs if gpu.index in need.gpus]
        for need in here:
            _check_cache(need, gpu, here)
        taken = sum(_total(need, gpu) for need in here)
        if taken > gpu.free:
            listed = ", ".join(_listed(need, gpu) for need in here)
            ways = list(_ways_out(taken - gpu.free, here, gpu, _room(needs, gpus))) or ["take a smaller model"]
            raise EngineError(
                f"GPU {gpu.index} ({gpu.name}) has {_gib(gpu.free)} free, and {_gib(taken)} are to be put on it: "
                f"{listed}; what would fit: {', or '.join(ways)}"
            )


def _check_cache(need: Need, gpu: VisibleGpu, here: Sequence[Need]) -> None:
    """Raises EngineError: a cache without a size beside others on the GPU, or one that is too small for vLLM."""
    if not isinstance(need, LlmNeed):
        return
    others = sum(_total(other, gpu) for other in here if other is not need)
    if need.rest and others:
        room = gpu.free - others - need.weights - need.working
        size = max(need.cache_least, room * 9 // 10 // MIB * MIB)
        if not 0 < size <= room:
            return  # no size would do: `check` says what would
        beside = " and ".join(other.stage for other in here if other is not need)
        raise EngineError(
            f"vllm.kv_cache_memory_bytes is 0, so that vLLM would take {100 * need.rest:.0f} % of GPU {gpu.index}, "
            f"where {beside} must run, too; set it to {size:_} ({_gib(size)}) or less"
        )
    if not need.rest and need.cache < need.cache_least:
        least = math.ceil(need.cache_least / MIB) * MIB
        raise EngineError(
            f"vllm.kv_cache_memory_bytes = {need.cache:_} does not hold one context of vllm.max_model_len tokens; set "
            f"it to {least:_} ({_gib(least)}) or more, or lower vllm.max_model_len"
        )


def _total(need: Need, gpu: VisibleGpu) -> int:
    if isinstance(need, LlmNeed):
        own = need.weights + need.working + need.cache
        return max(round(need.rest * gpu.total), own + need.cache_least) if need.rest else own
    return need.weights + need.working


def _listed(need: Need, gpu: VisibleGpu) -> str:
    if isinstance(need, LlmNeed) and need.rest:
        return f"{need.stage} {_gib(_total(need, gpu))} (vllm.args.gpu_memory_utilization)"
    cache = f" + {_gib(need.cache)} KV cache" if isinstance(need, LlmNeed) else ""
    return f"{need.stage} {_gib(need.weights)} weights{cache} + {_gib(need.working)}"


def _room(needs: Sequence[Need], gpus: Sequence[VisibleGpu]) -> dict[int, int]:
    """Bytes that each GPU has left, by its index; below 0: so much is missing."""
    return {gpu.index: gpu.free - sum(_total(need, gpu) for need in needs if gpu.index in need.gpus) for gpu in gpus}


def _ways_out(excess: int, here: Sequence[Need], gpu: VisibleGpu, room: Mapping[int, int]) -> Iterator[str]:
    """What would make `excess` bytes of room on `gpu`; `room` is what each GPU has left."""
    for need in here:
        if isinstance(need, LlmNeed):
            yield from _smaller(need, excess, gpu, len(room), alone=len(here) == 1)
    speech = [need for need in here if not isinstance(need, LlmNeed)]
    taken = sum(_total(need, gpu) for need in speech)
    if speech and taken >= excess:
        stages = " and ".join(need.stage for need in speech)
        if elsewhere := [index for index, left in room.items() if left > taken]:
            yield f'{stages} on GPU {elsewhere[0]} (device = "cuda:{elsewhere[0]}")'
        yield f'{speech[0].stage} on the CPU (device = "cpu")'
    others = gpu.total - gpu.free
    if others > max(excess, GIB):
        yield f"end what else runs on the GPU (nvidia-smi shows it; {_gib(others)} are taken)"


def _smaller(need: LlmNeed, excess: int, gpu: VisibleGpu, gpus: int, *, alone: bool) -> Iterator[str]:
    """How the language model could take `excess` bytes less of `gpu`."""
    cache = (need.cache - excess) // MIB * MIB
    if not need.rest and cache >= need.cache_least:
        yield f"vllm.kv_cache_memory_bytes = {cache:_} ({_gib(cache)})"
    room = gpu.free - 256 * MIB
    if alone and need.rest and room > need.weights + need.working + need.cache_least:
        yield f"vllm.args.gpu_memory_utilization = {math.floor(room / gpu.total * 100) / 100}"
    if need.weights_fp8 and need.weights - need.weights_fp8 >= excess:
        yield f'weights in fp8 (vllm.args.quantization = "fp8", saves {_gib(need.weights - need.weights_fp8)})'
    more = 2 * len(need.gpus)
    if more <= gpus and (need.weights + need.cache) // 2 >= excess:
        yield f"vllm.tensor_parallel_size = {more}"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"

"""The GPU memory that the chosen engines need, by the sizes of their models' files. Reads the disk; loads nothing."""

from collections.abc import Iterator
from pathlib import Path

from voicepipe.base.errors import ConfigError, EngineError
from voicepipe.config import Config
from voicepipe.config.engine_config import NemotronConfig, VllmConfig
from voicepipe.engines.asr.nemotron import checkpoint
from voicepipe.engines.gpu_placement import LlmNeed, Need, device_index, group
from voicepipe.engines.weights import hub, needed_models
from voicepipe.sizing import constants, gpu_memory, shapes

UTILISATION = 0.92
"""vLLM's default for gpu_memory_utilization."""
DECODER = 1 / 3
"""Share of NeuCodec's file that stays once the recordings are read: the half that makes sound, in float32 as stored."""
STORED = {"int8": 0.55, "float32": 2.0}
"""Of a model's file, which holds 16 bits a weight, what it takes when computed with in another type."""


def needs(config: Config) -> Iterator[Need]:
    """The need of each stage that is on a GPU, in a configuration whose devices are `placed`. Raises EngineError."""
    ours: list[Need] = []
    if config.engines.asr == "whisper" and (gpu := device_index(config.whisper.device)) is not None:
        file = hub.local(config.whisper.model) / "model.bin"
        share = next((STORED[kind] for kind in STORED if config.whisper.compute_type.startswith(kind)), 1.0)
        working = gpu_memory.whisper_working(config.whisper.batch)
        ours.append(Need("recognition", (gpu,), round(_size(file) * share), working))
    if config.engines.asr == "nemotron" and (gpu := device_index(config.nemotron.device)) is not None:
        ours.append(_nemotron(config.nemotron, gpu))
    if config.engines.tts == "kokoro" and (gpu := device_index(config.kokoro.device)) is not None:
        size = _size(hub.local_file(config.kokoro.model, ".onnx"))
        ours.append(Need("synthesis", (gpu,), size, constants.TTS_WORKSPACE))
    if config.engines.tts == "neutts" and (gpu := device_index(config.neutts.device)) is not None:
        codec = round(_weights(hub.local(config.neutts.codec)) * DECODER)
        ours.append(Need("synthesis", (gpu,), codec, constants.TTS_WORKSPACE))
    seen: set[tuple[int, ...]] = set()
    for need in ours:  # they run in the PoP's process, which has one context on each GPU
        context = 0 if need.gpus in seen else constants.CONTEXT
        yield Need(need.stage, need.gpus, need.weights, need.working + context)
        seen.add(need.gpus)
    shared = bool(ours)
    if config.engines.tts == "coqui" and (gpu := device_index(config.coqui.device)) is not None:
        shared = True
        largest = max((_size(file) for file in hub.local(config.coqui.model).glob("*.pth")), default=0)
        workers = config.coqui.workers
        yield Need("synthesis", (gpu,), largest * workers, workers * (constants.TTS_WORKSPACE + constants.CONTEXT))
    if config.engines.tts == "neutts" and (gpu := device_index(config.neutts.device)) is not None:
        working = constants.LLM_WORKSPACE + constants.CONTEXT + config.neutts.kv_cache_memory_bytes
        yield Need("synthesis's vLLM", (gpu,), _weights(hub.local(config.neutts.model)), working)
    if config.engines.llm == "vllm":
        if gpus := group(config.vllm):
            yield _llm(config, tuple(range(gpus)))
        elif shared and not config.vllm.kv_cache_memory_bytes:
            raise EngineError(
                "vllm.kv_cache_memory_bytes is 0, so that vLLM, which is spread over machines here, would take "
                f"{100 * _share(config.vllm):.0f} % of each of its GPUs, perhaps of that where recognition or "
                "synthesis runs, too: set it"
            )


def _nemotron(nemotron: NemotronConfig, gpu: int) -> Need:
    """The recogniser's need, with the memory of all its utterances, which it takes when it starts."""
    found, dtype = checkpoint.read(nemotron), nemotron.dtype_on(nemotron.device)
    slots = nemotron.streams * found.bytes_of_slot(dtype)
    return Need("recognition", (gpu,), found.bytes_of_weights(dtype), slots + constants.ASR_WORKSPACE)


def _share(vllm: VllmConfig) -> float:
    """The share of a GPU's memory that vLLM takes where its cache has no size."""
    return float(vllm.args.get("gpu_memory_utilization", UTILISATION))


def _llm(config: Config, gpus: tuple[int, ...]) -> LlmNeed:
    vllm = config.vllm
    directory = hub.local(vllm.model, vllm.revision)
    described = hub.json_object(directory / "config.json")
    parts = vllm.tensor_parallel_size * int(vllm.args.get("pipeline_parallel_size", 1))
    weights = _weights(directory)
    others = (model for model in needed_models.vllm(vllm) if model.key not in ("vllm.model", needed_models.TOKENIZER))
    beside = sum(_weights(model.local()) for model in others)
    cache_least = fp8 = 0
    try:
        shape, stored = shapes.of_config(described), shapes.quantised(described)
    except ConfigError:  # of a kind whose shape is not known: its files say enough
        pass
    else:
        narrow = gpu_memory.llm_weights(shape, "fp8")
        if vllm.args.get("quantization") == "fp8" and stored == "bf16":
            weights = narrow  # made narrow while it is loaded
        weights = weights or gpu_memory.llm_weights(shape, stored)  # load_format = "dummy"
        fp8 = narrow if weights > 1.2 * narrow else 0
        shards = gpu_memory.kv_shards(shape, vllm.tensor_parallel_size) * (parts // vllm.tensor_parallel_size)
        wide = 1 if str(vllm.args.get("kv_cache_dtype", "")).startswith("fp8") else 2
        cache_least = gpu_memory.kv_call(shape, vllm.max_model_len) * wide // 2 // shards
    fp8 = fp8 and fp8 + beside
    rest = 0.0 if vllm.kv_cache_memory_bytes else _share(vllm)
    return LlmNeed(
        "language model", gpus, (weights + beside) // parts, constants.LLM_WORKSPACE + constants.CONTEXT,
        cache=vllm.kv_cache_memory_bytes, cache_least=cache_least, rest=rest, weights_fp8=fp8 // parts,
    )  # fmt: skip


def _weights(directory: Path) -> int:
    """Bytes of a model's weights, in one format: by the index where there is one, since a cloned repository may have
    them twice, as `consolidated` too."""
    for suffix in ("safetensors", "bin"):
        files = list(directory.glob(f"*.{suffix}"))
        named = [directory / shard for shard in hub.shards(directory) if shard.endswith(suffix)]
        if size := sum(map(_size, named or [f for f in files if not f.name.startswith("consolidated")] or files)):
            return size
    return 0


def _size(file: Path) -> int:
    """Bytes; 0: there is no such file, which its engine will say better."""
    return file.stat().st_size if file.exists() else 0

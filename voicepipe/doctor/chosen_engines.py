"""Whether the engines that a configuration puts on GPUs could start here. Loads none of them."""

from collections.abc import Iterator
from pathlib import Path

from voicepipe.base.errors import EngineError
from voicepipe.config import Config
from voicepipe.doctor.demo_needs import PARTS
from voicepipe.doctor.finding import Finding
from voicepipe.engines import loader, packages
from voicepipe.engines.asr import whisper_model
from voicepipe.engines.gpu_placement import device_index, group, may_use_gpu, uses_gpus
from voicepipe.engines.hosting import gpus
from voicepipe.engines.weights import hub, needed_models


def findings(config: Config, file: Path) -> Iterator[Finding]:
    """A row for each such stage, for each model that is missing (known ones are `demo_needs.models`'), and for the GPUs
    that they use. `file`: the configuration's."""
    named = {stage: getattr(config.engines, part) for part, stage in PARTS.items()}
    chosen = {stage: engine for stage, engine in named.items() if may_use_gpu(config, engine)}
    for stage, engine in chosen.items():
        problems = list(packages.lacks(engine, config))
        yield from (_broken(stage, problem) for problem in problems)
        if not problems:
            yield Finding(stage, "ok", f"{engine} is chosen")
    missing = [(model, problem) for model in needed_models.chosen(config) if (problem := model.problem())]
    for model, problem in missing:
        if not model.known:
            yield _broken("model", hub.copyable(problem, file))
    if missing or packages.problems(config) or not uses_gpus(config):
        return
    try:
        placed = loader.placed(config)
    except EngineError as error:
        yield _broken("placement", str(error))
        return
    yield Finding("placement", "ok", ", ".join(f"{engine} on {_where(placed, engine)}" for engine in chosen.values()))
    if loader.kokoro_lacks_cuda(config) and gpus.read().gpus:
        yield Finding("Kokoro", "note", "on the CPU: this onnxruntime has no CUDA", loader.ONNX_WITH_CUDA)
    hears_on_gpu = placed.engines.asr == "whisper" and device_index(placed.whisper.device) is not None
    if hears_on_gpu and not whisper_model.find_cublas():
        yield Finding(
            "cuBLAS", "broken", f"whisper is put on {placed.whisper.device} and finds no {whisper_model.CUBLAS}",
            f"pip install {whisper_model.CUBLAS_PACKAGE}",
        )  # fmt: skip


def _where(placed: Config, engine: str) -> str:
    if engine != "vllm":
        return str(getattr(placed, engine).device)
    gpus = group(placed.vllm)
    return {0: "the machines that its executor finds", 1: "cuda:0"}.get(gpus, f"its first {gpus} GPUs")


def _broken(what: str, problem: str) -> Finding:
    said, _, way_out = problem.partition("; ")
    return Finding(what, "broken", said, way_out)

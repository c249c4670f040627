"""Whether the engines that a configuration chooses could start here. Loads none of them."""

import importlib.util
from collections.abc import Iterator

from voicepipe.config import Config
from voicepipe.doctor.finding import Finding
from voicepipe.engines import loader, models
from voicepipe.engines.placement import group, uses_gpus
from voicepipe.errors import EngineError

PACKAGES = {"whisper": "faster_whisper", "vllm": "vllm", "kokoro": "kokoro_onnx"}
"""What an engine imports. coqui-tts is in an environment of its own."""
INSTALLS = {"kokoro_onnx": "'voicepipe[kokoro]'", "faster_whisper": "faster-whisper"}
STAGES = {"asr": "speech recognition", "llm": "language", "tts": "speech synthesis"}


def findings(config: Config) -> Iterator[Finding]:
    """A row for each stage, for each model that is missing, and for where they are put."""
    for part, stage in STAGES.items():
        engine = getattr(config.engines, part)
        package = PACKAGES.get(engine, "")
        if package and importlib.util.find_spec(package) is None:
            yield Finding(
                stage, "broken", f"{engine}: its package {package} is not installed",
                f"pip install {INSTALLS.get(package, package)}",
            )  # fmt: skip
        else:
            yield Finding(stage, "ok", f"{engine} is chosen")
    missing = models.problems(config)
    for problem in missing:
        what, _, way_out = problem.partition("; ")
        yield Finding("model", "broken", what, way_out)
    if missing or not uses_gpus(config):
        return
    try:
        placed = loader.placed(config)
    except EngineError as error:
        what, _, way_out = str(error).partition("; ")
        yield Finding("placement", "broken", what, way_out)
        return
    devices = {name: getattr(placed, name).device for name in ("whisper", "kokoro", "coqui")}
    where = [f"{name} on {devices[name]}" for name in (placed.engines.asr, placed.engines.tts) if name in devices]
    if placed.engines.llm == "vllm":
        where.append(f"vllm on its first {group(placed.vllm)} GPUs" if group(placed.vllm) > 1 else "vllm on cuda:0")
    yield Finding("placement", "ok", ", ".join(where))

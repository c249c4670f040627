"""The command: load, measure, print."""

import asyncio
import platform
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path

from rich.console import Console

from voicepipe import __version__
from voicepipe.bench.consoles import for_tables
from voicepipe.bench.engines.chosen import Options, device_of, loaded
from voicepipe.bench.engines.measure import measured
from voicepipe.bench.engines.report import BenchReport
from voicepipe.figures import keep

LIBRARIES = ("torch", "vllm", "faster-whisper", "ctranslate2")


def run(options: Options, json_file: Path | None, markdown: bool) -> int:
    """Measure and print. Raises ConfigError, EngineError, ProbeError: `json_file` cannot be written."""
    console = for_tables()
    progress = Console(stderr=True, highlight=False)
    report = asyncio.run(_run(options, progress))
    if markdown:
        console.print(report.markdown(), soft_wrap=True, markup=False)
    else:
        console.print(report.table())
    keep(json_file, report.json())
    return 0


async def _run(options: Options, progress: Console) -> BenchReport:
    device = device_of(options)
    with ExitStack() as stack:
        progress.print(f"random weights, on {device.described}")
        engines = await loaded(options, device, stack, progress.print)
        results = await measured(engines, options, progress.print)
        stages = {"llm": engines.llm, "asr": engines.asr, "tts": engines.tts}
        names = {stage: engine.name for stage, engine in stages.items() if engine}
        weights = {stage: engine.weights for stage, engine in stages.items() if engine}
        return BenchReport(device.described, _versions(), names, weights, options.seconds, results)


def _versions() -> dict[str, str]:
    found = {"voicepipe": __version__, "Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found

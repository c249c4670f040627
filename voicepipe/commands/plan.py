"""`voicepipe plan`: which GPUs a model needs and what a turn will take on them, by arithmetic alone."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from voicepipe.commands import plan_compare, plan_cost
from voicepipe.commands.plan_cost import Prices
from voicepipe.config import PopConfig
from voicepipe.engines import hub
from voicepipe.errors import ConfigError, EngineMissing
from voicepipe.prediction import BEFORE_COMPUTE_MS, NOMINAL_MS, latency_ms
from voicepipe.sizing import gpu_memory, names, shapes
from voicepipe.sizing import gpu_models as data_sheets
from voicepipe.sizing.gpu_models import GIB, GpuModel
from voicepipe.sizing.host import SizedHost, keeps_up
from voicepipe.sizing.language import MOST_SEQUENCES
from voicepipe.sizing.options import Option, advice, best, judged, kv_cache_bytes, options, slots
from voicepipe.sizing.recognition import Recogniser, recogniser
from voicepipe.sizing.shapes import LLMS, LlmShape
from voicepipe.sizing.speed import STEP_TOKENS
from voicepipe.sizing.traffic import Traffic
from voicepipe.sizing.voices import Voice, voice

BUDGET_MS = PopConfig().budget_ms
WIDE = 130
"""Columns of a terminal that shows the whole table."""
WIDE_TIMES = "ASR", "first token", "token", "first phrase", "TTS", "compute mean", "compute p95", "turn p95 (ms)"
NARROW_TIMES = "ASR", "LLM", "TTS", "all, p95", "turn p95"
MEASURES = "voicepipe bench engines --config FILE"
NEVER = "never: with {calls} calls more comes in than a stage can do, so that the wait for it grows without end."


@dataclass(frozen=True, slots=True)
class Host:
    """What is set on the host."""

    asr: str = "nemotron"
    tts: str = "kokoro"
    mps: bool = False
    first_phrase: Literal["clause", "short"] = "clause"


USUAL = Host()


def run(
    model: str, gpus: str, calls: int, *, interconnect: str = "", host: Host = USUAL,
    prices: Prices | None = None, as_json: bool = False,
) -> int:  # fmt: skip
    """Print the plan, with costs if there are prices; several hosts, with commas between them, are compared. Exit
    status 1 if no call is answered in time. Raises ConfigError."""
    if calls < 1:
        raise ConfigError(f"--calls: {calls}: give at least 1")
    source, name, shape, only = _model(model)
    engines, usual = (recogniser(host.asr), voice(host.tts)), Traffic()
    traffic = usual.cut_short() if host.first_phrase == "short" else usual

    def ways(text: str) -> list[Option]:
        gpu, count = data_sheets.gpus(text)
        link = data_sheets.link(interconnect, gpu)
        hosts = options(
            shape, gpu, count, link, dtypes=_dtypes(only, gpu), speech=engines, mps=host.mps, traffic=traffic
        )
        return [judged(way, calls, BUDGET_MS - BEFORE_COMPUTE_MS) for way in hosts]

    if "," in gpus:
        if prices or as_json:
            raise ConfigError("--gpus: several are compared in one table; --price and --json are for one")
        plan_compare.show([ways(text) for text in gpus.split(",")], f"{name}, {_engines(engines)}", BUDGET_MS)
        return 0
    found = ways(gpus)
    chosen = best(found, calls)
    if as_json:
        print(json.dumps(_facts(name, found, chosen, calls, prices), indent=2))
    else:
        _print(name, source, found, chosen, calls, prices)
    return 0 if chosen and chosen.calls else 1


def _dtypes(only: str, gpu: GpuModel) -> list[str]:
    """`only`: in which the weights are stored, if they are quantised."""
    return [only] if only else [dtype for dtype in gpu_memory.DTYPES if dtype != "fp8" or gpu.fp8_tflops]


def _engines(engines: tuple[Recogniser, Voice]) -> str:
    asr, tts = engines
    return f"{'' if asr.streams else 'whisper '}{asr.name} and {tts.name}"


def _model(text: str) -> tuple[str, str, LlmShape, str]:
    """What `vllm.model` is to be, what it is called, its shape, and its only dtype, if it is quantised."""
    if known := names.known(text):
        return known.source, known.name, LLMS[known.name], known.dtype
    try:
        path = hub.local(text)
    except EngineMissing:
        near = names.near(text)
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


def _print(
    name: str, source: str, found: list[Option], chosen: Option | None, calls: int, prices: Prices | None
) -> None:
    console = Console(highlight=False, markup=False)
    host, shape, traffic = found[0].host, found[0].group.shape, found[0].host.traffic
    dtypes = dict.fromkeys(option.group.dtype for option in found)
    weights = ", ".join(f"{dtype} {gpu_memory.llm_weights(shape, dtype) / GIB:.1f}" for dtype in dtypes)
    call_mib = gpu_memory.kv_call(shape, traffic.context_tokens) / 2**20
    console.print(f"{name}: {shape.weights / 1e9:.2f} billion weights ({weights} GiB)")
    console.print(
        f"KV cache: {gpu_memory.kv_token(shape) / 1024:.0f} KiB a token, {call_mib:.0f} MiB a call of "
        f"{traffic.context_tokens} tokens"
    )
    by = f" by {host.group.link.name}" if host.gpus > 1 else ""
    console.print(
        f"{host.gpus} x {host.gpu.name}{by}: {host.gpu.memory_gib:.1f} GiB, "
        f"{host.gpu.bandwidth_gbs / 1000:.2f} TB/s, {host.gpu.bf16_tflops:.0f} TFLOPS in bf16"
    )
    console.print(f"{_engines((host.asr, host.tts))}: {host.speech_fixed / GIB:.1f} GiB\n")
    console.print(
        f"With {_calls(calls)} at a time, in milliseconds. Calls in time: with so many at a "
        f"time a turn is answered within {BUDGET_MS}, 19 times of 20."
    )
    advised = chosen if chosen and chosen.calls else None
    console.print(_table(found, advised, calls, console.width))
    if any(not math.isfinite(option.turn.compute) for option in found if option.host.fits):
        console.print(NEVER.format(calls=calls), style="dim")
    if advised:
        console.print("\n" + _busy(advised, calls))
        if prices:
            console.print("\n" + plan_cost.title(prices, found) + "\n")
            console.print(plan_cost.table(prices, found, advised))
    console.print()
    for line in _advice(found, chosen, calls, prices):
        console.print(f"- {line}")
    if advised:
        toml = _toml(source, advised, calls, prices, narrow=found[0].group.dtype == "bf16")
        console.print("\n" + toml, style="green", soft_wrap=True)
    console.print("\n" + _assumptions(host) + (plan_cost.COUNTED if prices else ""), style="dim")


def _busy(chosen: Option, calls: int) -> str:
    """How busy each stage is, and with how many calls it keeps up."""
    busy = {stage: f"{100 * share:.0f} %" for stage, share in chosen.turn.busy.items()}
    most = {stage: keeps_up(chosen.host, stage) for stage in ("asr", "finals", "tts")}
    if chosen.host.asr.streams:
        heard, keeps = busy["asr"], f"{most['asr']} calls"
    else:
        heard = f"{busy['asr']} with every partial, {busy['finals']} with finals only"
        keeps = f"{most['asr']} calls with every partial, {most['finals']} with finals only"
    return (
        f"Busy at {_calls(calls)} ({chosen.name}): recognition {heard}; synthesis {busy['tts']}; "
        f"{chosen.turn.replies:.1f} replies at a time\n"
        f"However late, they keep up with: recognition {keeps}; synthesis {most['tts']}"
    )


def _advice(found: list[Option], chosen: Option | None, calls: int, prices: Prices | None) -> list[str]:
    money = plan_cost.advice(prices, chosen, calls) if prices else ()
    return [*advice(found, calls, BUDGET_MS), *money]


def _table(found: list[Option], chosen: Option | None, calls: int, width: int) -> Table:
    """`width`: of the terminal; a narrow one gets less of it."""
    wide = width >= WIDE
    table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    memories = ("GiB a GPU", "left for KV", f"needed by {calls}") if wide else ("GiB a GPU",)
    times = WIDE_TIMES if wide else NARROW_TIMES
    for column in (*memories, *times, "calls in time"):
        table.add_column(column, justify="right", overflow="fold")
    table.add_column("bound", justify="right", no_wrap=True)
    for option in found:
        host = option.host
        needs = host.llm_fixed + (host.speech_fixed if host.shared else 0)
        cells = [f"{needs / GIB:.1f}"]
        cells += [f"{host.kv_room / GIB:.1f}", f"{host.kv_needed(calls) / GIB:.1f}"] if wide else []
        figures = [_ms(time) for time in (_times(option) if wide else _few_times(option))]
        cells += [*figures, str(option.calls), option.bound] if host.fits else ["-"] * len(times) + ["0", "memory"]
        table.add_row(option.name, *cells, style="bold" if option is chosen else "")
    return table


def _times(option: Option) -> Sequence[float]:
    at = option.turn
    times = (at.asr, at.first_token, at.token, at.first_phrase, at.tts, at.compute, at.compute_p95)
    return (*times, latency_ms(at.compute_p95))


def _few_times(option: Option) -> Sequence[float]:
    at = option.turn
    return at.asr, at.first_token + at.first_phrase, at.tts, at.compute_p95, latency_ms(at.compute_p95)


def _calls(calls: int) -> str:
    return "1 call" if calls == 1 else f"{calls} calls"


def _ms(value: float) -> str:
    if not math.isfinite(value):
        return "never"
    return f"{value:.1f}" if value < 20 else f"{value:.0f}"


def _toml(source: str, chosen: Option, calls: int, prices: Prices | None, *, narrow: bool) -> str:
    """`narrow`: the model is 16-bit, and may have to be quantised for what was chosen."""
    group = chosen.group
    model = json.dumps(source)
    if narrow and group.dtype == "fp8":
        model += "  # or a checkpoint of it that is in fp8"
    if narrow and group.dtype == "awq4":  # which vLLM cannot make by itself: another name than the model's
        model = f'""  # a checkpoint of {source} in AWQ, 4 bits'
    asr, tts = chosen.host.asr, chosen.host.tts
    lines = [
        "# Save as FILE, then: voicepipe models pull FILE; voicepipe doctor --config FILE",
        "[engines]",
        'asr = "nemotron"' if asr.streams else f'asr = "whisper"  # [whisper] model: {asr.name}',
        'llm = "vllm"',
        f'tts = "{tts.name}"' + ("  # it needs a voice: [neutts.voices.NAME]" if tts.name == "neutts" else ""),
        "",
        "[pop]",
        f"slots = {slots(chosen, calls)}  # `{MEASURES}` measures what your host answers",
        *([f"price_per_hour = {round(prices.host_hour / chosen.pops, 6)}"] if prices else []),
        "",
        *(['[ladder]\nfirst_phrase = "short"\n'] if chosen.host.traffic.is_cut_short else []),
        "[vllm]",
        f"model = {model}",
        f"tensor_parallel_size = {group.tensor}",
        f"max_model_len = {chosen.host.max_model_len}",
        f"kv_cache_memory_bytes = {kv_cache_bytes(chosen, calls):_}",
    ]
    lines += [
        f"args.max_num_seqs = {MOST_SEQUENCES}",
        f"args.max_num_batched_tokens = {STEP_TOKENS}",
        'args.performance_mode = "interactivity"',
    ]
    lines += [f"args.pipeline_parallel_size = {group.pipeline}"] if group.pipeline > 1 else []
    lines += ['args.quantization = "fp8"'] if narrow and group.dtype == "fp8" else []
    parser = names.tool_call_parser(source)
    unknown = '  # "hermes", "llama3_json", ...; empty: agents cannot use tools'
    return "\n".join([*lines, f'tool_call_parser = "{parser}"{"" if parser else unknown}'])


def _assumptions(host: SizedHost) -> str:
    traffic = host.traffic
    heard = (
        f"sound is heard in chunks while it is said; {traffic.silences} silences a turn that might end it; "
        if host.asr.streams
        else '"with every partial": words are read while they are said, '
        f"every {traffic.partial_s} s in windows of {traffic.window_s:.0f} s; {traffic.silences} silences a turn that "
        'might end it ("finals only": words are read at those alone, as it is done where there is no time for more); '
    )
    return (
        f"All of it is predicted, from data sheets and published measurements; `{MEASURES}` measures. ASR: until the "
        "caller's last words are known; LLM: until the first phrase is written; TTS: until it sounds; all, compute: "
        f"their sum. Turn: from the end of the voice on, max({NOMINAL_MS:.0f}, {BEFORE_COMPUTE_MS:.0f} + compute): "
        f"the engines begin at {BEFORE_COMPUTE_MS:.0f}, and the silence that ends a turn takes {NOMINAL_MS:.0f}. "
        "p95: 19 of 20 take no longer. GiB a GPU: without the KV cache. Bound: what keeps one call more from being in "
        "time.\n"
        f"Assumed: a turn every {traffic.turn_s:.0f} s, of which the caller speaks {100 * traffic.speaking:.0f} %; "
        f"{heard}{traffic.new_tokens} new tokens of a prompt behind {traffic.context_tokens} that are cached; replies "
        f"of {traffic.reply_tokens} tokens, the first phrase {traffic.phrase.tokens} of them and "
        f"{traffic.phrase.speech_s} s long{_cut(traffic)}. "
        f"{'' if host.tts.name == 'neutts' else 'Synthesis is not scaled by GPU. '}"
        + ("CUDA MPS runs." if host.mps else "Stages on one GPU take turns; --mps: as with CUDA MPS.")
    )


def _cut(traffic: Traffic) -> str:
    if traffic.is_cut_short:
        return ' (ladder.first_phrase = "short")'
    short = traffic.short_phrase
    return (
        f"; {traffic.short_phrase_ms} ms after commit one that is not whole is cut after {short.tokens} tokens and "
        f"{short.speech_s} s (ladder.short_phrase_ms)"
    )


def _facts(name: str, found: list[Option], chosen: Option | None, calls: int, prices: Prices | None) -> dict[str, Any]:
    """Everything for other programs. Bytes and milliseconds; what never comes is null."""
    shape, host = found[0].group.shape, found[0].host
    sizes = {"weights": shape.weights, "kv_bytes_a_token": gpu_memory.kv_token(shape)}
    return {
        "model": {"name": name, "shape": asdict(shape), **sizes},
        "gpu": asdict(host.gpu), "gpus": host.gpus, "interconnect": asdict(host.group.link), "calls": calls,
        "traffic": asdict(host.traffic), "budget_ms": BUDGET_MS,
        "options": [_option(option, calls, prices) for option in found],
        "best": chosen.name if chosen and chosen.calls else None,
        "advice": _advice(found, chosen, calls, prices),
        "cost": plan_cost.facts(prices) if prices else None,
    }  # fmt: skip


def _option(option: Option, calls: int, prices: Prices | None) -> dict[str, Any]:
    host, at = option.host, option.turn
    times = {
        key: value if not isinstance(value, float) or math.isfinite(value) else None
        for key, value in asdict(at).items()
    }
    return {
        "name": option.name, "dtype": option.group.dtype, "tensor_parallel_size": option.group.tensor,
        "pipeline_parallel_size": option.group.pipeline, "fits": host.fits,
        "llm_bytes_a_gpu": host.llm_fixed, "speech_bytes": host.speech_fixed, "speech_shares": host.shared,
        "kv_room_bytes_a_gpu": host.kv_room, "kv_needed_bytes_a_gpu": host.kv_needed(calls),
        "kv_cache_memory_bytes": kv_cache_bytes(option, calls) if host.fits else None,
        "turn_ms": times, "compute_ms": _finite(at.compute), "compute_p95_ms": _finite(at.compute_p95),
        "keeps_up_with_calls": {stage: keeps_up(host, stage) for stage in ("asr", "finals", "tts")},
        "calls_in_time": option.calls, "pops_a_host": option.pops, "bound": option.bound,
        "cost": plan_cost.option_facts(prices, option) if prices else None,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

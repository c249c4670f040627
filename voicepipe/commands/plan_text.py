"""What `voicepipe plan` prints: tables, advice, a configuration, and what was assumed."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from voicepipe.commands.plan_cost import Prices
from voicepipe.config import PopConfig
from voicepipe.sizing import gpu_memory, shapes
from voicepipe.sizing.advice import saves_only_memory
from voicepipe.sizing.constants import MOST_SEQUENCES, STEP_TOKENS
from voicepipe.sizing.gpu_memory import DTYPES
from voicepipe.sizing.gpu_models import GIB
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.options import MIB, Option, single_changes
from voicepipe.sizing.prediction import BEFORE_COMPUTE_MS, NOMINAL_MS, latency_ms
from voicepipe.sizing.turn import turn

BUDGET_MS = PopConfig().budget_ms
NEVER = "never: with {calls} calls more comes in than a stage can do, so that the wait for it grows without end."
MEASURES = "voicepipe bench engines --config FILE"
TIMES = (
    "GiB a GPU", "ASR", "first token", "token", "first phrase", "TTS", "all p95", "turn p95", "calls in time", "bound",
)  # fmt: skip
ASSUMED = """\
All of it is predicted, from data sheets and published measurements; `{measures}` measures. ASR: until the caller's \
last words are known; first phrase: from the first token until it is written; TTS: until it sounds; all: their sum, \
compute. p95: 19 of 20 take no longer. Turn: from the end of the voice on, max({nominal:.0f}, {before:.0f} + compute): \
the engines begin at {before:.0f}, and the silence that ends a turn takes {nominal:.0f}. GiB a GPU: without the KV \
cache. Bound: what keeps one call more from being in time.
Assumed: a turn every {t.turn_s:.0f} s, of which the caller speaks {speaking:.0f} %; {heard}; {t.silences} silences a \
turn that might end it; {t.new_tokens} new tokens of a prompt behind {t.context_tokens} that are cached; replies of \
{t.reply_tokens} tokens, the first phrase {t.phrase.tokens} of them and {t.phrase.speech_s} s long{cut}. \
{scaled}{shared}"""
IN_CHUNKS = "sound is heard in chunks while it is said"
IN_WINDOWS = """\
words are read every {t.partial_s} s of an utterance in windows of {t.window_s:.0f} s, or at silences alone (finals), \
as it is done where there is no time for more"""
ALL_SHORT = ' (ladder.first_phrase = "short")'
CUT = """\
; {t.short_phrase_ms} ms after commit one that is not whole is cut after {t.short_phrase.tokens} tokens and \
{t.short_phrase.speech_s} s (ladder.short_phrase_ms)"""
COMPARED_CHANGES = 2
NONE = "-"
"""The cell where no option has such weights."""
MEANS = "means that it does not fit; in the column of fp8 also that the GPU does not compute in it."


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for one host."""

    name: str
    """Name of the model."""
    source: str
    """The value for `vllm.model`."""
    found: list[Option]
    chosen: Option | None
    """The option that is advised, if any is."""
    calls: int
    """The number of calls that was asked for."""
    prices: Prices | None
    advice: list[str]


def show(plan: Plan) -> None:
    console = Console(highlight=False, markup=False)
    found, chosen, prices = plan.found, plan.chosen, plan.prices
    host, shape, traffic = found[0].host, found[0].group.shape, found[0].host.traffic
    gpu, times = host.gpu, "1 call" if plan.calls == 1 else f"{plan.calls} calls"
    dtypes = dict.fromkeys(option.group.dtype for option in found)
    weights = ", ".join(f"{dtype} {gpu_memory.llm_weights(shape, dtype) / GIB:.1f}" for dtype in dtypes)
    call_mib = gpu_memory.kv_call(shape, traffic.context_tokens) / MIB
    by = f" by {host.group.link.name}" if host.gpus > 1 else ""
    console.print(
        f"{plan.name}: {shape.weights / 1e9:.2f} billion weights ({weights} GiB)\n"
        f"KV cache: {gpu_memory.kv_token(shape) / 1024:.0f} KiB a token, {call_mib:.0f} MiB a call of "
        f"{traffic.context_tokens} tokens\n"
        f"{host.gpus} x {gpu.name}{by}: {gpu.memory_gib:.1f} GiB, {gpu.bandwidth_gbs / 1000:.2f} TB/s, "
        f"{gpu.bf16_tflops:.0f} TFLOPS in bf16\n"
        f"{engines(host)}: {host.speech_fixed / GIB:.1f} GiB\n\n"
        f"With {times} at a time, in milliseconds. Calls in time: with so many at a time a turn is answered within "
        f"{BUDGET_MS}, 19 times of 20."
    )
    console.print(_table(TIMES, found, chosen, _times))
    if any(not math.isfinite(option.turn.compute) for option in found if option.host.fits):
        console.print(NEVER.format(calls=plan.calls), style="dim")
    if chosen:
        console.print("\n" + _busy(chosen, plan.calls, times))
    if chosen and prices:
        console.print(f"\n{prices.title()}\n")
        console.print(_table(prices.head(), found, chosen, prices.cells))
    console.print("\n" + "\n".join(f"- {line}" for line in plan.advice))
    if chosen:
        console.print("\n" + _toml(plan, chosen), style="green", soft_wrap=True)
    console.print("\n" + _assumptions(host), style="dim")


def _busy(chosen: Option, calls: int, times: str) -> str:
    host, busy = chosen.host, {stage: f"{100 * share:.0f} %" for stage, share in chosen.turn.busy.items()}
    return (
        f"{times} with {chosen.name}: recognition busy {busy['asr']}{'' if host.asr.streams else ' with finals only'}, "
        f"synthesis {busy['tts']}; {chosen.turn.replies:.1f} replies at a time; KV cache "
        f"{host.kv_needed(calls) / GIB:.1f} of {host.kv_room / GIB:.1f} GiB a GPU"
    )


def compare(hosts: Sequence[list[Option]], name: str) -> None:
    """Several hosts, each a list of the ways to put the model on it: one line a host, as Markdown, so that a page can
    show it."""
    first = hosts[0][0].host
    mps = ", with CUDA MPS" if first.mps else ""
    print(f"Calls that are answered within {BUDGET_MS} ms, 19 times of 20: {name}, {engines(first)}{mps}.\n")
    kinds = [dtype for dtype in DTYPES if any(option.group.dtype == dtype for found in hosts for option in found)]
    rows = [_compared(found, kinds) for found in hosts]
    head = ["one host", *kinds, "bound", "calls with one change"]
    for row in (head, ["---", *["---:"] * len(kinds), "---", "---"], *rows):
        print(f"| {' | '.join(row)} |")
    notes = [f'"{NONE}" {MEANS}'] if any(NONE in row for row in rows) else []
    notes += dict.fromkeys(note for found in hosts for note in saves_only_memory(found))
    if notes:
        print("\n" + "\n".join(notes))


def _compared(found: list[Option], kinds: Sequence[str]) -> list[str]:
    """Calls in time with each kind of weights, the bottleneck of the best of them, and the change that would allow
    more."""

    def rank(option: Option) -> tuple[float, ...]:
        """The largest answers most calls on the fewest GPUs; where none answers a call, it comes nearest to that."""
        near = 0.0 if option.calls else -turn(option.host, 1).compute_p95
        return option.host_calls, near, -option.group.gpus

    host, fitting = found[0].host, [option for option in found if option.host.fits]
    name = host.gpu.name if host.gpus == 1 else f"{host.gpus} x {host.gpu.name}"
    most = {kind: [option.host_calls for option in fitting if option.group.dtype == kind] for kind in kinds}
    cells = [str(max(most[kind])) if most[kind] else NONE for kind in kinds]
    if not fitting:
        return [name, *cells, "memory", ""]
    chosen = max(fitting, key=rank)  # the most precise of equals
    more = ", ".join(f"{what} {calls}" for what, calls in single_changes(chosen)[:COMPARED_CHANGES])
    return [name, *cells, f"{chosen.group.dtype}: {chosen.bound}", more]


def engines(host: SizedHost) -> str:
    """Names of recognition and synthesis."""
    return f"{'' if host.asr.streams else 'whisper '}{host.asr.name} and {host.tts.name}"


def _table(
    head: Sequence[str], found: list[Option], chosen: Option | None, cells: Callable[[Option], Sequence[str]]
) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for column in head:
        table.add_column(column, justify="right", no_wrap=column == "bound", overflow="fold")
    for option in found:
        table.add_row(option.name, *cells(option), style="bold" if option is chosen else "")
    return table


def _times(option: Option) -> Sequence[str]:
    host, at = option.host, option.turn
    gib = f"{(host.llm_fixed + (host.speech_fixed if host.shared else 0)) / GIB:.1f}"
    if not host.fits:
        return [gib, *["-"] * 7, "0", "memory"]
    times = at.asr, at.first_token, at.token, at.first_phrase, at.tts, at.compute_p95, latency_ms(at.compute_p95)
    return [gib, *map(_ms, times), str(option.calls), option.bound]


def _ms(value: float) -> str:
    if not math.isfinite(value):
        return "never"
    return f"{value:.1f}" if value < 20 else f"{value:.0f}"


def _toml(plan: Plan, chosen: Option) -> str:
    host, group, source, prices = chosen.host, chosen.group, plan.source, plan.prices
    narrow = plan.found[0].group.dtype == "bf16"  # so that it may have to be quantised for what was chosen
    model, parser = json.dumps(source), shapes.tool_call_parser(source)
    if narrow and group.dtype == "fp8":
        model += "  # or a checkpoint of it that is in fp8"
    if narrow and group.dtype == "awq4":  # which vLLM cannot make by itself: another name than the model's
        model = f'""  # a checkpoint of {source} in AWQ, 4 bits'
    lines = [
        "# Save as FILE, then: voicepipe models pull FILE; voicepipe doctor --config FILE",
        "[engines]",
        'asr = "nemotron"' if host.asr.streams else f'asr = "whisper"  # [whisper] model: {host.asr.name}',
        'llm = "vllm"',
        f'tts = "{host.tts.name}"'
        + ("  # it needs a voice: [neutts.voices.NAME]" if host.tts.name == "neutts" else ""),
        "\n[pop]",
        f"slots = {chosen.slots(plan.calls)}  # `{MEASURES}` measures what your host answers",
    ]
    lines += [f"price_per_hour = {round(prices.host_hour / chosen.pops, 6)}"] if prices else []
    lines += ['\n[ladder]\nfirst_phrase = "short"'] if host.traffic.is_cut_short else []
    lines += [
        "\n[vllm]",
        f"model = {model}",
        f"tensor_parallel_size = {group.tensor}",
        f"max_model_len = {host.max_model_len}",
        f"kv_cache_memory_bytes = {chosen.kv_cache_bytes(plan.calls):_}",
        f"args.max_num_seqs = {MOST_SEQUENCES}",
        f"args.max_num_batched_tokens = {STEP_TOKENS}",
        'args.performance_mode = "interactivity"',
    ]
    lines += [f"args.pipeline_parallel_size = {group.pipeline}"] if group.pipeline > 1 else []
    lines += ['args.quantization = "fp8"'] if narrow and group.dtype == "fp8" else []
    unknown = "" if parser else '  # "hermes", "llama3_json", ...; empty: agents cannot use tools'
    return "\n".join([*lines, f'tool_call_parser = "{parser}"{unknown}'])


def _assumptions(host: SizedHost) -> str:
    traffic = host.traffic
    return ASSUMED.format(
        measures=MEASURES,
        nominal=NOMINAL_MS,
        before=BEFORE_COMPUTE_MS,
        t=traffic,
        speaking=100 * traffic.speaking,
        heard=(IN_CHUNKS if host.asr.streams else IN_WINDOWS).format(t=traffic),
        cut=(ALL_SHORT if traffic.is_cut_short else CUT).format(t=traffic),
        scaled="" if host.tts.name == "neutts" else "Synthesis is not scaled by GPU. ",
        shared="CUDA MPS runs." if host.mps else "Stages on one GPU take turns; --mps: as with CUDA MPS.",
    )

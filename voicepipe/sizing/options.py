"""The ways in which a model can be put on a host's GPUs, which of them to take, and why."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from voicepipe.sizing.gpus import GIB, Gpu, Link
from voicepipe.sizing.host import Host, Turn, most_calls, turn
from voicepipe.sizing.memory import DTYPES, LLM_WORKSPACE, llm_weights
from voicepipe.sizing.shapes import AsrShape, LlmShape
from voicepipe.sizing.speed import Group, communication_ms

TALKING = 0.3
"""Share of a token's time in all-reduces from which on the link is too slow to share layers."""
PRECISION = tuple(DTYPES)
"""The most precise first."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way, under the calls that were asked for."""

    host: Host
    turn: Turn
    calls: int
    """That are answered in time."""
    bound: str
    """What keeps it from one more."""

    @property
    def group(self) -> Group:
        return self.host.group

    @property
    def name(self) -> str:
        ways = [f"TP {self.group.tensor}"] if self.group.tensor > 1 else []
        ways += [f"PP {self.group.pipeline}"] if self.group.pipeline > 1 else []
        return f"{self.group.dtype}, {' x '.join(ways) or 'one GPU'}"


def options(
    shape: LlmShape, gpu: Gpu, gpus: int, link: Link, *, dtypes: Sequence[str], speech: tuple[AsrShape, str]
) -> Iterator[Host]:
    """Every way that fits, and one GPU with each dtype, fitting or not. Pipelines save only
    memory: the shortest that fits, where one GPU is too small."""
    asr, tts = speech
    powers = [2**n for n in range(1, gpus.bit_length()) if 2**n <= gpus]
    for dtype in dtypes:
        alone = Host(Group(shape, dtype, gpu, link), gpus, asr, tts)
        yield alone
        for tensor in powers:
            host = Host(Group(shape, dtype, gpu, link, tensor), gpus, asr, tts)
            if shape.heads % tensor == 0 and host.fits:
                yield host
        pipelines = (Host(Group(shape, dtype, gpu, link, 1, parts), gpus, asr, tts) for parts in powers)
        yield from [] if alone.fits else [host for host in pipelines if host.fits][:1]


def judged(host: Host, calls: int, compute_ms: float) -> Option:
    """`compute_ms`: what the engines may take for a turn that is answered in time, 19 times of 20."""
    most, bound = most_calls(host, compute_ms)
    return Option(host, turn(host, calls), most, bound)


def best(found: Sequence[Option], calls: int) -> Option | None:
    """Of those that fit: it answers the calls in time, on the fewest GPUs, with the most precise weights; where none
    does, it is the one that answers the most of them, or is the least late."""

    def rank(option: Option) -> tuple[float, ...]:
        group = option.group
        late = 0.0 if option.calls >= calls else option.turn.compute_p95
        return -min(option.calls, calls), late, group.gpus, group.pipeline, PRECISION.index(group.dtype)

    return min((option for option in found if option.host.fits), key=rank, default=None)


def advice(found: Sequence[Option], calls: int, budget_ms: int) -> list[str]:
    """Sentences on which to take, and what it can and cannot do."""
    chosen = best(found, calls)
    if chosen is None:
        return [_does_not_fit(found)]
    return [*_sharding(chosen, found), _speech(chosen), *_capacity(chosen, calls, budget_ms)]


def kv_cache_bytes(option: Option, calls: int) -> int:
    """`vllm.kv_cache_memory_bytes`: for the calls' context and a tenth more, in whole MiB, as far as there is room."""
    mib = 2**20
    return min(math.ceil(option.host.kv_needed(calls) * 1.1 / mib), option.host.kv_room // mib) * mib


def _does_not_fit(found: Sequence[Option]) -> str:
    host = found[-1].host  # with the least precise weights
    group = host.group
    weights = llm_weights(group.shape, group.dtype)
    each = host.usable - LLM_WORKSPACE - 2 * GIB
    needed = 2 ** max(1, math.ceil(math.log2(weights / each)))
    return (
        f"It does not fit: even in {group.dtype} its weights take {weights / GIB:.0f} GiB, and {host.gpus} x "
        f"{host.gpu.name} have {host.gpus * host.usable / GIB:.0f} GiB; take {needed} such GPUs, larger ones, or a "
        "smaller model."
    )


def _sharding(chosen: Option, found: Sequence[Option]) -> Iterator[str]:
    group = chosen.group
    if group.gpus == 1:
        wide = next((o for o in found if o.host.fits and o.group.gpus == 1), chosen)
        if wide.group.dtype == group.dtype:
            yield f"It fits on one card{'' if group.dtype == 'bf16' else f' quantised ({group.dtype})'}: do not shard."
        else:
            yield (
                f"It fits on one card: do not shard. In {wide.group.dtype}, too, but in {group.dtype} a turn's compute "
                f"is {_ms(chosen.turn.compute)} in place of {_ms(wide.turn.compute)}."
            )
        wider = next((o for o in found if o.group.dtype == group.dtype and o.group.tensor == 2), None)
        if wider:
            alone = chosen.host.gpus > 1 and wider.host.shared
            yield (
                f"Two cards (TP 2 by {group.link.name}) would bring a token in {wider.turn.token:.1f} in place of "
                f"{chosen.turn.token:.1f} ms and a turn's compute in {_ms(wider.turn.compute)} in place of "
                f"{_ms(chosen.turn.compute)}"
                + (", with recognition and synthesis on a card of the group." if alone else ".")
            )
        return
    step = chosen.turn.token
    talk = communication_ms(group, 1 + round(chosen.turn.replies))
    if group.pipeline > 1:
        yield (
            f"It needs {group.gpus} cards in {group.dtype}: a pipeline (args.pipeline_parallel_size = "
            f"{group.pipeline}) saves memory and no time."
        )
        return
    yield (
        f"It needs {group.gpus} cards in {group.dtype}: tensor_parallel_size = {group.tensor}; of {step:.1f} ms a "
        f"token {talk:.1f} are all-reduces by {group.link.name}."
    )
    if talk > TALKING * step:
        yield (
            f"{group.link.name} is too slow for that: take GPUs with NVLink, narrower weights on fewer cards, or a "
            "smaller model. A pipeline would save memory and no time."
        )


def _speech(chosen: Option) -> str:
    if chosen.host.shared:
        return "Recognition and synthesis share GPU 0 with it; that they slow each other down is in the figures."
    return f"Recognition and synthesis get GPU {chosen.group.gpus} to themselves."


def _capacity(chosen: Option, calls: int, budget_ms: int) -> Iterator[str]:
    if not chosen.calls:
        stages = {
            "recognition": chosen.turn.asr,
            "the language model": chosen.turn.first_token + chosen.turn.first_phrase,
            "synthesis": chosen.turn.tts,
        }
        slowest = max(stages, key=stages.__getitem__)
        yield (
            f"Not even one call is answered within {budget_ms} ms 19 times of 20: {slowest} takes the longest; take a "
            "faster GPU, a smaller model, or narrower weights."
        )
    elif chosen.calls < calls:
        hosts = math.ceil(calls / chosen.calls)
        yield (
            f"{calls} calls are too many for one such host: it answers {chosen.calls} within {budget_ms} ms 19 times "
            f"of 20, then {chosen.bound} is the bound; take {hosts} of them."
        )
    else:
        yield (
            f"It answers {chosen.calls} calls within {budget_ms} ms 19 times of 20; then {chosen.bound} is the bound."
        )
    used = chosen.group.gpus + (not chosen.host.shared)
    if (pops := chosen.host.gpus // used) > 1:
        yield f"The host has GPUs for {pops} such PoPs, each with its own by CUDA_VISIBLE_DEVICES."


def _ms(value: float) -> str:
    return f"{value:.0f} ms" if math.isfinite(value) else "for ever"

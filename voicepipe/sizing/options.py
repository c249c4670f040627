"""The ways in which a model can be put on a host's GPUs, which of them to take, and why."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from voicepipe.sizing.gpu_memory import DTYPES, llm_weights
from voicepipe.sizing.gpu_models import GIB, GpuModel, Link
from voicepipe.sizing.host import SizedHost, TurnEstimate, most_calls, turn
from voicepipe.sizing.lifts import lifts
from voicepipe.sizing.recognition import Recogniser
from voicepipe.sizing.shapes import LlmShape
from voicepipe.sizing.speed import Group, communication_ms
from voicepipe.sizing.traffic import Traffic
from voicepipe.sizing.voices import Voice

TALKING = 0.3
"""Share of a token's time in all-reduces from which on the link is too slow to share layers."""
PRECISION = tuple(DTYPES)
"""The most precise first."""
USUAL = Traffic()
MOST_LIFTS = 4
"""That are named."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way, under the calls that were asked for."""

    host: SizedHost
    turn: TurnEstimate
    calls: int
    """That are answered in time."""
    bound: str
    """What keeps it from one more."""
    compute_ms: float
    """That the engines may take for a turn that is answered in time."""

    @property
    def group(self) -> Group:
        return self.host.group

    @property
    def name(self) -> str:
        ways = [f"TP {self.group.tensor}"] if self.group.tensor > 1 else []
        ways += [f"PP {self.group.pipeline}"] if self.group.pipeline > 1 else []
        return f"{self.group.dtype}, {' x '.join(ways) or 'one GPU'}"

    @property
    def pops(self) -> int:
        """For so many of these the host has GPUs."""
        return self.host.gpus // self._gpus

    @property
    def idle(self) -> int:
        """GPUs of the host that are left over."""
        return self.host.gpus - self.pops * self._gpus

    @property
    def _gpus(self) -> int:
        """Of one of these, with the one for recognition and synthesis."""
        return self.group.gpus + (not self.host.shared)

    @property
    def host_calls(self) -> int:
        """That all of them answer in time."""
        return self.pops * self.calls


def options(
    shape: LlmShape, gpu: GpuModel, gpus: int, link: Link, *, dtypes: Sequence[str], speech: tuple[Recogniser, Voice],
    mps: bool = False, traffic: Traffic = USUAL,
) -> Iterator[SizedHost]:  # fmt: skip
    """Every way that fits, and one GPU with each dtype, fitting or not. Pipelines save only
    memory: the shortest that fits, where one GPU is too small."""
    asr, tts = speech

    def host(dtype: str, tensor: int = 1, pipeline: int = 1) -> SizedHost:
        return SizedHost(Group(shape, dtype, gpu, link, tensor, pipeline), gpus, asr, tts, mps, traffic=traffic)

    powers = [2**n for n in range(1, gpus.bit_length()) if 2**n <= gpus]
    for dtype in dtypes:
        alone = host(dtype)
        yield alone
        for shared in (host(dtype, tensor) for tensor in powers if shape.heads % tensor == 0):
            if shared.fits:
                yield shared
        yield from [] if alone.fits else [piped for n in powers if (piped := host(dtype, pipeline=n)).fits][:1]


def judged(host: SizedHost, calls: int, compute_ms: float) -> Option:
    """`compute_ms`: what the engines may take for a turn that is answered in time, 19 times of 20."""
    most, bound = most_calls(host, compute_ms)
    return Option(host, turn(host, calls), most, bound, compute_ms)


def best(found: Sequence[Option], calls: int) -> Option | None:
    """Of those that fit: its PoPs answer the calls in time, each on the fewest GPUs, with the most precise weights.
    Where none does, it is the one with which a turn takes the least, of those that answer a call in time if there are
    any."""

    def rank(option: Option) -> tuple[float, ...]:
        group = option.group
        late = 0.0 if option.host_calls >= calls else option.turn.compute_p95
        return option.calls == 0, late, -min(option.host_calls, calls), group.gpus, group.pipeline, _precision(group)

    return min((option for option in found if option.host.fits), key=rank, default=None)


def _precision(group: Group) -> int:
    return PRECISION.index(group.dtype)


def advice(found: Sequence[Option], calls: int, budget_ms: int) -> list[str]:
    """Sentences on which to take, and what it can and cannot do."""
    chosen = best(found, calls)
    if chosen is None:
        return [_does_not_fit(found)]
    if not chosen.calls:
        return [*saves_only_memory(found), *_nothing(chosen, budget_ms)]
    return [
        *saves_only_memory(found),
        *_sharding(chosen, found),
        *_faster(chosen, found, calls),
        _speech(chosen),
        *_capacity(chosen, calls, budget_ms),
    ]


def saves_only_memory(found: Sequence[Option]) -> Iterator[str]:
    """A sentence, where weights are stored in fp8 and the GPU does not compute in it."""
    gpu = found[0].host.gpu
    if not gpu.fp8_tflops and any(option.group.dtype == "fp8" for option in found):
        yield (
            f"{gpu.name} does not compute in fp8: such a checkpoint only saves memory there, and the time to read it."
        )


def slots(option: Option, calls: int) -> int:
    """`pop.slots` where so many calls were asked for: as many of them as are answered in time, at least 1."""
    return max(1, min(calls, option.calls))


def kv_cache_bytes(option: Option, calls: int) -> int:
    """`vllm.kv_cache_memory_bytes`: for the context of its slots and a tenth more, in whole MiB, as far as there is
    room. `calls`: that were asked for."""
    mib = 2**20
    needed = option.host.kv_needed(slots(option, calls))
    return min(math.ceil(needed * 1.1 / mib), option.host.kv_room // mib) * mib


def _does_not_fit(found: Sequence[Option]) -> str:
    host = found[-1].host  # with the least precise weights
    group = host.group
    weights = llm_weights(group.shape, group.dtype)
    more = next((gpus for gpus in (2**n for n in range(7)) if gpus > host.gpus and _would_fit(host, gpus)), 0)
    workspace = (host.llm_fixed - weights // group.gpus) * host.gpus + host.speech_fixed
    context = host.kv_needed(1) * group.gpus
    return (
        f"It does not fit: even in {group.dtype} its weights take {weights / GIB:.0f} GiB, workspace on each GPU with "
        f"recognition and synthesis {workspace / GIB:.0f}, one context {context / GIB:.0f}; {host.gpus} x "
        f"{host.gpu.name} have {host.gpus * host.usable / GIB:.0f} GiB; take "
        f"{f'{more} such GPUs, ' if more else ''}larger ones, or a smaller model."
    )


def _would_fit(host: SizedHost, gpus: int) -> bool:
    """With so many GPUs, however the model is spread over them."""
    shape = host.group.shape
    tensors = [2**n for n in range(7) if 2**n <= gpus and shape.heads % 2**n == 0]
    return any(replace(host, group=replace(host.group, tensor=n, pipeline=1), gpus=gpus).fits for n in tensors)


def _sharding(chosen: Option, found: Sequence[Option]) -> Iterator[str]:
    group = chosen.group
    if group.gpus == 1:
        wide = next((o for o in found if o.host.fits and o.group.gpus == 1), chosen)
        if wide.group.dtype == group.dtype:
            yield f"It fits on one card{'' if group.dtype == 'bf16' else f' quantised ({group.dtype})'}: do not shard."
        else:
            yield (
                f"It fits on one card: do not shard. In {wide.group.dtype}, too, but in {group.dtype} "
                f"{_gain(chosen, wide)}."
            )
        wider = next((o for o in found if o.group.dtype == group.dtype and o.group.tensor == 2), None)
        if wider:
            alone = chosen.host.gpus > 1 and wider.host.shared
            yield (
                f"On two cards (TP 2 by {group.link.name}) a token takes {wider.turn.token:.1f} in place of "
                f"{chosen.turn.token:.1f} ms, and {_gain(wider, chosen)}"
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
    alone_fits = next((o for o in found if o.host.fits and o.group.gpus == 1 and o.group.dtype == group.dtype), None)
    needs = f"It needs {group.gpus} cards in {group.dtype}"
    if alone_fits:
        needs = f"It fits on one card in {group.dtype}; on {group.gpus} {_gain(chosen, alone_fits)}"
    yield (
        f"{needs}: tensor_parallel_size = {group.tensor}; of {step:.1f} ms a token {talk:.1f} are all-reduces by "
        f"{group.link.name}."
    )
    yield from _link(chosen)


def _link(option: Option) -> Iterator[str]:
    """Whether it is too slow."""
    group = option.group
    if communication_ms(group, 1 + round(option.turn.replies)) > TALKING * option.turn.token:
        yield (
            f"{group.link.name} is too slow for that: take GPUs with NVLink{_narrower(group, ' on fewer cards')} or a "
            "smaller model. A pipeline would save memory and no time."
        )


def _faster(chosen: Option, found: Sequence[Option], calls: int) -> Iterator[str]:
    """Why it is not the way in which a turn of so many calls takes the least, where that is another."""
    same = [option for option in found if option.host.fits and option.group.dtype == chosen.group.dtype]
    fastest = min(same, key=lambda option: option.turn.compute_p95)
    if chosen.calls < calls and not fastest.calls:
        yield f"With {calls} calls {fastest.name} is faster, but it answers none of them in time."


def _speech(chosen: Option) -> str:
    if chosen.host.shared:
        return "Recognition and synthesis share GPU 0 with it; that they slow each other down is in the figures."
    return f"Recognition and synthesis get GPU {chosen.group.gpus} to themselves."


def _nothing(nearest: Option, budget_ms: int) -> Iterator[str]:
    """No option answers a call."""
    one = turn(nearest.host, 1)
    yield (
        f"Not even one call is answered within {budget_ms} ms 19 times of 20, so that none of these ways is advised. "
        f"The nearest is {nearest.name}: with one call a turn's compute takes {one.compute_p95:.0f} ms, and "
        f"{one.slowest} has the largest part of it."
    )
    yield from _link(nearest)
    yield from _lifted(nearest) or [f"Take a faster GPU{_narrower(nearest.group)} or a smaller model."]


def _capacity(chosen: Option, calls: int, budget_ms: int) -> Iterator[str]:
    within = f"within {budget_ms} ms 19 times of 20"
    if chosen.calls < calls:
        hosts = math.ceil(calls / chosen.host_calls)
        needed = f"{hosts} such hosts with {hosts * chosen.host.gpus} GPUs" if hosts > 1 else "several on this host"
        yield (
            f"{calls} calls are too many for one such PoP ({chosen.name}): it answers {chosen.calls} {within}, then "
            f"{chosen.bound} is the bound. That would be {needed}."
        )
    else:
        asked = "one call" if calls == 1 else f"{calls} calls"
        more = f" (for all {chosen.calls}: --calls {chosen.calls})" if chosen.calls > calls else ""
        yield (
            f"{chosen.name} is advised: of the ways that answer {asked} in time, the one with the fewest GPUs, "
            f"then the most precise weights. It answers {chosen.calls} calls {within}{more}; then "
            f"{chosen.bound} is the bound."
        )
    yield from _lifted(chosen)
    if chosen.pops > 1:
        yield f"The host has GPUs for {chosen.pops} such PoPs, each with its own by CUDA_VISIBLE_DEVICES."
    if chosen.idle:
        yield f"{chosen.idle} of the host's {chosen.host.gpus} GPUs {'stays' if chosen.idle == 1 else 'stay'} idle."


def _lifted(option: Option) -> list[str]:
    """What would let it answer more calls, asked for or not: who plans for few wants to know what the host could do."""
    found = lifts(option.host, option.compute_ms)
    if not found:
        return []
    ways = ", ".join(f"{lift.what} {lift.calls}" for lift in found[:MOST_LIFTS])
    which = f" (the four largest of {len(found)})" if len(found) > MOST_LIFTS else ""
    return [f"Calls in time with one change from {option.name}: {ways}{which}."]


def _narrower(group: Group, more: str = "") -> str:
    return "" if group.dtype == PRECISION[-1] else f", narrower weights{more}"


def _gain(option: Option, other: Option) -> str:
    """What `option` has before `other`."""
    if math.isfinite(option.turn.compute) and math.isfinite(other.turn.compute):
        return f"a turn's compute is {option.turn.compute:.0f} ms in place of {other.turn.compute:.0f}"
    return f"{option.calls} calls are answered in time in place of {other.calls}"

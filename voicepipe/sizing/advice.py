"""Sentences on which way to take, why, and what it can and cannot do."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from voicepipe.sizing.constants import TALKING
from voicepipe.sizing.gpu_memory import llm_weights
from voicepipe.sizing.gpu_models import GIB
from voicepipe.sizing.language import Group, communication_ms
from voicepipe.sizing.options import PRECISION, Option, best, lifts, spread
from voicepipe.sizing.turn import turn

MOST_LIFTS = 4
"""That are named."""


def advice(found: Sequence[Option], calls: int, budget_ms: int) -> list[str]:
    """`calls`: that were asked for."""
    chosen = best(found, calls)
    if chosen is None:
        return [_does_not_fit(found[-1])]  # with the least precise weights
    if not chosen.calls:
        return [*saves_only_memory(found), *_nothing(chosen, budget_ms)]
    return [
        *saves_only_memory(found),
        *_sharding(chosen, found),
        *_faster(chosen, found, calls),
        "Recognition and synthesis share GPU 0 with it; that they slow each other down is in the figures."
        if chosen.host.shared
        else f"Recognition and synthesis get GPU {chosen.group.gpus} to themselves.",
        *_capacity(chosen, calls, budget_ms),
    ]


def saves_only_memory(found: Sequence[Option]) -> Iterator[str]:
    """A sentence, where weights are stored in fp8 and the GPU does not compute in it."""
    gpu = found[0].host.gpu
    if not gpu.fp8_tflops and any(option.group.dtype == "fp8" for option in found):
        yield (
            f"{gpu.name} does not compute in fp8: such a checkpoint only saves memory there, and the time to read it."
        )


def _does_not_fit(option: Option) -> str:
    host, group = option.host, option.group
    powers = [2**n for n in range(7)]
    enough = (
        gpus for gpus in powers if gpus > host.gpus for tensor in powers
        if tensor <= gpus and group.shape.heads % tensor == 0 and spread(replace(host, gpus=gpus), tensor).fits
    )  # fmt: skip
    more = next((f"{gpus} such GPUs, " for gpus in enough), "")
    return (
        f"It does not fit: even in {group.dtype} its weights take {llm_weights(group.shape, group.dtype) / GIB:.0f} "
        f"GiB, recognition and synthesis {host.speech_fixed / GIB:.0f}, one context "
        f"{host.kv_needed(1) * group.gpus / GIB:.0f}, besides workspace on each GPU; {host.gpus} x {host.gpu.name} "
        f"have {host.gpus * host.usable / GIB:.0f} GiB; take {more}larger ones, or a smaller model."
    )


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


def _sharding(chosen: Option, found: Sequence[Option]) -> Iterator[str]:
    """Whether the model is spread over GPUs, and why."""
    group = chosen.group
    alone = [option for option in found if option.host.fits and option.group.gpus == 1]
    if group.gpus == 1:
        quantised = "" if alone[0].group.dtype == "bf16" else f" quantised ({group.dtype})"
        yield f"It fits on one card{quantised}: do not shard."
        return
    one = next((option for option in alone if option.group.dtype == group.dtype), None)
    needs = f"It needs {group.gpus} cards in {group.dtype}"
    if one:
        needs = (
            f"It fits on one card in {group.dtype}; on {group.gpus} it answers {chosen.calls} calls in time in place "
            f"of {one.calls}"
        )
    if group.pipeline > 1:
        yield f"{needs}: a pipeline (args.pipeline_parallel_size = {group.pipeline}) saves memory and no time."
        return
    yield (
        f"{needs}: tensor_parallel_size = {group.tensor}; of {chosen.turn.token:.1f} ms a token "
        f"{_talking_ms(chosen):.1f} are all-reduces by {group.link.name}."
    )
    yield from _link(chosen)


def _link(option: Option) -> Iterator[str]:
    """Whether it is too slow."""
    group = option.group
    if _talking_ms(option) > TALKING * option.turn.token:
        yield (
            f"{group.link.name} is too slow for that: take GPUs with NVLink{_narrower(group, ' on fewer cards')} or a "
            "smaller model. A pipeline would save memory and no time."
        )


def _talking_ms(option: Option) -> float:
    """Of a token."""
    return communication_ms(option.group, 1 + round(option.turn.replies))


def _narrower(group: Group, more: str = "") -> str:
    return "" if group.dtype == PRECISION[-1] else f", narrower weights{more}"


def _faster(chosen: Option, found: Sequence[Option], calls: int) -> Iterator[str]:
    """Why it is not the way in which a turn of so many calls takes the least, where that is another."""
    same = [option for option in found if option.host.fits and option.group.dtype == chosen.group.dtype]
    fastest = min(same, key=lambda option: option.turn.compute_p95)
    if chosen.calls < calls and not fastest.calls:
        yield f"With {calls} calls {fastest.name} is faster, but it answers none of them in time."


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
    if idle := chosen.host.gpus - chosen.pops * chosen.gpus:
        yield f"{idle} of the host's {chosen.host.gpus} GPUs {'stays' if idle == 1 else 'stay'} idle."


def _lifted(option: Option) -> list[str]:
    """What one change would bring, asked for or not: who plans for few wants to know what the host could do."""
    if not (found := lifts(option)):
        return []
    ways = ", ".join(f"{what} {calls}" for what, calls in found[:MOST_LIFTS])
    which = f" (the four largest of {len(found)})" if len(found) > MOST_LIFTS else ""
    return [f"Calls in time with one change from {option.name}: {ways}{which}."]

"""Sentences of advice: which option to take, why, and what it can and cannot do."""

import math
from collections.abc import Iterator, Sequence

from voicepipe.sizing.constants import SLOW_LINK
from voicepipe.sizing.gpu_memory import llm_weights
from voicepipe.sizing.gpu_models import GIB
from voicepipe.sizing.language import communication_ms
from voicepipe.sizing.options import Option, best, enough_gpus, single_changes
from voicepipe.sizing.turn import turn

MOST_CHANGES = 4
"""Changes that are listed."""


def advice(found: Sequence[Option], calls: int, budget_ms: int) -> Iterator[str]:
    """Sentences of advice; `calls`: the number that was asked for."""
    chosen = best(found, calls)
    if chosen is None:
        yield _does_not_fit(found[-1])  # with the least precise weights
        return
    yield from saves_only_memory(found)
    if chosen.calls:
        yield from _way(chosen, found, calls)
        yield _capacity(chosen, calls, f"within {budget_ms} ms 19 times of 20")
    else:
        one = turn(chosen.host, 1)
        yield (
            f"Not even one call is answered within {budget_ms} ms 19 times of 20, so that none of these ways is "
            f"advised. The nearest is {chosen.name}: with one call a turn's compute takes {one.compute_p95:.0f} ms, "
            f"and {one.slowest} has the largest part of it."
        )
    if _communication_ms(chosen) > SLOW_LINK * chosen.turn.token:
        yield f"{chosen.group.link.name} is too slow for that: take GPUs with NVLink, fewer of them or a smaller model."
    if changes := single_changes(chosen):
        ways = ", ".join(f"{what} {answered}" for what, answered in changes[:MOST_CHANGES])
        which = f" (the four largest of {len(changes)})" if len(changes) > MOST_CHANGES else ""
        yield f"Calls in time with one change from {chosen.name}: {ways}{which}."
    elif not chosen.calls:
        yield "Take a faster GPU or a smaller model."
    if chosen.calls and chosen.pops > 1:
        yield f"The host has GPUs for {chosen.pops} such PoPs, each with its own by CUDA_VISIBLE_DEVICES."
    if chosen.calls and (idle := chosen.host.gpus - chosen.pops * chosen.gpus):
        yield f"{idle} of the host's {chosen.host.gpus} GPUs {'stays' if idle == 1 else 'stay'} idle."


def saves_only_memory(found: Sequence[Option]) -> Iterator[str]:
    """A sentence, where weights are stored in fp8 and the GPU does not compute in it."""
    gpu = found[0].host.gpu
    if not gpu.fp8_tflops and any(option.group.dtype == "fp8" for option in found):
        yield (
            f"{gpu.name} does not compute in fp8: such a checkpoint only saves memory there, and the time to read it."
        )


def _does_not_fit(option: Option) -> str:
    host, group = option.host, option.group
    enough = enough_gpus(host)
    return (
        f"It does not fit: even in {group.dtype} its weights take {llm_weights(group.shape, group.dtype) / GIB:.0f} "
        f"GiB, recognition and synthesis {host.speech_fixed / GIB:.0f}, one context "
        f"{host.kv_needed(1) * group.gpus / GIB:.0f}, besides workspace on each GPU; {host.gpus} x {host.gpu.name} "
        f"have {host.gpus * host.usable / GIB:.0f} GiB; take {f'{enough} such GPUs, ' if enough else ''}larger ones, "
        "or a smaller model."
    )


def _way(chosen: Option, found: Sequence[Option], calls: int) -> Iterator[str]:
    """How the model is spread over the GPUs; a faster way that does not work."""
    group, fitting = chosen.group, [option for option in found if option.host.fits]
    if group.pipeline > 1:
        yield f"It needs {group.gpus} cards in {group.dtype}: a pipeline saves memory and no time."
    elif group.tensor > 1:
        yield (
            f"It takes {group.gpus} cards in {group.dtype} (tensor_parallel_size); of {chosen.turn.token:.1f} ms a "
            f"token {_communication_ms(chosen):.1f} are all-reduces by {group.link.name}."
        )
    else:
        wide = next(option for option in fitting if option.group.gpus == 1).group.dtype == "bf16"
        yield f"It fits on one card{'' if wide else f' quantised ({group.dtype})'}: do not shard."
    same = [option for option in fitting if option.group.dtype == group.dtype]
    fastest = min(same, key=lambda option: option.turn.compute_p95)
    if chosen.calls < calls and not fastest.calls:
        yield f"With {calls} calls {fastest.name} is faster, but it answers none of them in time."
    if chosen.host.shared:
        yield "Recognition and synthesis share GPU 0 with it; that they slow each other down is in the figures."
    else:
        yield f"Recognition and synthesis get GPU {group.gpus} to themselves."


def _communication_ms(option: Option) -> float:
    """Milliseconds of communication for a token."""
    return communication_ms(option.group, 1 + round(option.turn.replies))


def _capacity(chosen: Option, calls: int, within: str) -> str:
    then = f"then {chosen.bound} is the bound."
    if chosen.calls < calls:
        hosts = math.ceil(calls / chosen.host_calls)
        needed = f"{hosts} such hosts with {hosts * chosen.host.gpus} GPUs" if hosts > 1 else "several on this host"
        return (
            f"{calls} calls are too many for one such PoP ({chosen.name}): it answers {chosen.calls} {within}, {then} "
            f"That would be {needed}."
        )
    asked = "one call" if calls == 1 else f"{calls} calls"
    more = f" (for all {chosen.calls}: --calls {chosen.calls})" if chosen.calls > calls else ""
    return (
        f"{chosen.name} is advised: of the ways that answer {asked} in time, the one with the fewest GPUs, then the "
        f"most precise weights. It answers {chosen.calls} calls {within}{more}; {then}"
    )

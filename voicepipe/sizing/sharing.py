"""How stages that share a GPU slow each other down. Pure.

Processes take turns on a GPU: whoever has work for it gets an equal part of the time. So a stage slows another one
down for as much of the time as it has work there itself, and that is longer the more it is slowed down, too: shares of
the time and factors have to agree with each other.

Anchor: a streaming recogniser beside an 8B model on an H100 (`latency_probes/figures/h100-streaming-no-mps.json`): the
language model's first phrase took 1.5 times as long with 16 calls and 2.3 times with 64.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

MPS_SHARE = 0.35
"""With CUDA MPS kernels run side by side. What is bound by memory, a language model's step, loses this part of what it
would lose to taking turns; what launches many small kernels still waits for the others' large ones and gains nothing.
Fitted to h100-streaming-mps.json: first phrases of 16 to 64 calls 1.1 to 1.4 times as long, settling as without MPS."""
ROUNDS = 200
SAME = 1e-4


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the others on its GPU are for one stage."""

    slow: float = 1.0
    """By what its work on the GPU takes longer, in the mean."""
    spread: float = 0.0
    """Standard deviation of that: some jobs meet all of them from beginning to end, and some meet none."""


def shared(
    together: Iterable[str], on_gpu: Mapping[str, Callable[[float], float]], gains: Mapping[str, float]
) -> dict[str, Sharing]:
    """`together`: the stages that share a GPU; `on_gpu`: the share of the time in which each has work on it, if that
    takes so many times as long; `gains`: what part of a meeting slows a stage down, where that is not all of it."""
    slow = dict.fromkeys(on_gpu, 1.0)
    sharing = tuple(together)
    for _ in range(ROUNDS):
        shares = {name: on_gpu[name](slow[name]) for name in sharing}
        others = {name: sum(share for other, share in shares.items() if other != name) for name in sharing}
        before, slow = slow, slow | {name: 1 + gains.get(name, 1.0) * others[name] for name in sharing}
        if all(slow[name] - before[name] < SAME for name in slow):  # they only grow
            break
    chances = {name: share * (1 - share) for name, share in shares.items()}
    spread = {
        name: gains.get(name, 1.0) * math.sqrt(sum(chance for other, chance in chances.items() if other != name))
        for name in sharing
    }
    return {name: Sharing(slow[name], spread.get(name, 0.0)) for name in on_gpu}

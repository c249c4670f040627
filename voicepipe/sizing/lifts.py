"""What would let a host answer more calls in time: one change at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from voicepipe.sizing.host import SizedHost, most_calls
from voicepipe.sizing.recognition import Nemotron
from voicepipe.sizing.shapes import LLMS
from voicepipe.sizing.voices import NeuTts

SMALLER = 0.7
"""A model with at most this part of the weights is worth naming as a smaller one."""


@dataclass(frozen=True, slots=True)
class Lift:
    what: str
    calls: int
    """That are answered in time with it."""


def lifts(host: SizedHost, compute_ms: float) -> list[Lift]:
    """Those with which more calls are answered in time, the best first. `compute_ms`: what the engines may take for a
    turn that is answered in time."""
    now, _ = most_calls(host, compute_ms)
    found = [Lift(what, most_calls(other, compute_ms)[0]) for what, other in _changes(host)]
    found += _smaller(host, now, compute_ms)
    return sorted((lift for lift in found if lift.calls > now), key=lambda lift: -lift.calls)


def _smaller(host: SizedHost, more_than: int, compute_ms: float) -> Iterator[Lift]:
    """The largest known model, clearly smaller than the host's, with which it answers more calls."""
    few = {name: shape for name, shape in LLMS.items() if shape.weights <= SMALLER * host.group.shape.weights}
    for name in sorted(few, key=lambda name: -few[name].weights):
        calls, _ = most_calls(replace(host, group=replace(host.group, shape=few[name])), compute_ms)
        if calls > more_than:
            yield Lift(name, calls)
            return


def _changes(host: SizedHost) -> Iterator[tuple[str, SizedHost]]:
    group = host.group
    if not host.mps and host.shared:
        yield "CUDA MPS", replace(host, mps=True)
    if not host.asr.streams:
        yield "Nemotron", replace(host, asr=Nemotron())
    if host.tts.name != "neutts":
        yield "NeuTTS", replace(host, tts=NeuTts())
    if not host.traffic.is_cut_short:
        yield 'ladder.first_phrase = "short"', replace(host, traffic=host.traffic.cut_short())
    if group.dtype == "bf16" and group.gpu.fp8_tflops:
        yield "weights in fp8", replace(host, group=replace(group, dtype="fp8"))
    if group.dtype != "awq4":
        yield "weights in AWQ", replace(host, group=replace(group, dtype="awq4"))
    if host.shared:
        yield "a GPU for speech", replace(host, gpus=group.gpus + 1)

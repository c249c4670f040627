"""The ways in which a model can be put on a host's GPUs, which of them to take, and what one change would bring."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from voicepipe.sizing.gpu_memory import DTYPES
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import ParallelGroup
from voicepipe.sizing.recognition import Nemotron
from voicepipe.sizing.shapes import LLMS
from voicepipe.sizing.turn import TurnEstimate, capacity, turn
from voicepipe.sizing.voices import NeuTtsCost

SMALLER = 0.7
"""A model with at most this part of the weights is suggested as a smaller one."""
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Option:
    """One way to put a model on a host's GPUs, under the calls that were asked for."""

    host: SizedHost
    turn: TurnEstimate
    calls: int
    """Calls that are answered in time."""
    bound: str
    """The bottleneck that keeps it from one more."""
    compute_ms: float
    """Time that the engines may take for a turn that is answered in time."""

    @property
    def group(self) -> ParallelGroup:
        return self.host.group

    @property
    def name(self) -> str:
        ways = [f"TP {self.group.tensor}"] if self.group.tensor > 1 else []
        ways += [f"PP {self.group.pipeline}"] if self.group.pipeline > 1 else []
        return f"{self.group.dtype}, {' x '.join(ways) or 'one GPU'}"

    @property
    def gpus(self) -> int:
        """GPUs of one PoP, with the one for recognition and synthesis."""
        return self.group.gpus + (not self.host.shared)

    @property
    def pops(self) -> int:
        """PoPs for which the host has GPUs."""
        return self.host.gpus // self.gpus

    @property
    def host_calls(self) -> int:
        """Calls that all of them answer in time."""
        return self.pops * self.calls

    def slots(self, calls: int) -> int:
        """The value for `pop.slots` where so many calls were asked for: as many of them as are answered in time, at
        least 1."""
        return max(1, min(calls, self.calls))

    def kv_cache_bytes(self, calls: int) -> int:
        """The value for `vllm.kv_cache_memory_bytes`: for the context of its slots and a tenth more, in whole MiB, as
        far as there is room. `calls`: the number that was asked for."""
        needed = math.ceil(self.host.kv_needed(self.slots(calls)) * 1.1 / MIB)
        return min(needed, self.host.kv_room // MIB) * MIB


def options(host: SizedHost, dtypes: Sequence[str]) -> Iterator[SizedHost]:
    """Every way that fits to put the host's model on its GPUs, and one GPU with each dtype, fitting or not. Pipelines
    save only memory: the shortest that fits, where one GPU is too small."""
    powers = [2**n for n in range(1, host.gpus.bit_length())]
    for dtype in dtypes:
        alone = host.with_group(dtype=dtype, tensor=1, pipeline=1)
        yield alone
        wide = [alone.with_group(tensor=n) for n in powers if host.group.shape.heads % n == 0]
        yield from (way for way in wide if way.fits)
        if not alone.fits:
            yield from islice((piped for n in powers if (piped := alone.with_group(pipeline=n)).fits), 1)


def enough_gpus(host: SizedHost) -> int:
    """The next larger number of GPUs that holds the model, each layer spread over all of them; 0: not even 64 do."""
    more = (2**n for n in range(7) if 2**n > host.gpus and host.group.shape.heads % 2**n == 0)
    return next((gpus for gpus in more if replace(host, gpus=gpus).with_group(tensor=gpus, pipeline=1).fits), 0)


def evaluated(host: SizedHost, calls: int, compute_ms: float) -> Option:
    """The option with its calls. `compute_ms`: time that the engines may take for a turn that is answered in time, 19
    times of 20."""
    most, bound = capacity(host, compute_ms)
    return Option(host, turn(host, calls), most, bound, compute_ms)


def best(found: Sequence[Option], calls: int) -> Option | None:
    """The best option of those that fit: its PoPs answer the calls in time, each on the fewest GPUs, with the most
    precise weights. Where none does, it is the one whose turn takes the least time, of those that answer a call in time
    if there are any."""

    def rank(option: Option) -> tuple[float, ...]:
        group, late = option.group, 0.0 if option.host_calls >= calls else option.turn.compute_p95
        answered, bytes_a_weight = min(option.host_calls, calls), DTYPES[group.dtype]
        return option.calls == 0, late, -answered, group.gpus, group.pipeline, -bytes_a_weight

    return min((option for option in found if option.host.fits), key=rank, default=None)


def single_changes(option: Option) -> list[tuple[str, int]]:
    """Changes by which it would answer more calls in time, asked for or not: one change at a time, and the calls with
    it, the best first. Of smaller models it is the largest."""

    def improving(changes: Iterator[tuple[str, SizedHost]]) -> Iterator[tuple[str, int]]:
        for what, host in changes:
            calls, _ = capacity(host, option.compute_ms)
            if calls > option.calls:
                yield what, calls

    found = [*improving(_changes(option.host)), *islice(improving(_smaller(option.host)), 1)]
    return sorted(found, key=lambda change: -change[1])


def _changes(host: SizedHost) -> Iterator[tuple[str, SizedHost]]:
    group = host.group
    if not host.mps and host.shared:
        yield "CUDA MPS", replace(host, mps=True)
    if not host.asr.streams:
        yield "Nemotron", replace(host, asr=Nemotron())
    if host.tts.name != "neutts":
        yield "NeuTTS", replace(host, tts=NeuTtsCost())
    if not host.traffic.is_cut_short:
        yield 'ladder.first_phrase = "short"', replace(host, traffic=host.traffic.cut_short())
    if group.dtype == "bf16" and group.gpu.fp8_tflops:
        yield "weights in fp8", host.with_group(dtype="fp8")
    if group.dtype != "awq4":
        yield "weights in AWQ", host.with_group(dtype="awq4")
    if host.shared:
        yield "a GPU for speech", replace(host, gpus=group.gpus + 1)


def _smaller(host: SizedHost) -> Iterator[tuple[str, SizedHost]]:
    """Known models that are clearly smaller than the host's, the largest first."""
    few = [name for name, shape in LLMS.items() if shape.weights <= SMALLER * host.group.shape.weights]
    for name in sorted(few, key=lambda name: -LLMS[name].weights):
        yield name, host.with_group(shape=LLMS[name])

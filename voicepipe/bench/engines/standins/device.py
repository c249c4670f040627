"""The device, its streams, and work recorded once so that doing it costs one launch."""

import logging
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from voicepipe.errors import ConfigError

log = logging.getLogger(__name__)

WARM_UPS = 3
"""Runs before a recording: libraries choose their kernels and take their workspaces."""


def torch_device(name: str) -> torch.device:
    """That of an option. Raises ConfigError: there is none of this name."""
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    known = ("auto", "cpu", *(["cuda"] if gpus else []), *gpus)
    if name not in known:
        raise ConfigError(f"--device {name}: torch sees no such device here; choose one of {', '.join(known)}.")
    return torch.device(name if name != "auto" else "cuda" if gpus else "cpu")


class Device:
    """Where the stand-ins run. Raises ConfigError."""

    def __init__(self, name: str) -> None:
        self.torch = torch_device(name)
        self.cuda = self.torch.type == "cuda"
        self.unrecorded = 0
        """Parts that CUDA could not record: they run kernel by kernel."""
        if self.torch.index is not None:
            torch.cuda.set_device(self.torch)
        if self.cuda:  # as onnxruntime does it: TF32, and the fastest convolution for each shape
            torch.set_float32_matmul_precision("high")
            torch.backends.cudnn.benchmark = True

    @property
    def described(self) -> str:
        """For a table's title."""
        if self.cuda:
            properties = torch.cuda.get_device_properties(self.torch)
            unrecorded = f", {self.unrecorded} parts not recorded" if self.unrecorded else ""
            return (
                f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}{unrecorded}"
            )
        return f"{_processor()}, {torch.get_num_threads()} threads"

    @property
    def half(self) -> torch.dtype:
        """What recognisers run in: half precision, which CPUs are slow at."""
        return torch.float16 if self.cuda else torch.float32

    @property
    def bf16(self) -> torch.dtype:
        return torch.bfloat16 if self.cuda else torch.float32

    @staticmethod
    def named(dtype: torch.dtype) -> str:
        return str(dtype).removeprefix("torch.")

    def make(self, build: Callable[[], nn.Module], dtype: torch.dtype, seed: int = 0) -> Any:
        """The module with random weights. Scales are 1, as a trained model's are about: nothing overflows."""
        with torch.device("meta"):
            module = build()
        module = module.to(dtype).to_empty(device=self.torch).eval().requires_grad_(False)
        generator = torch.Generator(self.torch).manual_seed(seed)
        for name, weights in module.named_parameters():
            if weights.dim() == 1 and name.endswith("weight"):
                weights.fill_(1.0)
            else:
                weights.normal_(std=0.02, generator=generator)
        return module

    def lane(self, *, urgent: bool) -> "CudaLane":
        return CudaLane(self, urgent)


class CudaLane:
    """A CUDA stream of one thread's, with the memory that its recordings share; nothing on a CPU.

    Of an urgent stream and another one that both have work, the GPU begins with the urgent one's blocks; what runs is
    not interrupted.
    """

    def __init__(self, device: Device, urgent: bool) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device.torch, priority=-1 if urgent else 0) if device.cuda else None
        self.pool = torch.cuda.graph_pool_handle() if device.cuda else None

    def entered(self) -> AbstractContextManager[object]:
        """What this thread begins goes to this lane."""
        return torch.cuda.stream(self.stream) if self.stream else nullcontext()


class Recorded:
    """A CUDA graph; on a CPU the function itself. `work` takes and leaves its tensors where they are."""

    def __init__(self, work: Callable[[], Tensor], lane: CudaLane) -> None:
        self._work, self._lane = work, lane
        self._output = torch.empty(0)
        self._graph = self._record() if lane.stream else None

    def __call__(self) -> Tensor:
        """Begin, in the lane that has been entered. What is returned stands until the lane's next recording begins."""
        if self._graph is None:
            return self._work()
        self._graph.replay()
        return self._output

    def _record(self) -> torch.cuda.CUDAGraph | None:
        stream, pool = self._lane.stream, self._lane.pool
        assert stream
        torch.cuda.synchronize()
        with self._lane.entered():
            for _ in range(WARM_UPS):
                self._work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                self._output = self._work()
        except RuntimeError as error:
            log.warning("a stand-in runs kernel by kernel, since CUDA cannot record it: %s", error)
            torch.cuda.set_stream(torch.cuda.default_stream(stream.device))  # it is still in the recording's
            self._lane.device.unrecorded += 1
            return None
        return graph


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()

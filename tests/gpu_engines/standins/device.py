"""The device, its streams, and work recorded once so that doing it costs one launch."""

import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

WARM_UPS = 3
"""Runs before a recording: libraries choose their kernels and take their workspaces."""


def told(error: Exception) -> str:
    """In one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


class Device:
    """The first GPU, or the CPU."""

    def __init__(self, *, cuda: bool) -> None:
        self.torch = torch.device("cuda" if cuda else "cpu")
        self.cuda = cuda
        self.unrecorded: list[str] = []
        """Why CUDA could not record a part, for each such part: it runs kernel by kernel."""
        if cuda:  # as onnxruntime does it: TF32, and the fastest convolution for each shape
            torch.set_float32_matmul_precision("high")
            torch.backends.cudnn.benchmark = True

    @property
    def described(self) -> str:
        if self.cuda:
            properties = torch.cuda.get_device_properties(self.torch)
            return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}"
        return f"{platform.machine()}, {torch.get_num_threads()} threads"

    @property
    def bf16(self) -> torch.dtype:
        """What models run in; CPUs are slow at it."""
        return torch.bfloat16 if self.cuda else torch.float32

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


class Yielding(Device):
    """Everything on it goes behind what is urgent."""

    def lane(self, *, urgent: bool) -> "CudaLane":
        return super().lane(urgent=False)


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
            torch.cuda.set_stream(torch.cuda.default_stream(stream.device))  # it is still in the recording's
            self._lane.device.unrecorded.append(told(error))
            return None
        return graph

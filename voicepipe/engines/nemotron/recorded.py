"""Work recorded once as a CUDA graph, so that doing it costs one launch in place of 1,500. Blocking."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

log = logging.getLogger(__name__)
WARM_UPS = 3
"""Runs before a recording: libraries choose their kernels and take their workspaces."""


class Lane:
    """Where one thread's work goes on a GPU, before that of others in this process; nothing on a CPU."""

    def __init__(self, device: torch.device) -> None:
        self.cuda = device.type == "cuda"
        self._stream = torch.cuda.Stream(device, priority=-1) if self.cuda else None
        self._pool = torch.cuda.graph_pool_handle() if self.cuda else None

    def follow(self) -> None:
        """What was begun outside so far is done before what the lane begins."""
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))

    def entered(self) -> AbstractContextManager[object]:
        """What this thread begins goes to this lane."""
        return torch.cuda.stream(self._stream) if self._stream else nullcontext()

    def recorded(self, work: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """`work`, which takes and leaves its tensors where they are. What it returns stands until the lane's next work
        begins. On a CPU, and where CUDA cannot record it, it is `work` itself."""
        if self._stream is None:
            return work
        with self.entered():
            for _ in range(WARM_UPS):
                work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
                output = work()
        except RuntimeError as error:
            log.warning("the recogniser runs kernel by kernel, which is slow: CUDA cannot record a step: %s", error)
            torch.cuda.set_stream(torch.cuda.default_stream(self._stream.device))  # it is still in the recording's
            return work

        def replay() -> Tensor:
            graph.replay()
            return output

        return replay
